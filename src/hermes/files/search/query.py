"""Search query: the request to an engine, its counts, and the deadline."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager, suppress

TYPE_CHECKING = False

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Collection, Iterator
    from typing import BinaryIO, Protocol

    from hermes.core.context import Cancellation
    from hermes.files.search.pattern import Pattern


if TYPE_CHECKING:

    class Opens(Protocol):
        """A disk, or a wrapper that converts its files."""

        def open(self, path: str) -> BinaryIO:
            """A file for reading, positioned at its start."""
            ...


class Choice:
    """Whether hidden, ignored and binary files are searched."""

    __slots__ = ("binary", "hidden", "ignored")

    def __init__(
        self,
        *,
        hidden: bool = False,
        ignored: bool = False,
        binary: bool = False,
    ) -> None:
        self.hidden = hidden
        self.ignored = ignored
        self.binary = binary


class Skipped:
    """Numbers of skipped entries by reason; a skipped folder counts as one."""

    __slots__ = ("binary", "hidden", "ignored", "large", "links", "unreadable")

    def __init__(self) -> None:
        self.hidden = self.ignored = self.binary = self.large = self.unreadable = self.links = 0


class Query:
    """Request to an engine: search all files below `root`, or only those of `among`."""

    __slots__ = ("above", "among", "choice", "most", "pattern", "root")

    def __init__(
        self,
        root: str,
        pattern: Pattern,
        choice: Choice,
        *,
        among: Collection[str] | None = None,
        most: bool = False,
        above: bool = True,
    ) -> None:
        self.root = root
        self.pattern = pattern
        self.choice = choice
        # Paths below the root.
        self.among = among
        # Whether that is most of what there is.
        self.most = most
        # Whether ignore files of the folders above have a say.
        self.above = above


class Tally:
    """How many lines match in each file that has any, by its path below the root."""

    __slots__ = ("binary", "counts", "finished", "scanned", "skipped")

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        # The files that were left out as binary, as the engine names them.
        self.binary: list[str] = []
        self.scanned = 0
        self.skipped = Skipped()
        self.finished = True


SECONDS = 30.0


class Watch:
    """Deadline, cancellation and progress of one search."""

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
