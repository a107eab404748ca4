"""Streamed Markdown: cut into finished blocks, each rendered as terminal lines."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from hermes.interfaces.cli.terminal import colours, safe, styled, wrapped

if TYPE_CHECKING:
    from typing import Any


_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)$")
_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?:\s|$)")
_HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")
# Long code is shown in pieces of so many lines.
_CODE_LINES = 24


class Block(NamedTuple):
    """A block of Markdown; `close` joins it to the one before without a blank line."""

    text: str
    close: bool = False
    # For code: the info string of its fence. None for everything else.
    code: str | None = None


class Blocks:
    """Splitter for streamed Markdown: feed pieces of text, get finished blocks."""

    def __init__(self) -> None:
        self._line = ""
        self._lines: list[str] = []
        self._blank = 0
        self._fence = ""
        self._info = ""
        self._close = False

    @property
    def pending(self) -> str:
        """The text that is not yet part of a finished block."""
        return "\n".join([*self._lines, self._line])

    def feed(self, text: str) -> list[Block]:
        """Take a piece of text; the blocks that it completes."""
        *lines, rest = text.replace("\r\n", "\n").split("\n")
        blocks: list[Block] = []
        for line in lines:
            blocks += self._take(self._line + line)
            self._line = ""
        self._line += rest
        return blocks

    def end(self) -> list[Block]:
        """The rest as blocks."""
        blocks = self._take(self._line) if self._line else []
        self._line = ""
        if self._fence:
            blocks += self._code()
            self._fence = ""
        else:
            blocks += self._cut(close=False)
        return blocks

    def _take(self, line: str) -> list[Block]:
        if self._fence:
            return self._in_code(line)
        if not line.strip():
            self._blank += bool(self._lines)
            return [] if self._in_list() else self._cut(close=False)
        fence = _FENCE.match(line)
        if fence and not (fence[1][0] == "`" and "`" in fence[2]) and not self._belongs(line):
            blocks = self._cut(close=False)
            self._fence, self._info = fence[1], fence[2].strip()
            return blocks
        blocks = []
        if self._in_list():
            if _ITEM.match(line) and not line.startswith("  "):
                blocks = self._cut(close=not self._blank)
            elif self._blank and not self._belongs(line):
                blocks = self._cut(close=False)
        elif _ITEM.match(line) or _HEADING.match(line):
            blocks = self._cut(close=False)
        self._lines += [""] * self._blank
        self._blank = 0
        self._lines.append(line)
        return blocks + self._cut(close=False) if self._is_heading() else blocks

    def _in_list(self) -> bool:
        return bool(self._lines) and _ITEM.match(self._lines[0]) is not None

    def _is_heading(self) -> bool:
        return len(self._lines) == 1 and _HEADING.match(self._lines[0]) is not None

    def _belongs(self, line: str) -> bool:
        """Whether a line continues the current list item."""
        return self._in_list() and line.startswith(("  ", "\t"))

    def _cut(self, *, close: bool) -> list[Block]:
        """The current block, if any; `close` joins the next one to it."""
        lines, self._lines, self._blank = self._lines, [], 0
        was_close, self._close = self._close, close
        return [Block("\n".join(lines), was_close)] if lines else []

    def _in_code(self, line: str) -> list[Block]:
        mark = line.strip()
        if mark and not mark.strip(self._fence[0]) and len(mark) >= len(self._fence):
            blocks = self._code()
            self._fence, self._close = "", False
            return blocks
        self._lines.append(line)
        if len(self._lines) < _CODE_LINES:
            return []
        blocks = self._code()
        self._close = True
        return blocks

    def _code(self) -> list[Block]:
        lines, self._lines = self._lines, []
        if not lines and self._close:
            # The fence closed right after a piece that was returned already.
            return []
        return [Block("\n".join(lines), self._close, self._info)]


_STYLE = re.compile(r"\x1b\[[0-9;]*m")
# Blanks that pad a line to the width of the window.
_PADDING = re.compile(r"[ ]+((?:\x1b\[[0-9;]*m)*)$")
_HEADING_TEXT = re.compile(r" {0,3}#{1,6}\s+(.*?)(?:\s+#+)?\s*$")
_CODE_STYLE = "ansi_dark"


def rendered(block: Block, width: int) -> str:
    """A block as terminal lines; plain text where styles are unwanted or would lose letters."""
    text = safe(block.text)
    if block.code is not None:
        return _code(text, block.code, width)
    if not _has_rich():
        return "\n".join(wrapped(text, width))
    # One column less: a terminal may wrap, or not, after a character in its last one.
    output = _printed(_markdown(text), max(width - 1, 10))
    return "\n".join(wrapped(text, width)) if _lossy(text, output) else output


def _code(text: str, language: str, width: int) -> str:
    name = language.split()[0] if language.split() else ""
    if not name or not colours() or not _has_rich():
        return "\n".join(_indented(text))
    from rich.syntax import Syntax

    syntax = Syntax(
        text, name, theme=_CODE_STYLE, background_color="default", word_wrap=False, tab_size=4
    )
    longest = max((len(line) for line in text.split("\n")), default=0)
    # As wide as the code: the terminal wraps it, and copied lines stay whole.
    output = _printed(syntax, max(2 * longest, width))
    return "\n".join(_indented(text if _lossy(text, output) else output))


def _indented(text: str) -> list[str]:
    bar = styled("│", "dim")
    return [f"{bar} {line}".rstrip() for line in text.split("\n")]


def _markdown(text: str) -> Any:
    from markdown_it import MarkdownIt
    from rich.markdown import Markdown

    # Tags, link definitions and entities are shown as text: rich would drop them.
    parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
    parser.disable(["reference", "entity", "image"])
    heading = _HEADING_TEXT.match(text)
    if heading and "\n" not in text:
        parser.disable(["list", "blockquote", "hr", "heading", "code", "fence"])
        text = heading[1]
    markdown = Markdown(
        "", code_theme=_CODE_STYLE, hyperlinks=False, style="bold" if heading else "none"
    )
    markdown.parsed = parser.parse(text)
    for token in markdown.parsed:
        for child in token.children or ():
            # Line ends are kept: verses, addresses, lines of a log.
            child.type = "hardbreak" if child.type == "softbreak" else child.type
    return markdown


def _printed(renderable: Any, width: int) -> str:
    from io import StringIO

    from rich.console import Console

    output = StringIO()
    console = Console(
        file=output,
        width=width,
        force_terminal=colours(),
        color_system="standard" if colours() else None,
        legacy_windows=False,
        emoji=False,
        highlight=False,
        markup=False,
    )
    console.print(renderable)
    lines = [_PADDING.sub(r"\1", line) for line in output.getvalue().split("\n")]
    while lines and not _STYLE.sub("", lines[0]).strip():
        lines.pop(0)
    while lines and not _STYLE.sub("", lines[-1]).strip():
        lines.pop()
    return "\n".join(lines)


def _lossy(text: str, output: str) -> bool:
    """Whether the rendered output lacks letters of the text."""
    return bool(_letters(text) - _letters(_STYLE.sub("", output)))


def _letters(text: str) -> Counter[str]:
    return Counter(character for character in text if character.isalnum())


@cache
def _has_rich() -> bool:
    from importlib.util import find_spec

    return find_spec("rich") is not None and find_spec("markdown_it") is not None
