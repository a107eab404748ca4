"""Where a value ends: between quotes, at the end of a word, at the end of a line."""

from __future__ import annotations

import re
from functools import cache

# A value is not read further than this.
LONGEST = 20_000


@cache
def word_value() -> re.Pattern[str]:
    """An unquoted value among other text."""
    return re.compile(r"(?:[^\s\"'`,;&|<>(){}\[\]\\]++|\\(?![nrtu\"'`\\]))++")


@cache
def line_value() -> re.Pattern[str]:
    """An unquoted value to the end of the word, whatever signs it has.

    An escaped line end or a quote that closes a surrounding text ends it.
    """
    return re.compile(r"(?:[^\s\"'`\\]++|['`](?=[^\s,;:)\]}'`\"])|\\(?![nrtu\"'`]))++")


def quoted_end(text: str, start: int, quote: str) -> int:
    """Where the value that opened with `quote` right before `start` ends."""
    mark = quote.lstrip("\\")
    depth = len(quote) - len(mark)
    limit = min(len(text), start + LONGEST)
    at = start
    while True:
        at = text.find(mark, at, limit)
        if at < 0:
            line = text.find("\n", start, limit)
            return limit if line < 0 or len(mark) == 3 else line
        first = at
        while first > start and text[first - 1] == "\\":
            first -= 1
        slashes = at - first
        if mark == "'" and not slashes and at > start and text[at + 1 : at + 2] == "'":
            # YAML and SQL write a quote inside as two.
            at += 2
            continue
        # A quote inside carries more backslashes than the one that opened the value.
        if slashes <= depth or (depth == 0 and slashes % 2 == 0):
            return at - min(depth, slashes)
        at += len(mark)
