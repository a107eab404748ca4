"""One side of a comparison, and the part of two sides in which they differ."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

    from hermes.runtime.disk import Disk

CHUNK = 256 * 1024


class Side(NamedTuple):
    """Bytes with a name for people; `read` opens them anew each time."""

    label: str
    size: int
    read: Callable[[], BinaryIO]

    @classmethod
    def of_bytes(cls, label: str, data: bytes) -> Side:
        """A side that is in memory already."""
        return cls(label, len(data), lambda: io.BytesIO(data))

    @classmethod
    def of_file(cls, label: str, disk: Disk, place: str) -> Side:
        """A file on a disk."""
        found = disk.status(place)
        return cls(label, 0 if found is None else found.size, lambda: disk.open(place))


class Apart(NamedTuple):
    """Where two sides differ: equal before `head` bytes and in the last `tail` ones."""

    head: int
    tail: int
    lines: int  # how many lines end before `head`


def differing(old: Side, new: Side, check: Callable[[int], object]) -> Apart | None:
    """The part in which two sides differ; None when they are equal. `check` is told bytes read."""
    with old.read() as left, new.read() as right:
        head = lines = 0
        while True:
            a, b = read_exactly(left, CHUNK), read_exactly(right, CHUNK)
            check(len(a) + len(b))
            if a != b:
                equal = _common(a, b)
                head += equal
                lines += a.count(b"\n", 0, equal)
                break
            if not a:
                return None
            head += len(a)
            lines += a.count(b"\n")
        tail = 0
        most = min(old.size, new.size) - head
        while tail < most:
            size = min(CHUNK, most - tail)
            left.seek(old.size - tail - size)
            right.seek(new.size - tail - size)
            a, b = read_exactly(left, size), read_exactly(right, size)
            check(len(a) + len(b))
            if a != b:
                tail += _common(a[::-1], b[::-1])
                break
            tail += size
    return Apart(head, tail, lines)


def stretch(side: Side, start: int, end: int) -> bytes:
    """The bytes of a side from `start` to `end`."""
    with side.read() as file:
        file.seek(start)
        return read_exactly(file, end - start)


def read_exactly(file: BinaryIO, size: int) -> bytes:
    """As many bytes as there are, at most `size`: a raw file may give fewer at a time."""
    data = file.read(size) or b""
    if len(data) in (0, size):
        return data
    pieces = [data]
    size -= len(data)
    while size and (data := file.read(size)):
        pieces.append(data)
        size -= len(data)
    return b"".join(pieces)


def digest(side: Side, check: Callable[[int], object]) -> str:
    """The SHA-256 of a side."""
    import hashlib

    found = hashlib.sha256()
    with side.read() as file:
        while data := file.read(CHUNK):
            found.update(data)
            check(len(data))
    return found.hexdigest()


def _common(a: bytes, b: bytes) -> int:
    """How many bytes at the start are equal."""
    low, high = 0, min(len(a), len(b))
    if a[:high] == b[:high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle
    return low
