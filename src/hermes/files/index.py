"""What streaming a file once tells of it, and where in it each line is to be found.

The count of line ends is kept at every 64 KB: a line is then found by reading one such piece.
"""

from __future__ import annotations

import codecs
import os
import time
from bisect import bisect_left
from typing import TYPE_CHECKING

from hermes.files.text import codec_of, decode, unicode_of, width_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
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
        """The same for what is in memory, and its text as it can be shown."""
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
    """What changes when a file does, as far as its status tells; empty where there is none."""
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
    """Finds out, piece by piece, what a text of bytes is written in."""

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
        from hermes.files.guess import guess, whole

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
