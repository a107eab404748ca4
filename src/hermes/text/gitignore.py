"""Ignore files (`.gitignore`, `.ignore`, `.rgignore`) with the semantics of ripgrep."""

from __future__ import annotations

import re

from hermes.text.globs import GlobError, glob_regex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

# The first outweighs the others.
NAMES = (".rgignore", ".ignore", ".gitignore")
_SPECIAL = re.compile(r"[*?\[\]{}\\]")


class Rules:
    """The rules of one file, and a quick no for names that none of them means."""

    __slots__ = ("_all", "_names", "_others", "_paths", "_suffixes")

    def __init__(self, text: str) -> None:
        # Expression for the path below the file's folder, whether it brings back, folders only.
        self._all: list[tuple[Callable[[str], object], bool, bool]] = []
        names: set[str] = set()
        paths: set[str] = set()
        suffixes: list[str] = []
        others: list[str] = []
        for line in text.removeprefix("\ufeff").split("\n"):
            rule = _read(line.removesuffix("\r"))
            if rule is None:
                continue
            glob, brings_back, folders_only = rule
            try:
                regex = glob_regex(glob, lenient=True)
                fits = re.compile(regex, re.DOTALL).fullmatch
            except (GlobError, re.error):
                continue
            self._all.append((fits, brings_back, folders_only))
            anywhere = glob.removeprefix("**/")
            if anywhere and not _SPECIAL.search(anywhere):
                (paths if anywhere == glob else names).add(anywhere)
            elif anywhere != glob and anywhere[:1] == "*" and not _SPECIAL.search(anywhere[1:]):
                suffixes.append(anywhere[1:])
            else:
                others.append(regex)
        self._names = frozenset(name for name in names if "/" not in name)
        others += [f"(?:.*/)?{re.escape(name)}" for name in names if "/" in name]
        # By the folder that they are in.
        self._paths: dict[str, set[str]] = {}
        for path in paths:
            lead, slash, name = path.rpartition("/")
            self._paths.setdefault(lead + slash, set()).add(name)
        self._suffixes = tuple(one for one in suffixes if "/" not in one)
        either = "|".join(f"(?:{one})" for one in others)
        self._others = re.compile(either, re.DOTALL).fullmatch if others else None

    def __bool__(self) -> bool:
        return bool(self._all)

    def touched(self, lead: str, names: Iterable[str]) -> set[str]:
        """Those of the names in a folder that a rule may mean.

        `lead` is the path of the folder below the file's, with a slash at its end.
        """
        found = set(self._names.intersection(names))
        if self._suffixes:
            found.update([name for name in names if name.endswith(self._suffixes)])
        if lead in self._paths:
            found |= self._paths[lead].intersection(names)
        others = self._others
        if others is not None:
            found.update([name for name in names if others(lead + name)])
        return found

    def verdict(self, path: str, *, folder: bool) -> bool | None:
        """True: ignored; False: brought back; None: not meant."""
        for fits, brings_back, folders_only in reversed(self._all):
            if (folder or not folders_only) and fits(path):
                return not brings_back
        return None


def _read(line: str) -> tuple[str, bool, bool] | None:
    """The glob of a line, whether it brings back, and whether it means folders only."""
    if line.startswith("#"):
        return None
    if not line.endswith("\\ "):
        line = line.rstrip()
    if not line:
        return None
    brings_back = anchored = False
    if line.startswith(("\\!", "\\#")):
        line = line[1:]
    else:
        if line.startswith("!"):
            brings_back = True
            line = line[1:]
        if line.startswith("/"):
            anchored = True
            line = line[1:]
    folders_only = line.endswith("/")
    if folders_only:
        line = line[:-1].removesuffix("\\")
    if not anchored and "/" not in line and not line.startswith("**/") and line != "**":
        line = f"**/{line}"
    if line.endswith("/**"):
        line += "/*"
    return line, brings_back, folders_only


class Ignoring:
    """The rules that hold in one folder; made for each folder from that of the one above."""

    __slots__ = ("_levels",)

    def __init__(self, levels: Sequence[tuple[int, Rules, str]] = ()) -> None:
        # Rank of the file, its rules, and this folder as seen from the file's: outweighing first.
        self._levels = levels

    def __bool__(self) -> bool:
        return bool(self._levels)

    def below(self, name: str) -> Ignoring:
        """The rules for a subdirectory of that name, without its own ignore files."""
        if not self._levels:
            return self
        lead = f"{as_bytes(name)}/"
        return Ignoring([(rank, rules, at + lead) for rank, rules, at in self._levels])

    def having(self, texts: Iterable[tuple[str, str]]) -> Ignoring:
        """The same, with the files (name, content) of the folder itself."""
        own = [(NAMES.index(name), rules, "") for name, text in texts if (rules := Rules(text))]
        if not own:
            return self
        # Sorting keeps the order of equals: the nearest file stays first.
        return Ignoring(sorted([*own, *self._levels], key=lambda level: level[0]))

    def touched(self, names: Sequence[str]) -> set[str]:
        """Those of the names that a rule may mean: no other has to be asked for."""
        if not all(map(str.isascii, names)):
            # Rare, and rules may mean any part of such a name.
            return set(names)
        found: set[str] = set()
        for _, rules, lead in self._levels:
            found |= rules.touched(lead, names)
        return found

    def verdict(self, name: str, *, folder: bool) -> bool | None:
        """True: ignored; False: brought back by a rule; None: no rule means it."""
        name = as_bytes(name)
        for _, rules, lead in self._levels:
            said = rules.verdict(lead + name, folder=folder)
            if said is not None:
                return said
        return None


def as_bytes(text: str) -> str:
    """A text with a character for each of its bytes: the rules count in bytes."""
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogateescape").decode("latin-1")
