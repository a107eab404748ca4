"""A document taken apart: prose, code, comments and front matter, each with where it stands."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    Kind = Literal["prose", "code", "comment", "front"]

_FENCE = re.compile(r"[ \t>]*(?P<fence>`{3,}|~{3,})[ \t]*(?P<language>[\w+#.\-]*)")
_HEADING = re.compile(r"[ \t]{0,3}#{1,6}[ \t]+(?P<title>.*)")
_COMMENT = re.compile(
    r"<!--(?P<html>.*?)(?:-->|\Z)|^\[[^\]\n]{1,40}\]:[ \t]*(?:#|<>)[ \t]*(?P<link>[(\"'].*)$",
    re.DOTALL | re.MULTILINE,
)
# A paragraph longer than this is read in parts, so that reading takes time in step with its length.
_LONGEST = 4_000
_OVERLAP = 500


class Piece(NamedTuple):
    """A part of a document: what it is, its text, its first line, and the words that lead to it."""

    kind: Kind
    text: str
    line: int
    language: str = ""
    context: str = ""


def pieces_of(text: str) -> Iterator[Piece]:
    """The parts of a Markdown document, in order; paragraphs are pieces of their own."""
    lines = text.split("\n")
    at = 0
    if lines and lines[0].strip() == "---":
        end = next((n for n in range(1, len(lines)) if lines[n].strip() in ("---", "...")), 0)
        if end:
            yield Piece("front", "\n".join(lines[1:end]), 2)
            at = end + 1
    yield from _comments(text, at)
    yield from _body(lines, at)


def _comments(text: str, after: int) -> Iterator[Piece]:
    fenced = _fenced_lines(text)
    for match in _COMMENT.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if line > after and line not in fenced:
            yield Piece("comment", match["html"] or match["link"] or "", line)


def _fenced_lines(text: str) -> set[int]:
    inside: set[int] = set()
    fence = ""
    for number, line in enumerate(text.split("\n"), 1):
        match = _FENCE.match(line)
        if fence:
            inside.add(number)
            if match and match["fence"].startswith(fence) and not match["language"]:
                fence = ""
        elif match:
            fence = match["fence"]
    return inside


def _body(lines: list[str], at: int) -> Iterator[Piece]:
    headings: list[str] = []
    before: list[str] = []
    while at < len(lines):
        line = lines[at]
        fence = _FENCE.match(line)
        if fence:
            end = _fence_end(lines, at + 1, fence["fence"])
            context = "\n".join([*headings[-2:], *before[-2:]])
            body = "\n".join(lines[at + 1 : end])
            yield Piece("code", body, at + 2, fence["language"].lower(), context)
            at = end + 1
            continue
        heading = _HEADING.match(line)
        if heading:
            headings = [*headings[-3:], heading["title"]]
            before = []
            yield Piece("prose", line, at + 1)
            at += 1
            continue
        start = at
        while at < len(lines) and lines[at].strip() and not _FENCE.match(lines[at]):
            at += 1
        if at > start:
            paragraph = "\n".join(lines[start:at])
            context = "\n".join([*headings[-2:], *before[-1:]])
            yield from _parts(Piece("prose", paragraph, start + 1, context=context))
            before = [*before[-1:], paragraph[-_LONGEST:]]
        else:
            at += 1


def _parts(piece: Piece) -> Iterator[Piece]:
    """A piece, or overlapping parts of one that is longer than any paragraph."""
    step = _LONGEST - _OVERLAP
    for at in range(0, max(1, len(piece.text) - _OVERLAP), step):
        line = piece.line + piece.text.count("\n", 0, at)
        yield piece._replace(text=piece.text[at : at + _LONGEST], line=line)


def _fence_end(lines: list[str], at: int, fence: str) -> int:
    while at < len(lines):
        match = _FENCE.match(lines[at])
        if match and match["fence"].startswith(fence) and not match["language"]:
            return at
        at += 1
    return len(lines)
