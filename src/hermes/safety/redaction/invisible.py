"""Text without invisible characters and escape sequences, with a map back to the original
offsets.
"""

from __future__ import annotations

import re
from functools import cache

from hermes.text.ansi import CONTROL, INVISIBLE, SEQUENCE

Span = tuple[int, int, str]

# Control and invisible characters as JSON or a programming language writes them.
_ESCAPED = (
    r"\\(?:(?:u001[bB]|x1[bB]|033|e)\[[0-9;?]*[A-Za-z]"
    r"|u(?:00(?:0[0-8bBcCeEfF]|1[0-9a-fA-F]|7[fF]|[aA][dD])|200[b-fB-F]|202[a-eA-E]"
    r"|20[6][0-9a-fA-F]|[fF][eE](?:0[0-9a-fA-F]|[fF]{2})|180[b-fB-F])|x(?:0[0-8]|1[0-9a-fA-F]|7[fF]))"
)


@cache
def _seen() -> re.Pattern[str]:
    return re.compile(f"(?:{SEQUENCE}|{_ESCAPED}|[{CONTROL}{INVISIBLE}])+")


@cache
def _plain_sign() -> re.Pattern[str]:
    # One set of characters is searched for much faster than a choice of sequences.
    return re.compile(f"[{CONTROL}{INVISIBLE}]")


@cache
def _escaped_sign() -> re.Pattern[str]:
    return re.compile(_ESCAPED)


@cache
def _joined() -> re.Pattern[str]:
    # Line ends too, also escaped ones: a known value may be wrapped over lines.
    return re.compile(rf"(?:{SEQUENCE}|{_ESCAPED}|\\[nrt]|[{CONTROL}{INVISIBLE}\s])+")


class VisibleText:
    """A text without invisible characters; `original(span)` maps a span back to the source."""

    __slots__ = ("_kept", "_starts", "text")

    def __init__(self, source: str, gaps: re.Pattern[str]) -> None:
        pieces: list[str] = []
        # For each kept piece: where it starts here, and where it starts in the source.
        self._starts: list[int] = []
        self._kept: list[int] = []
        at = length = 0
        for gap in gaps.finditer(source):
            if gap.start() > at:
                self._starts.append(length)
                self._kept.append(at)
                pieces.append(source[at : gap.start()])
                length += gap.start() - at
            at = gap.end()
        self._starts.append(length)
        self._kept.append(at)
        pieces.append(source[at:])
        self.text = "".join(pieces)

    def original(self, span: Span) -> Span:
        start, end, kind = span
        return self._place(start), self._place(end - 1) + 1, kind

    def _place(self, index: int) -> int:
        from bisect import bisect_right

        piece = bisect_right(self._starts, index) - 1
        return self._kept[piece] + index - self._starts[piece]


def visible_text(text: str, *, plain: bool) -> VisibleText | None:
    """`text` without invisible characters; None when it has none.

    `plain` says whether there can be any besides those written as escapes.
    """
    if "\\" in text and _escaped_sign().search(text):
        return VisibleText(text, _seen())
    if plain and _plain_sign().search(text):
        return VisibleText(text, _seen())
    return None


def bare_text(text: str) -> str:
    """`text` as `join_lines` would show it."""
    return _joined().sub("", text)


def join_lines(text: str) -> VisibleText | None:
    """`text` without invisible characters and white space; None when it has none."""
    return VisibleText(text, _joined()) if _joined().search(text) else None
