"""Brace expansion: `a{b,c}d`, `{1..5}`, bounded whatever is asked for."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from hermes.safety.shell.scope import HOLE

if TYPE_CHECKING:
    from hermes.safety.shell.protocols import Substituter

_MOST = 256
_DEEPEST = 40
_WIDEST = 100_000
_RANGE = re.compile(
    r"(-?\d+)\.\.(-?\d+)(?:\.\.(-?\d+))?\Z|([A-Za-z])\.\.([A-Za-z])(?:\.\.-?\d+)?\Z"
)
_TOKEN = re.compile(r"['\"\\$`{},]|[<>](?=\()")


class _TooManyError(Exception):
    """More spellings than anyone would mean."""


def expand_braces(raw: str, shell: Substituter) -> list[str] | None:
    """The spellings that braces multiply a word into; None when nothing is to be expanded."""
    done: list[str] = []
    waiting = [raw]
    expanded = False
    while waiting:
        text = waiting.pop()
        try:
            group = _first_group(text)
        except _TooManyError:
            shell.too_large()
            return [*done, HOLE]
        if group is None:
            done.append(text)
        else:
            expanded = True
            start, end, choices = group
            head, tail = text[:start], text[end:]
            waiting.extend(head + choice + tail for choice in reversed(choices))
        if len(done) + len(waiting) > _MOST or sum(map(len, waiting)) > 100_000:
            shell.too_large()
            return [*done, HOLE]
    return done if expanded else None


def _first_group(text: str) -> tuple[int, int, list[str]] | None:
    """The first brace group that bash would expand: where it is and what it offers."""
    opened: list[int] = []
    commas: list[list[int]] = []
    index = 0
    while found := _TOKEN.search(text, index):
        token, at = found.group(), found.start()
        index = found.end()
        if token == "\\":
            index = at + 2
        elif token in "'\"`":
            close = text.find(token, index)
            while token != "'" and close > 0 and text[close - 1] == "\\":
                close = text.find(token, close + 1)
            if close < 0:
                return None
            index = close + 1
        elif token in "$<>":
            if text.startswith(("{", "("), index):
                index = _skip(text, index)
        elif token == "{":
            if len(opened) > _DEEPEST:
                raise _TooManyError
            opened.append(at)
            commas.append([])
        elif token == "," and opened:
            commas[-1].append(at)
        elif token == "}" and opened:
            start, cuts = opened.pop(), commas.pop()
            if cuts and not opened:
                edges = [start, *cuts, at]
                pairs = pairwise(edges)
                return start, at + 1, [text[left + 1 : right] for left, right in pairs]
            if not cuts:
                choices = _range(text[start + 1 : at])
                if choices:
                    return start, at + 1, choices
    return None


def _skip(text: str, index: int) -> int:
    closer = "}" if text[index] == "{" else ")"
    opener, depth = text[index], 0
    for at in range(index, len(text)):
        if text[at] == opener:
            depth += 1
        elif text[at] == closer:
            depth -= 1
            if not depth:
                return at + 1
    return len(text)


def _range(text: str) -> list[str]:
    found = _RANGE.match(text)
    if not found:
        return []
    if found[4]:
        first, last = ord(found[4]), ord(found[5])
        step = 1 if last >= first else -1
        return [chr(code) for code in range(first, last + step, step)]
    if len(text) > 40:
        raise _TooManyError
    first, last, by = int(found[1]), int(found[2]), abs(int(found[3] or 1)) or 1
    step = by if last >= first else -by
    if abs(last - first) // by > _WIDEST:
        raise _TooManyError
    numbers = range(first, last + (1 if step > 0 else -1), step)
    # A long range says nothing more about danger than its ends do.
    if len(numbers) > 24:
        return [str(first), str(last), HOLE]
    return [str(number) for number in numbers]
