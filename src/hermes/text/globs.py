"""Globs as regular expressions: `*`, `?`, `**`, `[a-z]`, `{a,b}`, `\\` escapes; linear time."""

from __future__ import annotations

import re

from hermes.core.errors import ToolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

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
        choices = [one if one[:1] == (_FOLDERS,) else (_FOLDERS, *one) for one in choices]
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
