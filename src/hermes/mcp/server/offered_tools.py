"""Tools offered to one client: a few directly, the others through tool search; tools of the
toolsets `prompts` and `resources` as prompts and resources of the protocol.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    AudioContent,
    BlobResourceContents,
    EmbeddedResource,
    GetPromptResult,
    ImageContent,
    Prompt,
    PromptArgument,
    PromptMessage,
    Resource,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
)

from hermes.core.wire_names import wire_name
from hermes.mcp.server.content import described as described_offered_tools
from hermes.mcp.server.content import result_of, title_of
from hermes.mcp.untrusted_text import valid_unicode
from hermes.runtime.tool_offer import Offer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from mcp_types import Tool

    from hermes.core.entry import ToolEntry, ToolOutcome
    from hermes.runtime.app import App


# How many values are proposed for an argument.
MOST_VALUES = 100


def is_prompt(entry: ToolEntry) -> bool:
    """Whether a tool is offered as a prompt, and not as a tool."""
    return entry.toolset == "prompts"


def described(entry: ToolEntry) -> Prompt:
    """A prompt as it is listed."""
    schema = entry.parameters
    required = schema.get("required") or ()
    return Prompt(
        name=entry.name,
        title=title_of(entry),
        description=valid_unicode(entry.description),
        arguments=[
            PromptArgument(
                name=name,
                description=valid_unicode(str(inner.get("description") or "")) or None,
                required=name in required,
            )
            for name, inner in schema.get("properties", {}).items()
            if isinstance(inner, dict)
        ],
    )


def prompt_result(outcome: ToolOutcome, entry: ToolEntry | None) -> GetPromptResult:
    """The messages of a prompt, from the outcome of its call."""
    if not outcome.ok:
        raise MCPError(INVALID_PARAMS, str(outcome.error))
    blocks = result_of(outcome).content
    return GetPromptResult(
        description=valid_unicode(entry.description) if entry is not None else None,
        messages=[PromptMessage(role="user", content=block) for block in blocks],
    )


def completions(entry: ToolEntry, argument: str, begun: str) -> list[str]:
    """The values of an argument that start with the given text."""
    inner = entry.parameters.get("properties", {}).get(argument)
    if not isinstance(inner, dict):
        return []
    values = inner.get("enum") or inner.get("examples") or []
    texts = [value for value in values if isinstance(value, str)]
    return [text for text in texts if text.casefold().startswith(begun.casefold())]


ADDRESS = "x-mcp-uri"
_VARIABLE = re.compile(r"\{(\w+)\}")


def is_resource(entry: ToolEntry) -> bool:
    """Whether a tool is offered as a resource, and not as a tool."""
    return entry.toolset == "resources" and entry.effect == "read"


def address_of(entry: ToolEntry) -> str:
    """Where it is read, with a `{place}` for each of its parameters."""
    uri = entry.parameters.get(ADDRESS)
    if isinstance(uri, str) and uri:
        return uri
    places = "".join(f"/{{{name}}}" for name in entry.parameters.get("properties", {}))
    return f"hermes://resource/{entry.name}{places}"


def listed(entries: Iterable[ToolEntry]) -> list[Resource]:
    """The resource tools without variables in their URI."""
    return [
        Resource(
            uri=address_of(entry),
            name=entry.name,
            title=title_of(entry),
            description=valid_unicode(entry.description),
        )
        for entry in entries
        if not _VARIABLE.search(address_of(entry))
    ]


def templates(entries: Iterable[ToolEntry]) -> list[ResourceTemplate]:
    """The resource tools with variables in their URI."""
    return [
        ResourceTemplate(
            uri_template=address_of(entry),
            name=entry.name,
            title=title_of(entry),
            description=valid_unicode(entry.description),
        )
        for entry in entries
        if _VARIABLE.search(address_of(entry))
    ]


def resource_tool(
    entries: Iterable[ToolEntry], uri: str
) -> tuple[ToolEntry, dict[str, str]] | None:
    """The resource tool of a URI, and the values of its variables."""
    for entry in entries:
        pieces = _VARIABLE.split(address_of(entry))
        # Every second piece is the name of a variable.
        names, texts = pieces[1::2], pieces[::2]
        match = re.fullmatch("([^/?#]+)".join(map(re.escape, texts)), uri)
        if match is not None:
            return entry, dict(zip(names, map(unquote, match.groups()), strict=True))
    return None


def contents(outcome: ToolOutcome, uri: str) -> list[TextResourceContents | BlobResourceContents]:
    """The contents of a resource, from the outcome of its call."""
    made: list[TextResourceContents | BlobResourceContents] = []
    for block in result_of(outcome).content:
        if isinstance(block, TextContent):
            kind = "application/json" if block.text[:1] in ("{", "[") else "text/plain"
            made.append(TextResourceContents(uri=uri, text=block.text, mime_type=kind))
        elif isinstance(block, (ImageContent, AudioContent)):
            made.append(BlobResourceContents(uri=uri, blob=block.data, mime_type=block.mime_type))
        elif isinstance(block, EmbeddedResource):
            made.append(block.resource)
    return made


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
        return [described(entry) for entry in self._prompts.values()]

    def resources(self) -> list[ToolEntry]:
        """The tools that are read by their address."""
        self._refresh()
        return self._resources

    def _described(self, entry: ToolEntry, function: dict[str, Any]) -> Tool | None:
        known, said, tool = self._known.get(entry.name, (None, None, None))
        if known is not entry or said is not function:
            tool = described_offered_tools(entry, function)
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

    def _made(self, names: Sequence[str]) -> tuple[Offer, dict[str, str]]:
        registry = self._app.registry
        generation = registry.generation
        # A toolset may have gone since it was asked for, with the plugin that had it.
        entries = registry.available(self._app.definitions.chosen(*self._chosen, quiet=True))
        if self._around.delegate is None:
            entries = [entry for entry in entries if entry.name != "delegate_task"]
        self._prompts = {entry.name: entry for entry in entries if is_prompt(entry)}
        self._resources = [entry for entry in entries if is_resource(entry)]
        others = {*self._prompts, *(entry.name for entry in self._resources)}
        entries = [entry for entry in entries if entry.name not in others]
        # Looking what works here may have made the state another one.
        self._state = (generation, registry.availability.epoch)
        above = self._app.config.get("tools.defer_above") if self._defer else len(entries)
        offer = Offer(registry, entries, index=self._app.index, defer_above=above)
        offer.load(names)
        self.services = self._around.replace(offer=offer)
        return offer, {wire_name(name): name for name in offer.reachable}
