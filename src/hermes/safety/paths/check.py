"""Path check: the decision on one path, by the file it resolves to and the rules in force."""

from __future__ import annotations

import os
import re
import stat
from typing import TYPE_CHECKING

from hermes.safety.paths.guards import (
    ForbiddenPathError,
    ResolvedPath,
    ResolveError,
    find_guard,
    join,
    resolve,
    split,
)
from hermes.text.globs import compile_parts, expand_braces, fold, is_wild, matches

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any


_LONGEST_PATH = 4096
_LONGEST_PART = 255

_DEVICE = re.compile(r"(?i:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])")
_SHORT_NAME = re.compile(r"[^.~ ]{1,6}~[0-9]{1,6}(?:\.[^.]{0,3})?")


def problem(path: str) -> str | None:
    """Why no file can have this path; None when one can."""
    if not path:
        return "the path is empty"
    if "\0" in path:
        return "the path has a NUL character in it"
    try:
        raw = os.fsencode(path)
    except UnicodeError:
        return "the path has characters that no file name can hold"
    if len(raw) > _LONGEST_PATH:
        return "the path is too long"
    if any(len(part) > _LONGEST_PART for part in raw.split(b"/")):
        return "a part of the path is too long"
    return None


def windows_reading(path: str) -> str | None:
    """The path as Windows would read it; None when that is the same.

    Back-slashes separate, a drive goes, a stream's name after a colon goes, dots and blanks at the
    end of a part go.
    """
    if not re.search(r"[\\:]|[. ](?:/|\Z)", path):
        return None
    text = path.replace("\\", "/")
    text = re.sub(r"\A(?://[?.]/)?[A-Za-z]:(?=/|\Z)", "", text)
    parts = []
    for part in text.split("/"):
        bare = part if part in (".", "..") else part.partition(":")[0].rstrip(". ")
        parts.append(bare if bare or not part else ".")
    reading = "/".join(parts)
    return None if reading == path else reading


def is_foreign_name(part: str) -> bool:
    """Whether Windows takes a part for a device, or for the short form of a longer name."""
    return _DEVICE.fullmatch(part) is not None or _SHORT_NAME.fullmatch(part) is not None


# Shells and some programs read this as a home folder, the system as a plain name.
_OTHERS_HOME = re.compile(r"~[A-Za-z_][\w.-]*(?:/|\Z)|~[+-](?:/|\Z)")


class PathRules:
    """The open paths, as glob patterns.

    A pattern is relative to the working directory unless it is absolute or starts with `~`. `*`,
    `?` and `[…]` stay inside one folder, `**` crosses any number of folders, `{a,b}` is either. An
    allow pattern that ends in a plain name covers everything below it. A deny pattern always does,
    ignores case and Unicode composition, and beats every allow pattern.
    """

    __slots__ = ("allow_read", "allow_write", "deny")

    def __init__(
        self,
        *,
        allow_read: Iterable[str] = (),
        allow_write: Iterable[str] = (),
        deny: Iterable[str] = (),
    ) -> None:
        self.allow_read = allow_read
        self.allow_write = allow_write
        self.deny = deny


class Decision:
    """Whether a path may be used, why not, and the place that it really leads to.

    `possible` is False when no file can be there at all, so that nothing is being kept from anyone.
    """

    __slots__ = ("allowed", "possible", "reason", "resolved")

    def __init__(
        self,
        allowed: bool,
        reason: str = "",
        *,
        resolved: str | None = None,
        possible: bool = True,
    ) -> None:
        self.allowed = allowed
        self.reason = reason
        self.resolved = resolved
        self.possible = possible

    def __repr__(self) -> str:
        return f"Decision({self.allowed}, {self.reason!r}, resolved={self.resolved!r})"


def check_path(
    path: str | os.PathLike[str],
    mode: str,
    *,
    rules: PathRules | Mapping[str, Any] | None,
    cwd: str | os.PathLike[str],
    home: str | os.PathLike[str],
) -> Decision:
    """Whether `path` may be read or written, judged by the place after resolving links.

    Nothing is opened. A path that doesn't exist yet is judged by where it would be made.

    Args:
        mode: `"read"` or `"write"`.
        rules: a `PathRules`, or a mapping or object with the same fields. None opens the working
            directory and nothing else.
    """
    text: object = os.fspath(path)
    if not isinstance(text, str):
        return Decision(False, "the path is not text")
    wrong = problem(text)
    if wrong:
        return Decision(False, wrong, possible=False)
    if mode not in ("read", "write"):
        return Decision(False, f"there is no mode {mode!r}")
    judge = _Judge(mode, rules, os.fspath(cwd), os.fspath(home))
    return judge.decide(text)


class _Judge:
    """One check: the mode, the rules and the places that patterns start from."""

    __slots__ = ("_cwd", "_home", "_mode", "_rules", "_workspace")

    def __init__(
        self, mode: str, rules: PathRules | Mapping[str, Any] | None, cwd: str, home: str
    ) -> None:
        self._mode = mode
        self._rules = rules
        self._home = _absolute(home)
        self._cwd = _absolute(cwd)
        # The working directory with its own links resolved.
        self._workspace: tuple[str, ...] = ()

    def decide(self, text: str) -> Decision:
        asked = self._from_here(text)
        wrong = problem(asked)
        if wrong:
            return Decision(False, wrong, possible=False)
        if _OTHERS_HOME.match(text):
            return Decision(False, f"{text!r} could mean somebody's home; write it out")
        try:
            self._workspace = resolve(self._cwd).parts
            place = resolve(asked)
        except ForbiddenPathError as error:
            return Decision(False, f"{text!r} is refused: {error}")
        except ResolveError as error:
            # Where it would lead depends on who takes the dots out, the system or a program.
            dotted = ".." in split(text)
            return Decision(False, f"{text!r} can't be used: {error}", possible=dotted)
        reason = self._closed(place) or self._foreign(text, place)
        return Decision(not reason, reason, resolved=place.path)

    def _from_here(self, text: str) -> str:
        if text == "~" or text.startswith("~/"):
            return self._home + text[1:]
        return text if _is_absolute(text) else f"{self._cwd}/{text}"

    def _closed(self, place: ResolvedPath) -> str:
        """Why this place is closed; empty when it is open."""
        wrong = problem(place.path)
        if wrong:
            return wrong
        status = place.status
        if status is not None and not (
            stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
        ):
            return f"{place.path} is not a file or folder but a device, pipe or socket"
        if self._mode == "write" and status is not None and _is_shared(status):
            return f"{place.path} has another name (a hard link), which a write would change too"
        return self._denied(place.parts) or self._unopened(place.parts)

    def _denied(self, parts: tuple[str, ...]) -> str:
        guard = find_guard(parts, self._mode, home=self._home)
        if guard:
            return f"{join(parts)} is {guard}"
        folded = [fold(part) for part in parts]
        for pattern in self._patterns("deny"):
            if self._denies(pattern, folded):
                return f"{join(parts)} is denied by the rule {pattern!r}"
        return ""

    def _unopened(self, parts: tuple[str, ...]) -> str:
        allowed = self._patterns(f"allow_{self._mode}")
        if any(self._allows(pattern, parts) for pattern in allowed):
            return ""
        return f"no rule allows to {self._mode} {join(parts)}"

    def _foreign(self, text: str, place: ResolvedPath) -> str:
        """Why a path is closed that another system would read differently; empty when it's open."""
        if any(map(is_foreign_name, place.parts[place.existing :])):
            return f"{text!r} is a device or a shortened name on some systems"
        reading = windows_reading(text)
        if reading is None:
            return ""
        parts: list[str] = []
        for part in split(self._from_here(reading or ".")):
            if part != "..":
                parts.append(part)
            elif parts:
                parts.pop()
        # A colon or a final dot is a way around a deny rule only; a back-slash also leads out.
        closed = self._denied(tuple(parts)) or (
            self._unopened(tuple(parts)) if "\\" in text else ""
        )
        return f"{text!r} could also be read as another path: {closed}" if closed else ""

    def _patterns(self, name: str) -> list[str]:
        rules = self._rules
        if rules is None:
            return [] if name == "deny" else ["."]
        get = getattr(rules, "get", None)
        value = get(name) if callable(get) else getattr(rules, name, None)
        if isinstance(value, str):
            value = [value]
        return [choice for pattern in value or () for choice in expand_braces(str(pattern))]

    def _denies(self, pattern: str, folded: list[str]) -> bool:
        for parts in self._bases(pattern, follow=True):
            if matches(compile_parts(parts, folded=True), folded, below=True):
                return True
        return False

    def _allows(self, pattern: str, parts: tuple[str, ...]) -> bool:
        below = pattern.endswith("/") or not is_wild(pattern.rpartition("/")[2])
        return any(
            matches(compile_parts(base, folded=False), parts, below=below)
            for base in self._bases(pattern, follow=False)
        )

    def _bases(self, pattern: str, *, follow: bool) -> list[tuple[str, ...]]:
        """The parts of a pattern from the root on, with links in its literal part resolved.

        With `follow`, the parts as written too. Otherwise links inside the working directory are
        not followed: a writer there could bend an allow rule to another path.
        """
        if not pattern or "\0" in pattern:
            return []
        parts = split(self._from_here(pattern))
        plain = next((at for at, part in enumerate(parts) if is_wild(part)), len(parts))
        literal, wild = parts[:plain], tuple(parts[plain:])
        found = []
        try:
            fixed = None if follow else self._workspace
            found.append(resolve(join(literal), fixed=fixed).parts + wild)
        except ResolveError:
            pass
        if follow and ".." not in literal:
            found.append((*literal, *wild))
        return list(dict.fromkeys(found))


def _is_shared(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) and status.st_nlink > 1


def _is_absolute(text: str) -> bool:
    if os.name == "nt":
        return text[1:3] in (":\\", ":/") or text[:1] in ("\\", "/")
    return text.startswith("/")


def _absolute(path: str) -> str:
    return path if _is_absolute(path) else f"{os.getcwd()}/{path}"
