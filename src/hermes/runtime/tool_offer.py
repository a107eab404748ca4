"""Tool offer of a conversation: core tools with full schemas, the rest behind `tool_search`.

Above a number of tools only the core set is sent, and the description of `tool_search` lists the
rest. Tools found by a search are appended, so that the prefix of the list stays identical and
provider caches keep working.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from hermes.runtime.definitions import patched
from hermes.runtime.tool_search.index import Document, SearchIndex, hint

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from hermes.core.entry import ToolEntry
    from hermes.core.registry import ToolRegistry
    from hermes.runtime.tool_search.index import Embed

    Definition = dict[str, Any]

# Always sent whole: what nearly every task needs, and the way to the rest.
CORE = (
    "terminal", "process", "read_file", "write_file", "patch", "search_files", "web_search",
    "web_extract", "execute_code", "todo", "clarify", "read_artifact", "tool_search",
)  # fmt: skip
SEARCH = "tool_search"
# Past this many catalogue entries, the largest families are folded into one line each.
CATALOGUE = 120
# The same for what servers of other people bring: nobody keeps their number small.
FOREIGN = 40


class ToolIndex:
    """The search index over a registry, kept up to date as tools come and go.

    `embed` turns texts into vectors, as `search.embedding.embedder()` does; None is words alone.
    """

    def __init__(self, registry: ToolRegistry, *, embed: Embed | None = None) -> None:
        self._registry = registry
        self._index = SearchIndex(embed)
        self._known: dict[str, ToolEntry] = {}
        self._generation = -1
        self._lock = threading.Lock()

    def search(self, query: str, *, limit: int, among: frozenset[str]) -> list[str]:
        """The names that fit a need best, of those allowed."""
        self._refresh()
        # What is not offered may rank high: more are asked for than wanted, or else all.
        for asked in (limit + 40, len(self._index)):
            hits = self._index.search(query, limit=asked)
            names = [hit.name for hit in hits if hit.name in among][:limit]
            if len(names) == limit or len(hits) < asked:
                break
        return names

    def nearest(self, name: str, limit: int = 3) -> list[str]:
        """Names that look like a misspelled one."""
        self._refresh()
        return list(self._index.nearest(name, limit))

    def _refresh(self) -> None:
        with self._lock:
            if self._generation == self._registry.generation:
                return
            self._generation = self._registry.generation
            now = {entry.name: entry for entry in self._registry.entries()}
            for name in [n for n, entry in self._known.items() if now.get(n) is not entry]:
                self._index.remove(name)
                del self._known[name]
            for name, entry in now.items():
                if name not in self._known:
                    self._index.add(document(entry))
                    self._known[name] = entry


def document(entry: ToolEntry) -> Document:
    """A tool as the search sees it."""
    return Document(
        entry.name,
        entry.toolset,
        entry.description,
        (*entry.tags, *entry.aliases),
        tuple(entry.parameters.get("properties", {})),
    )


class Offer:
    """The tools of one conversation: those in the prompt, and those within reach."""

    def __init__(
        self,
        registry: ToolRegistry,
        entries: Sequence[ToolEntry],
        *,
        index: ToolIndex | None = None,
        defer_above: int = 24,
        core: Iterable[str] = CORE,
    ) -> None:
        self._registry = registry
        self._index = index or ToolIndex(registry)
        self._lock = threading.Lock()
        self.reachable = frozenset(entry.name for entry in entries)
        self.deferred = len(entries) > defer_above and SEARCH in self.reachable
        kept = {*core, SEARCH}
        # What is not sent is described when it is asked for: some tools have to be imported first.
        sent = [entry for entry in entries if not self.deferred or entry.name in kept]
        made = self._patched(sent)
        if not self.deferred:
            self._definitions = [made[name] for name in made if name != SEARCH]
        else:
            rest = [entry for entry in entries if entry.name not in kept]
            self._definitions = list(made.values())
            self._definitions[list(made).index(SEARCH)] = with_catalogue(made[SEARCH], rest)
        self._loaded = {d["function"]["name"] for d in self._definitions}
        # Each with the version of the tool that it describes.
        self._made = {entry.name: (entry, made[entry.name]) for entry in sent}

    def _patched(self, entries: Sequence[ToolEntry]) -> dict[str, Definition]:
        made = patched(entries, beside=self.reachable, known=self._registry.names())
        return {definition["function"]["name"]: definition for definition in made}

    def definitions(self) -> list[Definition]:
        """Definitions for the model; the list grows only at its end."""
        with self._lock:
            return list(self._definitions)

    def load(self, names: Iterable[str]) -> list[Definition]:
        """Have tools sent from now on; their definitions, whether new or not."""
        wanted = [self._registry.get(name) for name in names]
        found = []
        with self._lock:
            for entry in wanted:
                if entry is None or entry.name not in self.reachable or entry.name == SEARCH:
                    continue
                described, definition = self._made.get(entry.name, (None, {}))
                if described is not entry and entry.name not in self._loaded:
                    definition = self._patched([entry])[entry.name]
                    self._made[entry.name] = entry, definition
                found.append(definition)
                if entry.name not in self._loaded:
                    self._loaded.add(entry.name)
                    self._definitions.append(definition)
        return found

    def admit(self, entries: Iterable[ToolEntry]) -> None:
        """Let tools in that came late, as those of a slow server: searchable, or sent at once."""
        with self._lock:
            late = [entry for entry in entries if entry.name not in self.reachable]
            self.reachable |= {entry.name for entry in late}
        if not self.deferred:
            self.load(entry.name for entry in late)

    def search(self, query: str, *, limit: int = 5) -> tuple[list[Definition], list[str]]:
        """The tools for a need, loaded; and the names that were asked for but do not exist."""
        prefix, colon, listed = query.strip().partition(":")
        if colon and prefix.strip().lower() == "select":
            names = dict.fromkeys(name.strip(" `'\"") for name in listed.split(","))
            known = [name for name in names if self._reaches(name)]
            return self.load(known), [name for name in names if name and name not in known]
        among = self.reachable - {SEARCH}
        return self.load(self._index.search(query, limit=limit, among=among)), []

    def nearest(self, name: str) -> list[str]:
        """Reachable tools whose names look like a misspelled one."""
        return [near for near in self._index.nearest(name, 20) if near in self.reachable][:3]

    def _reaches(self, name: str) -> bool:
        entry = self._registry.get(name)
        return entry is not None and entry.name in self.reachable


def with_catalogue(definition: Definition, entries: Sequence[ToolEntry]) -> Definition:
    """`tool_search` with every deferred tool named in its description."""
    function = dict(definition["function"])
    function["description"] = f"{function['description']}\n\n{catalogue(entries)}"
    return {"type": "function", "function": function}


def catalogue(entries: Sequence[ToolEntry]) -> str:
    """Every tool by name with a hint of a few words, a line for each toolset."""
    families: dict[str, list[ToolEntry]] = {}
    for entry in entries:
        families.setdefault(entry.toolset, []).append(entry)
    foreign = {name: held for name, held in families.items() if held[0].origin == "mcp"}
    folded = _largest(foreign, FOREIGN)
    folded |= _largest({name: families[name] for name in families.keys() - folded}, CATALOGUE)
    return "\n".join(
        _folded(family, families[family])
        if family in folded
        else f"{family}: " + ", ".join(_listed(entry) for entry in families[family])
        for family in sorted(families)
    )


def _largest(families: Mapping[str, Sequence[ToolEntry]], limit: int) -> set[str]:
    """The families to fold, largest first, so that no more than `limit` tools are named."""
    named = sum(map(len, families.values()))
    texts: set[str] = set()
    for family in sorted(families, key=lambda name: (-len(families[name]), name)):
        if named <= limit:
            break
        texts.add(family)
        named -= len(families[family])
    return texts


def _listed(entry: ToolEntry) -> str:
    words = hint(entry.description, entry.name)
    return f"{entry.name} ({words})" if words else entry.name


def _folded(family: str, entries: Sequence[ToolEntry]) -> str:
    examples = ", ".join(entry.name.rpartition(":")[2] for entry in entries[:4])
    return f"{family}: {len(entries)} tools such as {examples}"
