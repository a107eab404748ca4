"""How much of a sandbox's life is left, and what is due because of that."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# From this share of its life on it is said, and what is there is saved.
WARN_SHARE = 0.8


class Deadline:
    """A life that began now and lasts so many seconds."""

    def __init__(self, seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self.seconds = seconds

    @property
    def left(self) -> float:
        """The seconds that are left; 0 when it is over."""
        return max(0.0, self._began + self.seconds - self._clock())

    @property
    def over(self) -> bool:
        """Whether the service has ended it."""
        return self.left == 0.0

    @property
    def near(self) -> bool:
        """Whether it is time to warn and to save."""
        return self.left <= self.seconds * (1 - WARN_SHARE)

    @property
    def until_near(self) -> float:
        """The seconds until it is."""
        return max(0.0, self.left - self.seconds * (1 - WARN_SHARE))
