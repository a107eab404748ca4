"""An answer that arrives in pieces, cut into blocks of Markdown that can be shown for good.

A block is complete when nothing that follows can change how it looks: a paragraph at its blank
line, an item of a list when the next one begins, code at its closing fence. Put together, the
blocks are the text.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)$")
_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?:\s|$)")
_HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")
# Code is shown in pieces of so many lines, so that nobody waits for the end of a long one.
_CODE_LINES = 24


class Block(NamedTuple):
    """A piece of Markdown. `close` says that it follows the one before without a blank line."""

    text: str
    close: bool = False
    # For code: what stood behind the fence. None for everything else.
    code: str | None = None


class Blocks:
    """Feed pieces, show the blocks that come back, end it."""

    def __init__(self) -> None:
        self._line = ""
        self._lines: list[str] = []
        self._blank = 0
        self._fence = ""
        self._info = ""
        self._close = False

    @property
    def pending(self) -> str:
        """What was fed and is not yet part of a block."""
        return "\n".join([*self._lines, self._line])

    def feed(self, text: str) -> list[Block]:
        """Take one more piece; the blocks that are complete now."""
        *whole, rest = text.replace("\r\n", "\n").split("\n")
        found: list[Block] = []
        for line in whole:
            found += self._take(self._line + line)
            self._line = ""
        self._line += rest
        return found

    def end(self) -> list[Block]:
        """The rest."""
        found = self._take(self._line) if self._line else []
        self._line = ""
        if self._fence:
            found += self._code()
            self._fence = ""
        else:
            found += self._cut(close=False)
        return found

    def _take(self, line: str) -> list[Block]:
        if self._fence:
            return self._in_code(line)
        if not line.strip():
            self._blank += bool(self._lines)
            return [] if self._in_list() else self._cut(close=False)
        fence = _FENCE.match(line)
        if fence and not (fence[1][0] == "`" and "`" in fence[2]) and not self._belongs(line):
            found = self._cut(close=False)
            self._fence, self._info = fence[1], fence[2].strip()
            return found
        found = []
        if self._in_list():
            if _ITEM.match(line) and not line.startswith("  "):
                found = self._cut(close=not self._blank)
            elif self._blank and not self._belongs(line):
                found = self._cut(close=False)
        elif _ITEM.match(line) or _HEADING.match(line):
            found = self._cut(close=False)
        self._lines += [""] * self._blank
        self._blank = 0
        self._lines.append(line)
        return found + self._cut(close=False) if self._is_heading() else found

    def _in_list(self) -> bool:
        return bool(self._lines) and _ITEM.match(self._lines[0]) is not None

    def _is_heading(self) -> bool:
        return len(self._lines) == 1 and _HEADING.match(self._lines[0]) is not None

    def _belongs(self, line: str) -> bool:
        """Whether a line is part of the item that was begun."""
        return self._in_list() and line.startswith(("  ", "\t"))

    def _cut(self, *, close: bool) -> list[Block]:
        """The block that was begun, if any; `close` is about the one that follows."""
        lines, self._lines, self._blank = self._lines, [], 0
        was_close, self._close = self._close, close
        return [Block("\n".join(lines), was_close)] if lines else []

    def _in_code(self, line: str) -> list[Block]:
        mark = line.strip()
        if mark and not mark.strip(self._fence[0]) and len(mark) >= len(self._fence):
            found = self._code()
            self._fence, self._close = "", False
            return found
        self._lines.append(line)
        if len(self._lines) < _CODE_LINES:
            return []
        found = self._code()
        self._close = True
        return found

    def _code(self) -> list[Block]:
        lines, self._lines = self._lines, []
        if not lines and self._close:
            # The fence closed right behind a piece that was shown already.
            return []
        return [Block("\n".join(lines), self._close, self._info)]
