"""Rate limit: how often a server may trigger work on our side."""

from __future__ import annotations

import time


class RateLimit:
    """Token bucket: `burst` at once, then `rate` per second."""

    __slots__ = ("_burst", "_rate", "_tokens", "_updated")

    def __init__(self, burst: int, rate: float) -> None:
        self._burst = burst
        self._rate = rate
        self._tokens = float(burst)
        self._updated = time.monotonic()

    def allows(self) -> bool:
        """Take a token; False when there is none."""
        now = time.monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._updated) * self._rate)
        self._updated = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
