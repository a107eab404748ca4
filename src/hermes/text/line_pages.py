"""Line pages: numbered lines of a text file of any size, by a line index that is built in one
pass.
"""

from __future__ import annotations

import codecs
import os
import threading
import time
from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

from hermes.text.encoding import codec_of, decode, unicode_of, width_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import BinaryIO


PIECE = 1 << 16
_WATCHED = 64  # pieces between two words to the watcher
_SAMPLES = 6  # pieces by which an encoding is judged
_TICK = 20_000_000  # ns within which two changes may carry the same time
_SECONDS = 2_000_000_000  # ... on disks that keep time in seconds


class Index:
    """A file as it was when it was streamed."""

    __slots__ = (
        "began", "bom", "certain", "counts", "digest", "encoding", "end", "ended", "newline",
        "size", "total",
    )  # fmt: skip

    def __init__(self) -> None:
        self.began = time.time_ns()
        self.size = 0
        self.digest = ""
        self.encoding = "utf-8"
        self.bom = b""
        self.certain = True
        self.newline = "\n"
        self.end = "\n"  # what lines are split at
        self.ended = True  # whether the last line is
        self.total = 0
        self.counts: list[int] = []  # line ends up to the end of each piece

    @classmethod
    def of(cls, data: bytes | str) -> tuple[Index, str]:
        """The index of data in memory, and its printable text."""
        import hashlib

        raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
        text = decode(raw)
        index = cls()
        index.size = len(raw)
        index.digest = hashlib.sha256(raw).hexdigest()
        index.encoding, index.bom, index.certain = text.encoding, text.bom, text.certain
        index.newline = text.newline
        shown = text.shown
        index.end = "\r" if text.newline == "\r" else "\n"
        index.ended = not shown or shown.endswith(index.end)
        index.total = shown.count(index.end) + (not index.ended)
        return index, shown

    def start_of(self, file: BinaryIO, line: int) -> int:
        """The byte that a line starts at."""
        if line <= 1:
            return len(self.bom)
        piece = bisect_left(self.counts, line - 1)
        ends = line - 1 - (self.counts[piece - 1] if piece else 0)
        file.seek(piece * PIECE)
        data = file.read(PIECE)
        codec = codec_of(self.encoding)
        if width_of(codec) == 1:
            return piece * PIECE + len(data) - len(data.split(self.end.encode(), ends)[-1])
        data = data[: len(data) - len(data) % width_of(codec)]
        rest = data.decode(codec, "surrogatepass").split(self.end, ends)[-1]
        return piece * PIECE + len(data) - len(rest.encode(codec, "surrogatepass"))


def identity(file: BinaryIO) -> tuple[int, ...]:
    """Device, inode, size and times of a file; empty where there is no status."""
    try:
        found = os.fstat(file.fileno())
    except (OSError, AttributeError):
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def settled(key: tuple[int, ...], index: Index) -> bool:
    """Whether a file changed so long before it was streamed that a later change would show."""
    changed = max(key[-2:]) if os.name == "nt" else key[-1]
    slack = _TICK if changed % 1_000_000_000 else _SECONDS
    return key[2] == index.size and changed + slack < index.began


def scan(file: BinaryIO, head: bytes, watch: Callable[[float], None] | None) -> Index:
    """Stream a file that stands behind its first piece."""
    import hashlib

    index = Index()
    expected = max((len(head), *identity(file)[2:3]))
    digest = hashlib.sha256()
    encoding, index.bom = unicode_of(head, whole=False)
    wide = width_of(encoding) > 1
    tally = _Tally()
    letters = _Letters()
    for number, piece in enumerate(_pieces(head, file)):
        digest.update(piece)
        index.size += len(piece)
        if wide:
            whole = len(piece) - len(piece) % width_of(encoding)
            tally.add(piece[:whole].decode(encoding, "surrogatepass"))
        else:
            tally.add(piece)
            letters.add(piece)
        if watch and number % _WATCHED == 0:
            watch(min(1.0, index.size / expected))
    index.digest = digest.hexdigest()
    if wide:
        index.encoding = encoding
    else:
        index.encoding, index.certain = letters.encoding(index.bom)
    tally.into(index)
    return index


class _Tally:
    """Counts line ends, piece by piece."""

    def __init__(self) -> None:
        self.feeds: list[int] = []
        self.returns: list[int] | None = []  # of no use once there is a line feed
        self.feed_count = self.return_count = self.both = 0
        self.last: bytes | str = b""

    def add(self, piece: bytes | str) -> None:
        if isinstance(piece, str):
            self._add(piece.count("\n"), piece.count("\r"), piece.count("\r\n"))
            self.both += self.last == "\r" and piece[:1] == "\n"
        else:
            returns = b"\r" in piece
            self._add(
                piece.count(b"\n"),
                piece.count(b"\r") if returns else 0,
                piece.count(b"\r\n") if returns else 0,
            )
            self.both += self.last == b"\r" and piece[:1] == b"\n"
        self.last = piece[-1:]

    def _add(self, feeds: int, returns: int, both: int) -> None:
        self.feed_count += feeds
        self.return_count += returns
        self.both += both
        self.feeds.append(self.feed_count)
        if self.feed_count:
            self.returns = None
        elif self.returns is not None:
            self.returns.append(self.return_count)

    def into(self, index: Index) -> None:
        if self.return_count and self.returns is not None:
            index.newline = index.end = "\r"
            index.counts = self.returns
        else:
            index.counts = self.feeds
            if self.return_count:
                same = self.both == self.return_count == self.feed_count
                index.newline = "\r\n" if same else "mixed"
        last = self.last if isinstance(self.last, str) else self.last.decode("latin-1")
        index.ended = last in ("", index.end)
        index.total = index.counts[-1] + (not index.ended)


class _Letters:
    """Detects the encoding, block by block."""

    def __init__(self) -> None:
        self.valid = True
        self.pending = b""
        self.samples: list[bytes] = []

    def add(self, piece: bytes) -> None:
        if (piece.isascii() and not self.pending) or len(self.samples) >= _SAMPLES:
            return
        if self.valid:
            data = self.pending + piece
            try:
                _, reached = codecs.utf_8_decode(data, "strict", False)
                self.pending = data[reached:]
                if self.samples:
                    return
            except UnicodeDecodeError:
                self.valid = False
        self.samples.append(piece)

    def encoding(self, bom: bytes) -> tuple[str, bool]:
        name = "utf-8-sig" if bom else "utf-8"
        if self.valid:
            return name, not self.pending
        if bom:
            return name, False
        from hermes.text.encoding import guess, whole

        return guess(b"\n".join(map(whole, self.samples)))


def _pieces(head: bytes, file: BinaryIO) -> Iterator[bytes]:
    """All pieces of a file; each but the last one is full."""
    piece = head
    while piece:
        while len(piece) < PIECE:
            more = file.read(PIECE - len(piece))
            if not more:
                yield piece
                return
            piece += more
        yield piece
        piece = file.read(PIECE)


LIMIT = 500  # lines of a page
LINE = 2_000  # characters of a line that are shown
CHARACTERS = 100_000  # of a page, numbers included
_KEPT = 32  # files whose index is kept


class Page(NamedTuple):
    """Some lines of a file, and properties of the whole file."""

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
        """Lines from `offset` on; concurrent changes of the file do no harm.

        Args:
            file: Open for reading and seekable, at any position.
            offset: The first line, from 1; negative numbers count from the end.
            limit: How many lines at most.
            max_line: Characters of a line, above which it is cut.
            max_chars: Characters of the numbered page, above which it ends; one line is always
                there.
            watch: Called with the share of a long file that was read; may raise.
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
    """A page of data in memory."""
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
