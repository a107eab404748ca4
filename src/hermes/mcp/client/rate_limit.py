"""Rate limit: how often a server may trigger work on our side."""

from __future__ import annotations

import time


class Pace:
    """Lets so many through at once, and so many a second after that."""

    __slots__ = ("_burst", "_left", "_rate", "_then")

    def __init__(self, burst: int, rate: float) -> None:
        self._burst = burst
        self._rate = rate
        self._left = float(burst)
        self._then = time.monotonic()

    def allows(self) -> bool:
        """Whether one more may be now."""
        now = time.monotonic()
        self._left = min(self._burst, self._left + (now - self._then) * self._rate)
        self._then = now
        if self._left < 1:
            return False
        self._left -= 1
        return True
