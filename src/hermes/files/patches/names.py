"""The file names of unified diffs: quoted, prefixed, with a time stamp, or `/dev/null`."""

from __future__ import annotations

import re

NOTHING = "/dev/null"
_STAMP = re.compile(r"\s+(?:\d{4}-\d\d-\d\d[ T]\d\d:|\w{3} \w{3} [ \d]\d \d\d:\d\d:).*$")
_ESCAPE = re.compile(r'\\([abfnrtv"\\]|[0-7]{1,3})')
_CONTROL = dict(zip('abfnrtv"\\', '\a\b\f\n\r\t\v"\\', strict=True))
# `git diff` says with one letter where each side comes from: index, work tree, commit, object.
_SIDES = frozenset({"iw", "ci", "cw", "ow", "ba", "wi", "ic", "wc", "wo"})
_BACKUPS = (".orig", ".old", ".bak", "~")


def header_name(text: str) -> str:
    """The name behind `---` or `+++`, without quotes and time stamp."""
    name, tab, _ = text.partition("\t")
    if text.lstrip(" ").startswith('"'):
        return unquoted(text.strip(" "))
    # git puts a tab behind a name with spaces, so that one can see where it ends.
    return name if tab else _STAMP.sub("", name).strip()


def unquoted(text: str) -> str:
    """A name as git quotes it: in double quotes, bytes that are not ASCII in octal."""
    end = text.rfind('"')
    if not text.startswith('"') or end < 1:
        return text
    pieces: list[bytes] = []
    reached = 1
    for found in _ESCAPE.finditer(text, 1, end):
        pieces.append(text[reached : found.start()].encode(errors="surrogateescape"))
        code = found[1]
        pieces.append(_CONTROL[code].encode() if code in _CONTROL else bytes([int(code, 8) & 0xFF]))
        reached = found.end()
    pieces.append(text[reached:end].encode(errors="surrogateescape"))
    return b"".join(pieces).decode(errors="surrogateescape")


def git_names(rest: str) -> tuple[str, str] | None:
    """The two names of a `diff --git` line, None where spaces leave their border open."""
    if rest.startswith('"'):
        end = _closing(rest)
        return unquoted(rest[:end]), unquoted(rest[end:].strip())
    if rest.endswith('"'):
        start = rest.find(' "')
        return (rest[:start], unquoted(rest[start + 1 :])) if start > 0 else None
    borders = [place for place, character in enumerate(rest) if character == " "]
    if len(borders) == 1:
        return rest[: borders[0]], rest[borders[0] + 1 :]
    for place in borders:
        one, other = rest[:place], rest[place + 1 :]
        if one == other or (one[1:2] == "/" and one[2:] == other[2:]):
            return one, other
    return None


def without_prefixes(old: str, new: str, *, git: bool) -> tuple[str, str]:
    """Both names without the `a/` and `b/` that git puts in front; as they are otherwise.

    Its other letters count only behind a `diff --git` line.
    """
    if old == NOTHING:
        return old, new[2:] if new.startswith("b/") or _sided(new, git=git) else new
    if new == NOTHING:
        return old[2:] if old.startswith("a/") or _sided(old, git=git) else old, new
    sides = old[:1] + new[:1]
    prefixed = old[1:2] == new[1:2] == "/" and (sides == "ab" or (git and sides in _SIDES))
    return (old[2:], new[2:]) if prefixed else (old, new)


def _sided(name: str, *, git: bool) -> bool:
    return git and name[1:2] == "/" and name[:1] in "abciow"


def is_backup(old: str, new: str) -> bool:
    """Whether the first name is that of a copy kept before the second file was changed."""
    return any(old == new + ending for ending in _BACKUPS)


def _closing(text: str) -> int:
    place = 1
    while place < len(text) and text[place] != '"':
        place += 2 if text[place] == "\\" else 1
    return place + 1
