"""The log of something that runs for long: its end in memory, all of it in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.environments.output.spill import Spill

IN_MEMORY = 200 * 1024


class Rolling:
    """Bytes by their place from the beginning. Those that are neither in memory nor in the file,
    since the file is full, are gone: reading goes on with the oldest there are."""

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
        """Take in the next piece."""
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
        """Bytes from a place on, and the place they really start at."""
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
        """Let go of the file."""
        if self._spill is not None:
            self._spill.discard()
            self._spill = None
            self._make_spill = None
