"""Messages from the far end, told from what commands print by a mark that nobody can guess.

ESC-30 MARK < message ESC-30 MARK >
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Splitter:
    """Takes in bytes as they come; passes on what was printed, and each message by itself."""

    def __init__(
        self, mark: str, *, printed: Callable[[bytes], None], told: Callable[[bytes], None]
    ) -> None:
        self._open = f"\x1e{mark}<".encode()
        self._close = f"\x1e{mark}>".encode()
        self._printed = printed
        self._told = told
        self._held = b""
        self._inside = False

    def feed(self, piece: bytes) -> None:
        """Take in the next piece; what may be the beginning of a mark waits for the next one."""
        data = self._held + piece if self._held else piece
        self._held = b""
        while data:
            wanted = self._close if self._inside else self._open
            at = data.find(wanted)
            if at < 0:
                break
            if self._inside:
                self._told(data[:at])
            elif at:
                self._printed(data[:at])
            self._inside = not self._inside
            data = data[at + len(wanted) :]
        if self._inside:
            self._held = data
            return
        kept = len(data) - _unfinished(data, self._open)
        if kept:
            self._printed(data[:kept])
        self._held = data[kept:]


def _unfinished(data: bytes, mark: bytes) -> int:
    """How many bytes at the end may be the beginning of a mark."""
    at = data.find(b"\x1e", max(0, len(data) - len(mark) + 1))
    while at >= 0:
        if mark.startswith(data[at:]):
            return len(data) - at
        at = data.find(b"\x1e", at + 1)
    return 0
