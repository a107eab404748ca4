"""Toolsets: named groups of tools that compose.

A toolset is a list of tools and of other toolsets. Resolving one gives names, each once, however
many ways lead to it and even where two toolsets include each other. Beside the table in
`toolset_table.py` there are those made at run time and those that registered tools name.
"""

from __future__ import annotations

import threading

from hermes.core.errors import HermesError, RegistrationError
from hermes.core.registry import registry
from hermes.core.toolset_table import ALIASES, TOOLSETS

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes.core.registry import ToolRegistry


class Toolset:
    """A named group: its own tools, and the groups it includes."""

    __slots__ = ("description", "includes", "name", "tools")

    def __init__(
        self, name: str, description: str, tools: Iterable[str], includes: Iterable[str]
    ) -> None:
        self.name = name
        self.description = description
        self.tools = tuple(tools)
        self.includes = tuple(includes)


class UnknownToolsetError(HermesError):
    """No toolset has that name; `nearest` is the one that was probably meant."""

    def __init__(self, name: str, nearest: str | None) -> None:
        hint = f"Did you mean {nearest}?" if nearest else "`hermes toolsets` lists them all."
        super().__init__(f"no toolset is called {name!r}", hint=hint)
        self.name = name
        self.nearest = nearest


class Toolsets:
    """The toolsets of one registry: shipped, made at run time, and named by its tools."""

    def __init__(self, tools: ToolRegistry) -> None:
        self._registry = tools
        self._custom: dict[str, Toolset] = {}
        self._lock = threading.Lock()

    def create(
        self,
        name: str,
        description: str,
        tools: Iterable[str] = (),
        includes: Iterable[str] = (),
    ) -> Toolset:
        """Make a toolset at run time, or make one of ours anew; a shipped one can't be replaced."""
        if not name or not isinstance(name, str):
            raise RegistrationError("a toolset needs a name")
        if _ships(name):
            raise RegistrationError(f'toolset "{name}" is one that Hermes ships')
        if name in self._registry.toolset_aliases():
            raise RegistrationError(f'"{name}" already stands for another toolset')
        made = Toolset(name, description, _several(tools), _several(includes))
        for included in made.includes:
            if included != name:
                self.get(included)
        with self._lock:
            self._custom = {**self._custom, name: made}
        self._registry.touch()
        return made

    def remove(self, name: str) -> bool:
        """Take away a toolset that was made at run time."""
        with self._lock:
            kept = {key: value for key, value in self._custom.items() if key != name}
            found = len(kept) < len(self._custom)
            self._custom = kept
        if found:
            self._registry.touch()
        return found

    def names(self) -> list[str]:
        """Every toolset, sorted; aliases left out."""
        return sorted({*TOOLSETS, *self._custom, *self._registry.toolsets()})

    def get(self, name: str) -> Toolset:
        """One toolset, by name or alias; raises `UnknownToolsetError` with the nearest."""
        found = self._find(name)
        if found is None:
            known = [*self.names(), *self._registry.toolset_aliases(), *ALIASES, "all"]
            raise UnknownToolsetError(name, _nearest(name, known))
        return found

    def __contains__(self, name: str) -> bool:
        return self._find(name) is not None

    def resolve(self, names: str | Iterable[str]) -> list[str]:
        """The tools of one or several toolsets: sorted, each once."""
        waiting = [names] if isinstance(names, str) else list(names)
        seen: set[str] = set()
        tools: set[str] = set()
        while waiting:
            toolset = self.get(waiting.pop())
            if toolset.name not in seen:
                seen.add(toolset.name)
                tools.update(toolset.tools)
                waiting.extend(toolset.includes)
        return sorted(tools)

    def holding(self, tool: str) -> list[str]:
        """The toolsets that lead to a tool."""
        return [name for name in self.names() if tool in self.resolve(name)]

    def _find(self, name: str) -> Toolset | None:
        if not _ships(name) and name not in self._custom:
            name = self._registry.toolset_aliases().get(name, name)
        for spelling in (name, ALIASES.get(name, ""), name.removesuffix("_tools")):
            if not spelling:
                continue
            if spelling == "all":
                return Toolset("all", "Every tool", self._registry.names(), TOOLSETS)
            declared = TOOLSETS.get(spelling)
            registered = self._registry.toolsets().get(spelling, [])
            made = self._custom.get(spelling)
            if made is not None:
                return Toolset(
                    spelling, made.description, {*made.tools, *registered}, made.includes
                )
            if declared is not None:
                description, tools, includes = declared
                return Toolset(
                    spelling, description, dict.fromkeys((*tools, *registered)), includes
                )
            if registered:
                return Toolset(spelling, f"Tools registered as {spelling}", registered, ())
        return None


def _ships(name: str) -> bool:
    """Whether Hermes itself gives the name a meaning, under whichever spelling."""
    return name == "all" or name in ALIASES or name.removesuffix("_tools") in TOOLSETS


def _several(names: Iterable[str]) -> Iterable[str]:
    return (names,) if isinstance(names, str) else names


def _nearest(name: str, known: Iterable[str]) -> str | None:
    import difflib

    return next(iter(difflib.get_close_matches(name, list(known), 1, 0.5)), None)


shared_toolsets = Toolsets(registry)


def create_custom_toolset(
    name: str, description: str, tools: Iterable[str] = (), includes: Iterable[str] = ()
) -> Toolset:
    """Make a toolset at run time, beside those that Hermes ships."""
    return shared_toolsets.create(name, description, tools, includes)


def resolve_toolset(name: str) -> list[str]:
    """The tools of a toolset of the shared registry, sorted."""
    return shared_toolsets.resolve(name)
