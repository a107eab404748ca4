"""How long a search may take, and who may stop it."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager, suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator

    from hermes.core.context import Cancellation

SECONDS = 30.0


class Watch:
    """The clock of one search, and its way to hear that it is to stop."""

    def __init__(
        self,
        seconds: float = SECONDS,
        *,
        cancellation: Cancellation | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds
        self._cancellation = cancellation
        self._progress = progress
        self._told = time.monotonic()

    @property
    def left(self) -> float:
        """Seconds that are left; never below 0."""
        return max(0.0, self._end - time.monotonic())

    @property
    def expired(self) -> bool:
        """Whether the time is up; raises `CancelledError` when the search was cancelled."""
        if self._cancellation is not None:
            self._cancellation.check()
        return time.monotonic() >= self._end

    def tell(self, text: str) -> None:
        """Say how far the search is, at most once a second."""
        if self._progress is not None and time.monotonic() - self._told >= 1:
            self._told = time.monotonic()
            self._progress(text)

    @contextmanager
    def over(
        self, process: subprocess.Popen[bytes], *, seconds: float | None = None
    ) -> Iterator[None]:
        """Kill a process when its time (all that is left) is up or the search is cancelled."""
        seconds = self.left if seconds is None else min(seconds, self.left)
        timer = threading.Timer(seconds, process.kill)
        timer.daemon = True
        timer.start()
        forget = None
        if self._cancellation is not None:
            forget = self._cancellation.on_cancel(process.kill)
        try:
            yield
        finally:
            timer.cancel()
            if forget is not None:
                forget()
            if process.poll() is None:
                process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    with suppress(OSError):
                        # What it was not told any more.
                        pipe.close()
