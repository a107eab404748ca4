"""Which of some files have something to read, in the order in which they came to have it."""

from __future__ import annotations

import select
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Ready:
    """Waits for files. Linux knows which was first; elsewhere they come as they are named."""

    def __init__(self) -> None:
        self._epoll = select.epoll() if hasattr(select, "epoll") else None
        self._known: set[int] = set()

    def wait(self, files: Sequence[int], seconds: float) -> list[int]:
        """Those that can be read, after at most so many seconds."""
        seconds = max(0.0, seconds)
        if self._epoll is None:
            poll = select.poll()
            for file in files:
                poll.register(file, select.POLLIN)
            return [file for file, _ in poll.poll(seconds * 1000)]
        # One that was closed has left by itself.
        self._known.intersection_update(files)
        self.add(files)
        return [file for file, _ in self._epoll.poll(seconds)]

    def add(self, files: Iterable[int]) -> None:
        """Begin to note when files come to have something."""
        if self._epoll is None:
            return
        for file in files:
            if file not in self._known:
                self._epoll.register(file, select.EPOLLIN)
                self._known.add(file)

    def close(self) -> None:
        """Let go of it."""
        if self._epoll is not None:
            self._epoll.close()
