"""Markdown blocks of a memory file: list items, paragraphs, headings; edits keep other bytes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_BULLET = re.compile(r"[-*+][ \t]+(?=\S)")
_HEADING = re.compile(r"#{1,6}(?:[ \t]|$)")
_INDENT = re.compile(r" {1,2}|\t")
_BOM = "\ufeff"
_SEPARATOR = "§"  # between entries in files of other programs


class Block(NamedTuple):
    """A block: its span in the file, and its text without bullet and indentation."""

    start: int
    end: int
    text: str
    heading: bool = False

    @property
    def chars(self) -> int:
        """Its size in the file."""
        return self.end - self.start


def entries(text: str) -> list[Block]:
    """The entries of a file: every block but headings, in order."""
    return [block for block in blocks(text) if not block.heading]


def blocks(text: str) -> Iterator[Block]:
    """Every block of a file, in order."""
    start = end = position = 0
    kind = ""
    gap = False
    for match in _LINE.finditer(text):
        line = match[0].removeprefix(_BOM) if not match.start() else match[0]
        position = match.start() + len(match[0]) - len(line)
        bare = line.rstrip()
        if not bare or bare == _SEPARATOR:
            gap = True
            if bare and kind:
                yield _block(text, start, end, kind)
                kind = ""
            continue
        goes_on = (
            (kind == "item" and line[0] in " \t")
            or (kind == "paragraph" and not gap and not _begins(line))
        )  # fmt: skip
        if not goes_on:
            if kind:
                yield _block(text, start, end, kind)
            start, kind = position, _begins(line) or "paragraph"
        end, gap = match.end(), False
        if kind == "heading":
            yield _block(text, start, end, kind)
            kind = ""
    if kind:
        yield _block(text, start, end, kind)


def rendered(content: str, newline: str = "\n") -> str:
    """An entry as Markdown list item."""
    first, *more = content.split("\n")
    lines = [f"- {first}", *(f"  {line}" if line else "" for line in more)]
    return "".join(f"{line}{newline}" for line in lines)


def with_entry(text: str, content: str) -> str:
    """The file with one more entry at its end."""
    newline = newline_of(text)
    if text and text != _BOM and not text.endswith("\n"):
        text += newline
    return text + rendered(content, newline)


def without(text: str, gone: list[Block]) -> str:
    """The file without some of its blocks."""
    for block in sorted(gone, reverse=True):
        text = text[: block.start] + text[block.end :]
    return text


def with_replaced(text: str, old: list[Block], content: str) -> str:
    """The file with an entry instead of the first of these blocks, and without the others."""
    first, *others = sorted(old)
    text = without(text, others)
    return text[: first.start] + rendered(content, newline_of(text)) + text[first.end :]


def newline_of(text: str) -> str:
    """The line ending that most lines of a file have."""
    return "\r\n" if 2 * text.count("\r\n") > text.count("\n") else "\n"


def _begins(line: str) -> str:
    if _BULLET.match(line):
        return "item"
    return "heading" if _HEADING.match(line) else ""


def _block(text: str, start: int, end: int, kind: str) -> Block:
    lines = text[start:end].replace("\r\n", "\n").rstrip().split("\n")
    if kind == "item":
        lines[0] = _BULLET.sub("", lines[0], count=1)
        lines[1:] = [_INDENT.sub("", line, count=1) for line in lines[1:]]
    content = "\n".join(line.rstrip() for line in lines).strip()
    return Block(start, end, content, kind == "heading")
