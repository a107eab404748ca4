"""Tools offered to one client: a few directly, the others through tool search."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.wire_names import wire_name
from hermes.mcp.server import prompts, tool_resources
from hermes.mcp.server.content import described
from hermes.runtime.tool_offer import Offer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from mcp_types import Prompt, Tool

    from hermes.core.entry import ToolEntry
    from hermes.runtime.app import App


class OfferedTools:
    """The tools of an App for one client, by toolset; those of the settings if None.

    `services` are those of the handlers, this offer included.
    """

    def __init__(
        self,
        app: App,
        toolsets: Sequence[str] | None,
        *,
        defer: bool,
        services: Mapping[str, Any],
    ) -> None:
        self._app = app
        self._defer = defer
        config = app.config
        self._chosen = (
            config.get("tools.enabled_toolsets") if toolsets is None else list(toolsets),
            config.get("tools.disabled_toolsets") if toolsets is None else None,
        )
        self._around = app.runtime.services.replace(**services)
        self.services = self._around
        self._state: tuple[int, int] = (-1, -1)
        # What each tool was described from, and as.
        self._known: dict[str, tuple[ToolEntry, dict[str, Any], Tool | None]] = {}
        self._prompts: dict[str, ToolEntry] = {}
        self._resources: list[ToolEntry] = []
        self._offer, self._spelled = self._made(())
        self._told = self._offer.definitions()
        self._told_prompts = self._prompts
        self._told_resources = self._resources

    def tools(self) -> list[Tool]:
        """The tools as the client is to see them now."""
        self._refresh()
        tools = []
        for definition in self._offer.definitions():
            entry = self._app.registry.get(definition["function"]["name"])
            tool = None if entry is None else self._described(entry, definition["function"])
            if tool is not None:
                tools.append(tool)
        return tools

    def prompts(self) -> list[Prompt]:
        """The prompts that a person at the client can pick."""
        self._refresh()
        return [prompts.described(entry) for entry in self._prompts.values()]

    def resources(self) -> list[ToolEntry]:
        """The tools that are read by their address."""
        self._refresh()
        return self._resources

    def _described(self, entry: ToolEntry, function: dict[str, Any]) -> Tool | None:
        known, said, tool = self._known.get(entry.name, (None, None, None))
        if known is not entry or said is not function:
            tool = described(entry, function)
            self._known[entry.name] = entry, function, tool
        return tool

    def changed(self) -> bool:
        """Whether the client would see other tools than when this was last asked."""
        self._refresh()
        now, before = self._offer.definitions(), self._told
        self._told = now
        return len(now) != len(before) or now != before

    def prompts_changed(self) -> bool:
        """The same of prompts."""
        self._refresh()
        now, before = self._prompts, self._told_prompts
        self._told_prompts = now
        return now is not before and now != before

    def resources_changed(self) -> bool:
        """The same of resources."""
        self._refresh()
        now, before = self._resources, self._told_resources
        self._told_resources = now
        return now is not before and now != before

    def resolve(self, name: str, *, prompt: bool = False) -> ToolEntry | None:
        """The tool, or the prompt, that a client means, if it may use it."""
        self._refresh()
        if prompt:
            return self._prompts.get(name)
        entry = self._app.registry.resolve(self._spelled.get(name, name))
        return entry if entry is not None and entry.name in self._offer.reachable else None

    def _refresh(self) -> None:
        registry = self._app.registry
        if self._state != (registry.generation, registry.availability.epoch):
            # What was found by searching stays found.
            found = [definition["function"]["name"] for definition in self._offer.definitions()]
            self._offer, self._spelled = self._made(found)

    def _made(self, found: Sequence[str]) -> tuple[Offer, dict[str, str]]:
        registry = self._app.registry
        generation = registry.generation
        # A toolset may have gone since it was asked for, with the plugin that had it.
        entries = registry.available(self._app.definitions.chosen(*self._chosen, quiet=True))
        if self._around.delegate is None:
            entries = [entry for entry in entries if entry.name != "delegate_task"]
        self._prompts = {entry.name: entry for entry in entries if prompts.is_prompt(entry)}
        self._resources = [entry for entry in entries if tool_resources.is_resource(entry)]
        others = {*self._prompts, *(entry.name for entry in self._resources)}
        entries = [entry for entry in entries if entry.name not in others]
        # Looking what works here may have made the state another one.
        self._state = (generation, registry.availability.epoch)
        above = self._app.config.get("tools.defer_above") if self._defer else len(entries)
        offer = Offer(registry, entries, index=self._app.index, defer_above=above)
        offer.load(found)
        self.services = self._around.replace(offer=offer)
        return offer, {wire_name(name): name for name in offer.reachable}
