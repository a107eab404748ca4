"""The fields of a 7z header, taken one after the other; what is missing is damage."""

from __future__ import annotations

import struct

from hermes.files.archives.limits import ArchiveError


class Fields:
    """Bytes that are read from the front."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        """How many bytes have not been taken."""
        return len(self._data) - self._at

    def take(self, size: int) -> bytes:
        """The next bytes."""
        if size > self.left:
            raise damaged("a header is cut short")
        self._at += size
        return self._data[self._at - size : self._at]

    def byte(self) -> int:
        """One byte."""
        return self.take(1)[0]

    def number(self) -> int:
        """A number in as many bytes as the first one says."""
        first = self.byte()
        value = 0
        for index in range(8):
            mask = 0x80 >> index
            if not first & mask:
                return value | (first & (mask - 1)) << (8 * index)
            value |= self.byte() << (8 * index)
        return value

    def count(self, most: int, what: str) -> int:
        """A number of things, each of which will take room."""
        value = self.number()
        if value > most:
            raise ArchiveError(f"the archive holds {value} {what}, more than {most}")
        return value

    def bits(self, count: int) -> list[bool]:
        """That many yes or no, eight to the byte."""
        data = self.take((count + 7) // 8)
        return [bool(data[index // 8] & 0x80 >> index % 8) for index in range(count)]

    def defined(self, count: int) -> list[bool]:
        """Which of so many have a value: all of them, or as the bits say."""
        return [True] * count if self.byte() else self.bits(count)

    def check_sums(self, count: int) -> list[int | None]:
        """A check sum for each of so many that has one."""
        return [self.whole("<I") if there else None for there in self.defined(count)]

    def whole(self, layout: str) -> int:
        """A number of fixed size."""
        value: int = struct.unpack(layout, self.take(struct.calcsize(layout)))[0]
        return value


def damaged(why: str) -> ArchiveError:
    """The error for a header that makes no sense."""
    return ArchiveError(f"the archive is damaged: {why}")
