"""Pages of lines out of a text file of any size, in memory that does not grow with it.

A file is streamed once: its lines are counted, its bytes digested, its encoding found. Where each
piece of it stands in the count is kept while the file stays the same, so that any later page is
one jump away. Lines end at line feeds; in a file without any, at carriage returns.
"""

from __future__ import annotations

import codecs
import threading
from typing import TYPE_CHECKING, NamedTuple

from hermes.files.index import PIECE, Index, identity, scan, settled
from hermes.files.text import codec_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import BinaryIO

LIMIT = 500  # lines of a page
LINE = 2_000  # characters of a line that are shown
CHARACTERS = 100_000  # of a page, numbers included
_KEPT = 32  # files whose index is kept


class Page(NamedTuple):
    """Some lines of a file, and what is known of the whole of it."""

    lines: list[str]  # without line ends; what is cut off a long one is said at its end
    offset: int  # the number of the first one
    next_offset: int | None  # where to go on; None at the end
    total_lines: int
    size: int  # in bytes
    digest: str  # SHA-256 of all bytes
    encoding: str
    certain: bool  # whether the encoding is
    newline: str
    final_newline: bool
    cut: dict[int, int]  # line number -> characters that are not shown

    @property
    def text(self) -> str:
        """The lines with their numbers."""
        return numbered(self.lines, self.offset)


class LineReader:
    """Reads pages, and remembers where the lines of large files are."""

    def __init__(self, *, keep: int = _KEPT) -> None:
        self._keep = keep
        self._known: dict[tuple[int, ...], Index] = {}
        self._lock = threading.Lock()

    def page(
        self,
        file: BinaryIO,
        offset: int = 1,
        limit: int = LIMIT,
        *,
        max_line: int = LINE,
        max_chars: int = CHARACTERS,
        watch: Callable[[float], None] | None = None,
    ) -> Page:
        """Lines from `offset` on; what a file becomes meanwhile can't harm.

        Args:
            file: Open for reading, and seekable; where it stands doesn't matter.
            offset: The first line, from 1; negative numbers count from the end.
            limit: How many lines at most.
            max_line: Characters of a line, above which it is cut.
            max_chars: Characters of the numbered page, above which it ends; one line is always
                there.
            watch: Told from time to time which share of a long file was streamed; may raise.
        """
        file.seek(0)
        head = _filled(file)
        if len(head) < PIECE:
            return page_of(head, offset, limit, max_line=max_line, max_chars=max_chars)
        index = self._index(file, head, watch)
        first = _first(offset, index.total)
        found: Iterator[tuple[str, int]] = iter(())
        if first <= index.total:
            found = _streamed(file, index, first, max_line, watch)
        return _paged(found, first, limit, index, max_chars)

    def _index(self, file: BinaryIO, head: bytes, watch: Callable[[float], None] | None) -> Index:
        key = identity(file)
        with self._lock:
            index = self._known.pop(key, None) if key else None
            if key and index:
                self._known[key] = index  # the one used last goes last
                return index
        index = scan(file, head, watch)
        if key and key == identity(file) and settled(key, index):
            with self._lock:
                self._known[key] = index
                while len(self._known) > self._keep:
                    del self._known[next(iter(self._known))]
        return index


_shared = LineReader()
page = _shared.page


def page_of(
    data: bytes | str,
    offset: int = 1,
    limit: int = LIMIT,
    *,
    max_line: int = LINE,
    max_chars: int = CHARACTERS,
) -> Page:
    """A page of what is in memory already."""
    index, text = Index.of(data)
    first = _first(offset, index.total)
    *lines, rest = text.split(index.end)
    if index.newline in ("\r\n", "mixed"):
        lines = [line.removesuffix("\r") for line in lines]
    if rest:
        lines.append(rest)
    wanted = lines[first - 1 : first - 1 + limit]
    width = _width(index, first, limit)
    if max(map(len, wanted), default=0) <= max_line and (
        sum(map(len, wanted)) + len(wanted) * width <= max_chars
    ):
        return _page(wanted, first, index, {})
    found = (_cut(line, 0, max_line) for line in wanted)
    return _paged(found, first, limit, index, max_chars)


def numbered(lines: Iterable[str], start: int = 1) -> str:
    """Lines with their numbers, as `  12|text`."""
    lines = list(lines)
    width = len(str(start + len(lines) - 1))
    return "\n".join(
        [f"{str(number).rjust(width)}|{line}" for number, line in enumerate(lines, start)]
    )


def _first(offset: int, total: int) -> int:
    return max(1, total + 1 + offset if offset < 0 else offset)


def _paged(
    found: Iterable[tuple[str, int]], first: int, limit: int, index: Index, max_chars: int
) -> Page:
    lines: list[str] = []
    cut: dict[int, int] = {}
    room = max_chars
    width = _width(index, first, limit)
    number = first
    for line, lacking in found:
        room -= len(line) + width
        if len(lines) >= limit or (room < 0 and lines):
            break
        lines.append(line)
        if lacking:
            cut[number] = lacking
        number += 1
    return _page(lines, first, index, cut)


def _width(index: Index, first: int, limit: int) -> int:
    """Characters of a number, the sign behind it and the line end."""
    return len(str(min(index.total, first + limit))) + 2


def _page(lines: list[str], first: int, index: Index, cut: dict[int, int]) -> Page:
    following = first + len(lines)
    return Page(
        lines=lines,
        offset=first,
        next_offset=following if lines and following <= index.total else None,
        total_lines=index.total,
        size=index.size,
        digest=index.digest,
        encoding=index.encoding,
        certain=index.certain,
        newline=index.newline,
        final_newline=index.ended,
        cut=cut,
    )


def _streamed(
    file: BinaryIO,
    index: Index,
    first: int,
    max_line: int,
    watch: Callable[[float], None] | None,
) -> Iterator[tuple[str, int]]:
    """Lines from a number on, each with how many characters it lacks."""
    position = index.start_of(file, first)
    file.seek(position)
    decoder = codecs.getincrementaldecoder(codec_of(index.encoding))("replace")
    left = index.size - position  # what is added meanwhile is not part of it
    kept, lacking = "", 0
    while left > 0 and (piece := file.read(min(PIECE, left))):
        left -= len(piece)
        if watch and lacking:
            watch(1 - left / index.size)
        *whole, rest = decoder.decode(piece, final=left <= 0).split(index.end)
        for line in whole:
            yield _cut((kept + line).removesuffix("\r"), lacking, max_line)
            kept, lacking = "", 0
        kept += rest
        # One more than is shown: it may be the carriage return of the line end.
        lacking += max(0, len(kept) - max_line - 1)
        kept = kept[: max_line + 1]
    kept += decoder.decode(b"", final=True)
    if kept:
        yield _cut(kept, lacking, max_line)


def _cut(line: str, lacking: int, max_line: int) -> tuple[str, int]:
    """A line that is not too long, and how much of it is missing, `lacking` counted already."""
    lacking += max(0, len(line) - max_line)
    return (f"{line[:max_line]}… [{lacking:,} more characters]" if lacking else line), lacking


def _filled(file: BinaryIO) -> bytes:
    """The start of a file, as much as makes a piece."""
    head = file.read(PIECE)
    while 0 < len(head) < PIECE and (more := file.read(PIECE - len(head))):
        head += more
    return head
