"""Tool definitions for the model: available tools of the chosen toolsets, without references to
tools that are not offered.
"""

from __future__ import annotations

import os
from functools import lru_cache

from hermes.core.log import Log
from hermes.core.toolsets import UnknownToolsetError, declared_tools
from hermes.runtime.discovery import LazyFunction

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Sequence
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
        self._made: dict[tuple[Any, ...], tuple[Any, tuple[str, ...], list[Definition]]] = {}

    def get(
        self,
        enabled: Sequence[str] | None = None,
        disabled: Sequence[str] | None = None,
        *,
        quiet: bool = False,
    ) -> list[Definition]:
        """The definitions, sorted by name. They are shared: don't change them.

        `enabled` wins; else all but `disabled`; else all. An unknown toolset raises
        `UnknownToolsetError`, or is skipped with a log line when `quiet`.
        """
        registry = self._registry
        key = (tuple(enabled or ()), tuple(disabled or ()), quiet)
        known = self._made.get(key)
        same = known is not None and known[0] == self._state(known[1])
        if known is not None and same and registry.availability.fresh():
            return list(known[2])
        # Taken before, so that a tool that comes meanwhile is not overlooked for good.
        generation = registry.generation
        chosen = self.chosen(enabled, disabled, quiet=quiet)
        variables = tuple({name for entry in chosen for name in entry.requires_env})
        made = patched(registry.available(chosen), known=registry.names())
        self._made[key] = ((generation, *self._state(variables)[1:]), variables, made)
        return list(made)

    def _state(self, variables: Sequence[str]) -> tuple[Any, ...]:
        """Cache key: the definitions are built again when it changes."""
        registry = self._registry
        there = tuple(bool(os.environ.get(name)) for name in variables)
        return registry.generation, registry.availability.epoch, there

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


def patched(
    entries: Sequence[ToolEntry], *, beside: Iterable[str] = (), known: Iterable[str] = ()
) -> list[Definition]:
    """Definitions that mention no tool but those offered together with them.

    `beside` are tools that are offered too; `known` are tools that there are, offered or not.
    """
    offered = frozenset((*(entry.name for entry in entries), *beside))
    absent = declared_tools().union(known) - offered
    return [_definition(entry, offered, absent) for entry in entries]


def _definition(entry: ToolEntry, offered: frozenset[str], absent: frozenset[str]) -> Definition:
    function = entry.schema
    if entry.dynamic_schema_overrides is not None:
        function.update(_overrides(entry, offered))
    function["description"] = without_mentions(function["description"], absent)
    if entry.origin == "mcp":
        from hermes.safety.taint import declared_source

        # Whoever runs a server wrote this, and it stands beside our own words.
        said = f"Words of {declared_source(entry)}: {function['description']}"
        function["description"] = said
    function["parameters"] = _short(_without_mentions_inside(function["parameters"], absent))
    return {"type": "function", "function": function}


def _short(parameters: Any) -> Any:
    """The schema in fewer tokens: keywords that repeat a default are left out."""
    fields = parameters.get("properties") if isinstance(parameters, dict) else None
    if not isinstance(fields, dict):
        return parameters
    return {**parameters, "properties": {name: _short_field(f) for name, f in fields.items()}}


def _short_field(field: Any) -> Any:
    if not isinstance(field, dict) or "enum" in field or "default" not in field:
        return field
    if field["default"] is not None and field["default"] is not False:
        return field
    said = {key: value for key, value in field.items() if key != "default"}
    kinds = said.get("type")
    if isinstance(kinds, list) and "null" in kinds and len(kinds) == 2:
        said["type"] = kinds[1 - kinds.index("null")]
    return said


def _overrides(entry: ToolEntry, offered: frozenset[str]) -> dict[str, Any]:
    """The tool's dynamic description and parameters, given the offered tools."""
    function: Any = entry.dynamic_schema_overrides
    try:
        if isinstance(function, LazyFunction):
            function = function.target()
        code = getattr(function, "__code__", None)
        taken = code.co_argcount - hasattr(function, "__self__") if code is not None else 1
        said = dict(function(offered) if taken else function())
    except Exception:
        # One tool's bad day must not take the others with it.
        log.exception("%s could not say what it is now; offered as it was defined", entry.name)
        return {}
    return {key: said[key] for key in ("description", "parameters") if key in said}


def offered_text(text: str, registry: ToolRegistry, offered: frozenset[str] | None) -> str:
    """A hint or note without the sentences that name a tool which can't be called; may be empty.

    `offered` is None for a caller that is offered all tools that are available.
    """
    if "`" not in text and "_" not in text:
        return text
    if offered is None:
        offered = frozenset(entry.name for entry in registry.available())
    absent = declared_tools().union(registry.names()) - offered
    return _parts_without(text, absent)[0]


def without_mentions(text: str, absent: frozenset[str]) -> str:
    """`text` without the sentences that name an absent tool.

    A name that is no plain word is always a tool's; a word such as `patch` or `memory` only in
    backticks. Where nothing would be left, only the names are replaced.
    """
    if not any(mark in text for mark in _marks(absent)):
        return text
    kept, mention = _parts_without(text, absent)
    return kept or (text if mention is None else mention.sub("another tool", text))


def _parts_without(text: str, absent: frozenset[str]) -> tuple[str, re.Pattern[str] | None]:
    """The sentences that name no absent tool, and the pattern of such names if there are any."""
    named = [name for name in absent if name in text]
    if not named:
        return text, None
    import re

    words = "|".join(map(re.escape, sorted(named, key=len, reverse=True)))
    plain = "|".join(re.escape(name) for name in named if not name.isalnum()) or "(?!)"
    mention = re.compile(rf"`(?:{words})`|(?<!\w)(?<!\w[:.-])(?:{plain})(?!\w|[:.-]\w)")
    kept = "".join(part for part in _sentences(text) if not mention.search(part)).strip()
    return kept, mention


@lru_cache(maxsize=16)
def _marks(names: frozenset[str]) -> frozenset[str]:
    """Characters of which a text has at least one where it names a tool; most texts have none."""
    return frozenset("".join(c for name in names for c in name if not c.isalnum())) | {"`"}


def _sentences(text: str) -> list[str]:
    import re

    return re.split(r"(?<=[.!?;])(?=\s)|(?<=\n)(?=\n|\s*[-*•] )", text)


def _without_mentions_inside(schema: Any, absent: frozenset[str]) -> Any:
    """A schema without references to absent tools; the same object if it has none."""
    if isinstance(schema, list):
        items = [_without_mentions_inside(item, absent) for item in schema]
        return items if any(a is not b for a, b in zip(items, schema, strict=True)) else schema
    if not isinstance(schema, dict):
        return schema
    changed = {
        key: without_mentions(value, absent)
        if key == "description" and isinstance(value, str)
        else _without_mentions_inside(value, absent)
        for key, value in schema.items()
    }
    return changed if any(changed[key] is not schema[key] for key in schema) else schema


def get_tool_definitions(
    enabled_toolsets: Sequence[str] | None = None,
    disabled_toolsets: Sequence[str] | None = None,
    quiet_mode: bool = False,
) -> list[Definition]:
    """The definitions of the tools that Hermes has here, for a model's `tools` field."""
    from hermes.runtime.app import default_app

    app = default_app()
    app.registry  # noqa: B018 - takes in what changed on disk
    return app.definitions.get(enabled_toolsets, disabled_toolsets, quiet=quiet_mode)
