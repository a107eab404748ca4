"""What the model is offered: tools by toolset, those that work here, said consistently."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.log import Log
from hermes.core.toolset_table import declared_tools
from hermes.core.toolsets import UnknownToolsetError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from hermes.core.entry import ToolEntry
    from hermes.core.registry import ToolRegistry
    from hermes.core.toolsets import Toolsets

    Definition = dict[str, Any]

log = Log("hermes.definitions")


class Definitions:
    """The definitions of one registry, worked out once for each choice of toolsets."""

    def __init__(self, registry: ToolRegistry, toolsets: Toolsets) -> None:
        self._registry = registry
        self._toolsets = toolsets
        self._made: dict[tuple[Any, ...], tuple[Any, list[Definition]]] = {}

    def get(
        self,
        enabled: Sequence[str] | None = None,
        disabled: Sequence[str] | None = None,
        *,
        quiet: bool = False,
    ) -> list[Definition]:
        """The definitions, sorted by name. They are shared: don't change them.

        `enabled` wins; else all but `disabled`; else all. A toolset that nobody knows raises
        `UnknownToolsetError`, or is passed over with a log line when `quiet`.
        """
        registry = self._registry
        key = (tuple(enabled or ()), tuple(disabled or ()), quiet)
        known = self._made.get(key)
        state = (registry.generation, registry.availability.epoch)
        if known is not None and known[0] == state and registry.availability.fresh():
            return list(known[1])
        entries = registry.available(self.chosen(enabled, disabled, quiet=quiet))
        made = patched(entries)
        state = (registry.generation, registry.availability.epoch)
        self._made[key] = (state, made)
        return list(made)

    def chosen(
        self,
        enabled: Sequence[str] | None = None,
        disabled: Sequence[str] | None = None,
        *,
        quiet: bool = False,
    ) -> list[ToolEntry]:
        """The tools that the toolsets stand for, whether or not they work here."""
        entries = self._registry.entries()
        if enabled:
            wanted = self._names(enabled, quiet)
            return [entry for entry in entries if entry.name in wanted]
        if disabled:
            unwanted = self._names(disabled, quiet)
            return [entry for entry in entries if entry.name not in unwanted]
        return entries

    def _names(self, toolsets: Iterable[str], quiet: bool) -> set[str]:
        names: set[str] = set()
        for toolset in toolsets:
            try:
                names.update(self._toolsets.resolve(toolset))
            except UnknownToolsetError as error:
                if not quiet:
                    raise
                log.warning("%s: %s", error, error.hint)
        return names


def patched(entries: Sequence[ToolEntry]) -> list[Definition]:
    """Definitions that mention no tool but those offered together with them."""
    offered = frozenset(entry.name for entry in entries)
    absent = declared_tools() - offered
    return [_definition(entry, offered, absent) for entry in entries]


def _definition(entry: ToolEntry, offered: frozenset[str], absent: frozenset[str]) -> Definition:
    function = entry.schema
    overrides = entry.dynamic_schema_overrides
    if overrides is not None:
        function.update(_overrides(overrides, offered))
    function["description"] = without_mentions(function["description"], absent)
    return {"type": "function", "function": function}


def _overrides(function: Callable[..., Any], offered: frozenset[str]) -> dict[str, Any]:
    """What the tool itself says of the present situation; it may look at what is offered."""
    code = getattr(function, "__code__", None)
    takes_none = code is not None and code.co_argcount == 0
    return dict(function() if takes_none else function(offered))


def without_mentions(text: str, absent: frozenset[str]) -> str:
    """`text` less the sentences that name an absent tool.

    A name with an underscore is always a tool's; a plain word such as `patch` or `memory` only
    in backticks.
    """
    if not any(name in text for name in absent):
        return text
    kept = [sentence for sentence in _sentences(text) if not _names_any(sentence, absent)]
    return "".join(kept).strip()


def _sentences(text: str) -> list[str]:
    import re

    return re.split(r"(?<=[.!?;])(?=\s)|(?<=\n)(?=\n)", text)


def _names_any(sentence: str, absent: frozenset[str]) -> bool:
    import re

    for word in re.findall(r"`?\b\w+\b`?", sentence):
        name = word.strip("`")
        if name in absent and ("_" in name or word.startswith("`")):
            return True
    return False


def get_tool_definitions(
    enabled_toolsets: Sequence[str] | None = None,
    disabled_toolsets: Sequence[str] | None = None,
    quiet_mode: bool = False,
) -> list[Definition]:
    """The definitions of the tools that Hermes has here, for a model's `tools` field."""
    from hermes.runtime.app import default_app

    return default_app().definitions.get(enabled_toolsets, disabled_toolsets, quiet=quiet_mode)
