"""Output of a command: head and tail of both streams in memory, the rest in a spill file; the
rolling log of a background command.
"""

from __future__ import annotations

import os
from collections import deque
from typing import TYPE_CHECKING

from hermes.core.home import home_path, make_private
from hermes.text.ansi import clean
from hermes.text.encoding import decode_console, live_decoder

if TYPE_CHECKING:
    from collections.abc import Callable


LARGEST = 32 * 1024 * 1024
# The rest of the disk is not ours to fill.
_SHARE = 10
_PIECE = 1 << 20


class Spill:
    """Takes in bytes up to a limit; `full` from then on. Nothing of it stays unless it is kept."""

    def __init__(self, folder: str | None = None, *, largest: int = LARGEST) -> None:
        self._folder = folder or home_path("artifacts")
        self.path = os.path.join(make_private(self._folder), f"{os.urandom(8).hex()}.new")
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        state = os.fstatvfs(self._file)
        self._room = min(largest, state.f_bavail * state.f_frsize // _SHARE)
        self.size = 0
        self.full = False
        self._ascii = True

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append the next piece, as far as it fits."""
        view = memoryview(data)
        if self.full:
            return
        if len(view) > self._room - self.size:
            view = view[: self._room - self.size]
            self.full = True
        self._ascii = self._ascii and bytes(view).isascii()
        try:
            while view:
                written = os.write(self._file, view)
                self.size += written
                view = view[written:]
        except OSError:
            # The disk is full; the file keeps its contents so far.
            self.full = True

    def keep(self) -> str:
        """Close the file and convert it to UTF-8; its path. It belongs to the caller."""
        os.close(self._file)
        if not self._ascii:
            self._make_text()
        return self.path

    def _make_text(self) -> None:
        decoder = live_decoder()
        draft = f"{self.path}.text"
        with open(self.path, "rb") as raw, open(draft, "xb", opener=_private) as text:
            while piece := raw.read(_PIECE):
                text.write(decoder.decode(piece).encode("utf-8", "replace"))
            text.write(decoder.decode(b"", True).encode("utf-8", "replace"))
        os.replace(draft, self.path)

    def discard(self) -> None:
        """Close and remove the file."""
        os.close(self._file)
        try:
            os.unlink(self.path)
        except FileNotFoundError:
            return


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


IN_MEMORY = 200 * 1024


class RollingLog:
    """Bytes by their offset. Those that fit neither in memory nor in the file are gone; then
    reading continues with the oldest that are left."""

    def __init__(self, make_spill: Callable[[], Spill] | None = None) -> None:
        self._make_spill = make_spill
        self._spill: Spill | None = None
        self._recent = bytearray()
        self.total = 0

    @property
    def path(self) -> str | None:
        """The file with all of it, once memory did not hold it."""
        return self._spill.path if self._spill is not None else None

    def feed(self, data: memoryview | bytes) -> None:
        """Append the next piece."""
        self.total += len(data)
        self._recent += data
        if self._spill is not None:
            self._spill.write(data)
        elif len(self._recent) > IN_MEMORY and self._make_spill is not None:
            self._spill = self._make_spill()
            self._spill.write(self._recent)
        if len(self._recent) > 2 * IN_MEMORY:
            del self._recent[:-IN_MEMORY]

    def read(self, offset: int, limit: int) -> tuple[bytes, int]:
        """Bytes from an offset on, and the offset they really start at."""
        oldest = self.total - len(self._recent)
        if offset < oldest and self._spill is not None and offset < self._spill.size:
            with open(self._spill.path, "rb") as file:
                file.seek(max(offset, 0))
                return file.read(limit), max(offset, 0)
        start = min(max(offset, oldest), self.total)
        return bytes(self._recent[start - oldest : start - oldest + limit]), start

    def tail(self, size: int) -> bytes:
        """The newest bytes."""
        return bytes(self._recent[-size:])

    def discard(self) -> None:
        """Delete the file."""
        if self._spill is not None:
            self._spill.discard()
            self._spill = None
            self._make_spill = None


HEAD = 256 * 1024
TAIL = 512 * 1024
OUT, ERR = 1, 2
_NAMES = {OUT: "out", ERR: "err"}


class Output:
    """Collected output: clean text of both streams; `left_out` counts dropped bytes."""

    __slots__ = ("left_out", "pieces", "spill", "total")

    def __init__(
        self, pieces: list[tuple[int, str]], total: int, left_out: int, spill: str | None
    ) -> None:
        # (stream, text) in the order of printing; stream 0 is a gap.
        self.pieces = pieces
        self.total = total
        self.left_out = left_out
        # The file that holds the whole, as bytes, when it was too much for memory.
        self.spill = spill

    @property
    def stdout(self) -> str:
        """The text of standard output."""
        return self._of(OUT)

    @property
    def stderr(self) -> str:
        """The text of standard error."""
        return self._of(ERR)

    @property
    def merged(self) -> str:
        """Both streams, as a terminal would have shown them."""
        return "".join(text for _, text in self.pieces)

    def turns(self) -> str:
        """The order of the streams, in lines: `out 3, err 1, out 2`; empty for one stream."""
        turns = [
            (_NAMES[stream], text.count("\n") + (not text.endswith("\n")))
            for stream, text in self.pieces
            if stream and text
        ]
        if len({name for name, _ in turns}) < 2:
            return ""
        return ", ".join(f"{name} {lines}" for name, lines in turns)

    def _of(self, stream: int) -> str:
        mine = [(kind, text) for kind, text in self.pieces if kind in (stream, 0)]
        if all(kind == 0 for kind, _ in mine):
            return ""
        return "".join(text for _, text in mine)


class Collector:
    """Feed pieces as they come; ask for the output at any time."""

    def __init__(
        self,
        *,
        head: int = HEAD,
        tail: int = TAIL,
        make_spill: Callable[[], Spill] | None = None,
    ) -> None:
        self._most_head = head
        self._most_tail = tail
        self._make_spill = make_spill
        self._spill: Spill | None = None
        self._head: list[tuple[int, bytearray]] = []
        self._head_size = 0
        self._tail: deque[tuple[int, bytearray]] = deque()
        self._tail_size = 0
        self.total = 0
        self.dropped = 0

    def feed(self, stream: int, data: memoryview | bytes) -> None:
        """Append the next piece of a stream."""
        view = memoryview(data)
        self.total += len(view)
        if self._spill is not None:
            self._spill.write(view)
        room = self._most_head - self._head_size
        if room > 0:
            _append(self._head, stream, view[:room])
            self._head_size += min(room, len(view))
            view = view[room:]
            if not view:
                return
        _append(self._tail, stream, view)
        self._tail_size += len(view)
        if self._tail_size > 2 * self._most_tail:
            self._shorten()

    def _shorten(self) -> None:
        """Let go of all but the end, in large steps."""
        if self._spill is None and self._make_spill is not None and not self.dropped:
            self._spill = self._make_spill()
            for _, piece in (*self._head, *self._tail):
                self._spill.write(piece)
        while self._tail_size > self._most_tail:
            over = self._tail_size - self._most_tail
            stream, oldest = self._tail.popleft()
            if len(oldest) > over:
                # A copy: cutting the front off in place would move as much.
                self._tail.appendleft((stream, oldest[over:]))
            gone = min(over, len(oldest))
            self._tail_size -= gone
            self.dropped += gone

    def recent(self, size: int = 4000) -> str:
        """The end of the output so far, as clean text."""
        data = b""
        for _, piece in reversed((*self._head, *self._tail)):
            data = bytes(piece[-size:]) + data
            if len(data) >= size:
                break
        return clean(decode_console(data[-size:], cut=True))

    def output(self, *, ansi: bool = False) -> Output:
        """The output so far."""
        gap = [(0, bytearray())] if self.dropped else []
        raw = _joined([*self._head, *gap, *self._tail])
        pieces: list[tuple[int, str]] = []
        for (stream, _), text in zip(raw, _decoded(raw), strict=True):
            shown = clean(text, ansi=ansi)
            if not stream:
                pieces.append((0, f"\n… {self.dropped} bytes left out …\n"))
            elif shown:
                pieces.append((stream, shown))
        path = self._spill.path if self._spill is not None else None
        return Output(pieces, self.total, self.dropped, path)

    def keep_spill(self) -> tuple[str, int] | None:
        """Close the spill file; its path and size. It belongs to the caller."""
        spill, self._spill = self._spill, None
        return None if spill is None else (spill.keep(), spill.size)

    def discard(self) -> None:
        """Delete the file."""
        if self._spill is not None:
            self._spill.discard()
            self._spill = None


def _append(
    pieces: list[tuple[int, bytearray]] | deque[tuple[int, bytearray]],
    stream: int,
    view: memoryview,
) -> None:
    # Long ones are kept apart, so that dropping the oldest costs no copying.
    if pieces and pieces[-1][0] == stream and len(pieces[-1][1]) < 65_536:
        pieces[-1][1].extend(view)
    else:
        pieces.append((stream, bytearray(view)))


def _joined(pieces: list[tuple[int, bytearray]]) -> list[tuple[int, bytearray]]:
    """Adjacent pieces of one stream joined."""
    joined: list[tuple[int, bytearray]] = []
    for stream, piece in pieces:
        if joined and joined[-1][0] == stream:
            joined[-1] = (stream, joined[-1][1] + piece)
        else:
            joined.append((stream, piece))
    return joined


def _decoded(pieces: list[tuple[int, bytearray]]) -> list[str]:
    """Each piece as text; a stream is read as a whole, for its characters may be split."""
    texts = [""] * len(pieces)
    for stream in (OUT, ERR):
        mine = [at for at, (kind, _) in enumerate(pieces) if kind == stream]
        runs: list[list[int]] = []
        for at in mine:
            # A gap separates runs, which are decoded apart.
            gap = runs and any(not pieces[i][0] for i in range(runs[-1][-1], at))
            if not runs or gap:
                runs.append([at])
            else:
                runs[-1].append(at)
        for number, run in enumerate(runs):
            carried = b""
            for place, at in enumerate(run):
                data = carried + bytes(pieces[at][1])
                carried = b""
                if place + 1 < len(run):
                    whole = len(data) - _unfinished(data)
                    data, carried = data[:whole], data[whole:]
                texts[at] = decode_console(data, cut=len(runs) > 1 or number > 0)
    return texts


def _unfinished(data: bytes) -> int:
    """How many bytes at the end are the beginning of a UTF-8 character."""
    for back in range(1, min(4, len(data) + 1)):
        byte = data[-back]
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return back if length > back else 0
        if byte < 0x80:
            return 0
    return 0
