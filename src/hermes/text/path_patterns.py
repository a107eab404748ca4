"""Path patterns, matched component by component: `**` spans directories, a directory match covers
its content.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


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
