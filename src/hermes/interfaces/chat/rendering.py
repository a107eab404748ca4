"""A block of Markdown as lines of a terminal; what can't be shown in style is shown as it is."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from hermes.interfaces.chat.text import colours, safe, styled, wrapped

if TYPE_CHECKING:
    from typing import Any

    from hermes.interfaces.chat.blocks import Block

_STYLE = re.compile(r"\x1b\[[0-9;]*m")
# Blanks that pad a line to the width of the window, before the style ends.
_PADDING = re.compile(r"[ ]+((?:\x1b\[[0-9;]*m)*)$")
_HEADING = re.compile(r" {0,3}#{1,6}\s+(.*?)(?:\s+#+)?\s*$")
_CODE_STYLE = "ansi_dark"


def rendered(block: Block, width: int) -> str:
    """Lines for a window of so many columns, with styles where they are wanted."""
    text = safe(block.text)
    if block.code is not None:
        return _code(text, block.code, width)
    if not _rich():
        return "\n".join(wrapped(text, width))
    # One column less: a terminal may wrap, or not, after a character in its last one.
    shown = _written(_markdown(text), max(width - 1, 10))
    if _lost(text, shown):
        return "\n".join(wrapped(text, width))
    return shown


def _code(text: str, language: str, width: int) -> str:
    name = language.split()[0] if language.split() else ""
    if not name or not colours() or not _rich():
        return "\n".join(_indented(text))
    from rich.syntax import Syntax

    syntax = Syntax(
        text, name, theme=_CODE_STYLE, background_color="default", word_wrap=False, tab_size=4
    )
    longest = max((len(line) for line in text.split("\n")), default=0)
    # As wide as the code is: the terminal wraps it, and what is copied from there is whole.
    shown = _written(syntax, max(2 * longest, width))
    return "\n".join(_indented(shown)) if not _lost(text, shown) else "\n".join(_indented(text))


def _indented(text: str) -> list[str]:
    bar = styled("│", "dim")
    return [f"{bar} {line}".rstrip() for line in text.split("\n")]


def _markdown(text: str) -> Any:
    from markdown_it import MarkdownIt
    from rich.markdown import Markdown

    # Tags, link definitions and the like are part of what was said: rich would leave them out.
    parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
    parser.disable(["reference", "entity", "image"])
    heading = _HEADING.match(text)
    if heading and "\n" not in text:
        parser.disable(["list", "blockquote", "hr", "heading", "code", "fence"])
        text = heading[1]
    shown = Markdown(
        "", code_theme=_CODE_STYLE, hyperlinks=False, style="bold" if heading else "none"
    )
    shown.parsed = parser.parse(text)
    for token in shown.parsed:
        for child in token.children or ():
            # A line that was ended stays ended: verses, addresses, lines of a log.
            child.type = "hardbreak" if child.type == "softbreak" else child.type
    return shown


def _written(what: Any, width: int) -> str:
    from io import StringIO

    from rich.console import Console

    paper = StringIO()
    console = Console(
        file=paper,
        width=width,
        force_terminal=colours(),
        color_system="standard" if colours() else None,
        legacy_windows=False,
        emoji=False,
        highlight=False,
        markup=False,
    )
    console.print(what)
    lines = [_PADDING.sub(r"\1", line) for line in paper.getvalue().split("\n")]
    while lines and not _STYLE.sub("", lines[0]).strip():
        lines.pop(0)
    while lines and not _STYLE.sub("", lines[-1]).strip():
        lines.pop()
    return "\n".join(lines)


def _lost(text: str, shown: str) -> bool:
    """Whether letters of the text are missing in what is shown, wherever they went."""
    return bool(_letters(text) - _letters(_STYLE.sub("", shown)))


def _letters(text: str) -> Counter[str]:
    return Counter(character for character in text if character.isalnum())


_found: list[bool] = []


def _rich() -> bool:
    if not _found:
        from importlib.util import find_spec

        _found.append(find_spec("rich") is not None and find_spec("markdown_it") is not None)
    return _found[0]
