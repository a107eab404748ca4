"""Globs: patterns of paths, choices made of them, and gitignore rules."""

from __future__ import annotations

import re
from functools import lru_cache

from hermes.core.errors import ToolError

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


if TYPE_CHECKING:
    _Choices = list[tuple[str, ...]]

# Signs that stand for more than one character: some of a name, any folders (and the slashes
# around them), anything inside a folder. The others are expressions for one character.
_STAR, _FOLDERS, _INSIDE = "*", "**/", "/**"
_MOST_CHOICES = 256


class GlobError(ToolError):
    """A shell pattern that means nothing; `position` counts its characters from 0."""

    def __init__(self, glob: str, why: str, position: int) -> None:
        super().__init__(
            f"invalid glob {glob!r} at character {position + 1}: {why}",
            hint="Put a \\ before the character to mean it as it is.",
        )
        self.position = position


def glob_regex(glob: str, *, anywhere: bool = False, lenient: bool = False) -> str:
    """A regular expression for whole paths, to be used with `re.DOTALL`.

    It never takes long, however many stars there are. With `anywhere` it may begin in any folder.
    Raises `GlobError`; when `lenient`, a `[` that is never closed stands for itself.
    """
    choices = _Reader(glob, lenient).read()
    if anywhere:
        choices = [
            choice if choice[:1] == (_FOLDERS,) else (_FOLDERS, *choice) for choice in choices
        ]
    return "|".join(map(_joined, choices))


def chooser(globs: str, *, below: bool = True) -> Callable[[str], bool]:
    """A predicate on paths relative to the start of the search.

    Several patterns are separated by commas; one that begins with `!` takes paths away. A pattern
    without a slash is compared with the last part of a path, another with the whole of it. With
    `below`, a match of a directory covers its content.
    """
    wanted: list[str] = []
    unwanted: list[str] = []
    by_name = not below
    for glob in split(globs):
        into = unwanted if glob.startswith("!") else wanted
        bare = glob.removeprefix("!").removeprefix("./")
        anywhere = "/" not in bare.rstrip("/")
        by_name = by_name and anywhere
        into.append(glob_regex(bare.strip("/"), anywhere=anywhere))
    tail = "(?:/.*)?" if below else ""
    fits = re.compile(f"(?:{'|'.join(wanted) or '.*'}){tail}", re.DOTALL).fullmatch
    spoils = re.compile(f"(?:{'|'.join(unwanted)}){tail}", re.DOTALL).fullmatch
    if unwanted:
        return lambda path: fits(path) is not None and spoils(path) is None
    if by_name:
        # The same, sooner.
        return lambda path: fits(path.rpartition("/")[2]) is not None
    return lambda path: fits(path) is not None


def split(globs: str) -> list[str]:
    """Patterns that are separated by commas; those inside braces and brackets separate nothing."""
    found = [""]
    depth = 0
    inside = escaped = False
    for one in globs:
        if one == "," and not depth and not inside and not escaped:
            found.append("")
            continue
        if not escaped:
            inside = one == "[" or (inside and one != "]")
            depth += (one == "{") - (one == "}" and depth > 0) if not inside else 0
        escaped = one == "\\" and not escaped
        found[-1] += one
    return [glob for one in found if (glob := one.strip())]


class _Reader:
    """Reads a pattern into lists of signs, one for each choice of its alternatives."""

    def __init__(self, glob: str, lenient: bool) -> None:
        self._glob = glob
        self._lenient = lenient
        self._at = 0
        # What was read so far, and where it is inside braces: what came before them, what the
        # alternatives before this one were.
        self._now: _Choices = [()]
        self._open: list[tuple[int, _Choices, _Choices]] = []

    def read(self) -> _Choices:
        while self._at < len(self._glob):
            self._one()
        if self._open:
            raise GlobError(self._glob, "this { is never closed", self._open[-1][0])
        return self._now

    def _one(self) -> None:
        start = self._at
        one = self._glob[start]
        self._at += 1
        if one == "?":
            self._put("[^/]")
        elif one == "*":
            self._stars(start)
        elif one == "[":
            self._set(start)
        elif one == "{":
            self._open.append((start, self._now, []))
            self._now = [()]
        elif one == "}":
            self._close(start)
        elif one == "," and self._open:
            self._open[-1][2].extend(self._now)
            self._now = [()]
        elif one == "\\":
            if self._at == len(self._glob):
                raise GlobError(self._glob, "a lone backslash", start)
            self._put(re.escape(self._glob[self._at]))
            self._at += 1
        else:
            self._put(re.escape(one))

    def _put(self, sign: str) -> None:
        self._now = [(*choice, sign) for choice in self._now]

    def _peek(self) -> str:
        return self._glob[self._at : self._at + 1]

    def _stars(self, start: int) -> None:
        if self._peek() != "*":
            self._put(_STAR)
            return
        self._at += 1
        following = self._peek()
        before = self._glob[start - 1] if start else ""
        ends = following == "" or (following in ",}" and bool(self._open))
        if self._now == [()]:
            whole = following in ("", "/")
            self._put(_FOLDERS if whole else _STAR)
            self._at += whole
        elif before not in ("/", *((",", "{") if self._open else ())):
            self._put(_STAR)
        elif ends or following == "/":
            # In the place of the slash before, unless that belongs to stars already. Where nothing
            # is before the slash, a name of no letters is.
            wild = _INSIDE if ends else _FOLDERS
            self._now = [
                choice
                if choice[-1:] in ((_FOLDERS,), (_INSIDE,))
                else (*(choice[:-1] or ("",)), wild)
                for choice in self._now
            ]
            self._at += not ends
        else:
            self._put(_STAR)

    def _set(self, start: int) -> None:
        """A set of characters, which is closed by the first `]` that is not its first member."""
        negated = self._glob.startswith(("!", "^"), start + 1)
        end = self._glob.find("]", start + 2 + negated)
        if end < 0 and self._lenient:
            self._put(re.escape("["))
            return
        if end < 0:
            raise GlobError(self._glob, "this [ is never closed", start)
        members = self._glob[start + 1 + negated : end]
        spelled = ""
        at = 0
        while at < len(members):
            low = members[at]
            if members[at + 1 : at + 2] == "-" and at + 2 < len(members):
                high = members[at + 2]
                if high < low:
                    raise GlobError(self._glob, "this range leads nowhere", start + 1 + at)
                spelled += f"{re.escape(low)}-{re.escape(high)}"
                at += 3
            else:
                spelled += re.escape(low)
                at += 1
        self._at = end + 1
        self._put(f"(?!/)[{'^' * negated}{spelled}]")

    def _close(self, start: int) -> None:
        if not self._open:
            raise GlobError(self._glob, "a } without its {", start)
        _, before, others = self._open.pop()
        # An alternative that is empty is none.
        inner = [choice for choice in (*others, *self._now) if choice]
        if len(before) * len(inner) > _MOST_CHOICES:
            raise GlobError(self._glob, f"more than {_MOST_CHOICES} alternatives", start)
        self._now = [(*one, *other) for one in before for other in inner] or [
            (*one, "") for one in before
        ]


def _joined(signs: tuple[str, ...]) -> str:
    """The expression for one list of signs.

    The text after a star is matched at its first occurrence, in an atomic group: a later one
    could not help the rest. Only the last star of a name and the last `**`, which must reach the
    end, may backtrack.
    """
    if signs == (_FOLDERS,):
        return ".*"
    names: list[list[str]] = [[]]
    runs: list[list[list[str]]] = [names]
    inside = signs[-1:] == (_INSIDE,)
    for sign in signs[: len(signs) - inside]:
        if sign in (_FOLDERS, _INSIDE):
            names = [[]]
            runs.append(names)
        elif sign == "/":
            names.append([])
        else:
            names[-1].append(sign)
    regex = "" if runs[0] == [[]] and len(runs) > 1 else "/".join(map(_name, runs[0]))
    for number, run in enumerate(runs[1:], 2):
        slash = "/" if regex else ""
        body = f"{slash}(?:[^/]*/)*?{'/'.join(map(_name, run))}"
        regex += body if number == len(runs) else f"(?>{body})"
    return f"(?:{regex}{'/.*' if inside else ''})"


def _name(signs: list[str]) -> str:
    """The expression for one part of a path, to its end."""
    pieces = [""]
    for sign in signs:
        if sign == _STAR:
            pieces.append("")
        else:
            pieces[-1] += sign
    first, *others = pieces
    if not others:
        return f"{first}(?![^/])"
    middle = "".join(f"(?>[^/]*?{piece})" for piece in others[:-1] if piece)
    return f"{first}{middle}[^/]*{others[-1]}(?![^/])"


# Stands for `**`.
_ANY = None
_WILD = re.compile(r"[*?\[]")
_MOST_BRACES = 64
# Characters that show nothing and that some file systems leave out when comparing.
_IGNORED = re.compile("[\xad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")

Part = re.Pattern[str] | str | None


def fold(text: str) -> str:
    """A text in the form in which names count as equal on any file system."""
    if text.isascii():
        return text.lower()
    import unicodedata

    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
    return _IGNORED.sub("", folded)


def is_wild(part: str) -> bool:
    """Whether a part of a pattern has a wildcard in it."""
    return _WILD.search(part) is not None


def expand_braces(pattern: str) -> list[str]:
    """`a.{b,c}` as `a.b` and `a.c`; a pattern without complete braces as it is."""
    done: list[str] = []
    todo = [pattern]
    while todo:
        text = todo.pop()
        match = re.search(r"\{([^{}]*,[^{}]*)\}", text)
        if match is None or len(todo) + len(done) > _MOST_BRACES:
            done.append(text)
            continue
        head, tail = text[: match.start()], text[match.end() :]
        todo.extend(head + choice + tail for choice in match[1].split(","))
    return done


@lru_cache(maxsize=4096)
def compile_parts(parts: tuple[str, ...], *, folded: bool) -> tuple[Part, ...]:
    """A pattern's parts, ready for `matches`; `folded` ones are compared with folded paths."""
    return tuple(_compile(fold(part) if folded else part) for part in parts)


def matches(pattern: Sequence[Part], parts: Sequence[str], *, below: bool) -> bool:
    """Whether the pattern fits these parts of a path; with `below`, also one of the folders above.

    Takes time in proportion to both lengths for any pattern.
    """
    end = len(pattern)
    states = _closure({0}, pattern)
    for part in parts:
        if below and end in states:
            return True
        following = set()
        for state in states:
            if state == end:
                continue
            wanted = pattern[state]
            if wanted is _ANY:
                following.add(state)
            elif wanted == part if isinstance(wanted, str) else wanted.fullmatch(part):
                following.add(state + 1)
        states = _closure(following, pattern)
        if not states:
            return False
    return end in states


def _closure(states: set[int], pattern: Sequence[Part]) -> set[int]:
    for state in list(states):
        while state < len(pattern) and pattern[state] is _ANY:
            state += 1
            states.add(state)
    return states


def _compile(part: str) -> Part:
    if part == "**":
        return _ANY
    if not is_wild(part):
        return part
    # Between two stars, the first place that fits is as good as any: no way back is needed.
    pieces = [_translate(piece) for piece in re.split(r"\*+", part)]
    middle = "".join(f"(?>.*?{piece})" for piece in pieces[1:-1] if piece)
    tail = f".*{pieces[-1]}" if len(pieces) > 1 else ""
    return re.compile(f"{pieces[0]}{middle}{tail}", re.DOTALL)


def _translate(piece: str) -> str:
    """A piece of a pattern without stars as a regular expression."""
    found = []
    at = 0
    while at < len(piece):
        char = piece[at]
        at += 1
        if char == "?":
            found.append(".")
        elif char == "[":
            close = piece.find("]", at + 1 + (piece[at : at + 1] in ("!", "^")))
            if close < 0:
                found.append(r"\[")
                continue
            found.append(_translate_class(piece[at:close]))
            at = close + 1
        else:
            found.append(re.escape(char))
    return "".join(found)


def _translate_class(inside: str) -> str:
    negated = inside[:1] in ("!", "^")
    body = inside[1:] if negated else inside
    ranges = []
    at = 0
    while at < len(body):
        if body[at + 1 : at + 2] == "-" and at + 2 < len(body):
            first, last = body[at], body[at + 2]
            if first <= last:
                ranges.append(f"{re.escape(first)}-{re.escape(last)}")
            at += 3
        else:
            ranges.append(re.escape(body[at]))
            at += 1
    if not ranges:
        return "." if negated else "(?!)"
    return f"[{'^' if negated else ''}{''.join(ranges)}]"


class Patterns:
    """Some patterns, ready to be held against paths with slashes, relative to a top folder."""

    __slots__ = ("_patterns",)

    def __init__(self, patterns: Iterable[str] | None) -> None:
        self._patterns: list[tuple[Part, ...]] = []
        for given in patterns or ():
            for pattern in expand_braces(given):
                parts = tuple(part for part in pattern.split("/") if part not in ("", "."))
                if not parts:
                    continue
                if "/" not in pattern.rstrip("/"):
                    parts = ("**", *parts)
                self._patterns.append(compile_parts(parts, folded=False))

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def fit(self, path: str) -> bool:
        """Whether one of the patterns fits a path, or a folder above it."""
        if not self._patterns:
            return False
        parts = path.split("/")
        return any(matches(pattern, parts, below=True) for pattern in self._patterns)


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
        texts: set[str] = set()
        for _, rules, lead in self._levels:
            texts |= rules.touched(lead, names)
        return texts

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
