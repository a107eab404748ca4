"""Ends what an environment holds when nobody has used it for long: a container, a connection."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Idle:
    """In use while entered; when left alone for long, `rest` is called.

    Args:
        seconds: How long that is; 0 is never.
        busy: Whether something goes on beside, so that nothing may be ended.
        rest: Ends it. Whoever enters meanwhile waits until that is done.
    """

    def __init__(
        self, seconds: float, *, busy: Callable[[], bool], rest: Callable[[], None]
    ) -> None:
        self.seconds = seconds
        self._busy = busy
        self._rest = rest
        self._lock = threading.Lock()
        self._users = 0
        self._left_at = 0.0
        self._timer: threading.Timer | None = None
        self._rested = False

    def __enter__(self) -> None:
        if self.seconds <= 0:
            return
        with self._lock:
            self._users += 1
            if self._timer is None:
                self._arm(self.seconds)

    def __exit__(self, *_: object) -> None:
        if self.seconds <= 0:
            return
        with self._lock:
            self._users -= 1
            self._left_at = time.monotonic()

    def rested(self) -> bool:
        """Whether it was ended since this was last asked."""
        rested, self._rested = self._rested, False
        return rested

    def close(self) -> None:
        """Look no more."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def _arm(self, seconds: float) -> None:
        # One thread for all the time, and not one for each command: it looks again when it wakes.
        self._timer = threading.Timer(seconds, self._look)
        self._timer.daemon = True
        self._timer.start()

    def _look(self) -> None:
        # Asked beforehand: that may take a while, and nobody is to wait for it.
        busy = not self._users and self._busy()
        with self._lock:
            if self._timer is None:
                return
            left = self._left_at + self.seconds - time.monotonic()
            if self._users or busy:
                self._arm(self.seconds)
            elif left > 0:
                self._arm(left)
            else:
                self._timer = None
                self._rested = True
                self._rest()
