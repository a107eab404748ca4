"""Thread pool for blocking handlers, with timeouts and cancellation.

A thread cannot be killed. When a handler ignores its timeout, the pool abandons the thread: the
caller continues, a new thread takes its place, a late result is dropped, and the thread does not
block interpreter exit (`concurrent.futures` would join it).
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hermes.core.context import CancelledError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator
    from typing import Any

    from hermes.core.context import Cancellation


# How long a thread that has nothing to do stays around.
IDLE_SECONDS = 30.0

_here = threading.local()


_clock = time.monotonic


class Job:
    """One function call in a worker thread, and its result."""

    __slots__ = (
        "_context",
        "_done",
        "_work",
        "abandoned",
        "error",
        "finished",
        "notify",
        "queued_at",
        "started",
        "started_at",
        "value",
    )

    def __init__(self, work: Callable[[], Any]) -> None:
        self._context = contextvars.copy_context()
        self._work = work
        self._done = threading.Event()
        self.notify: Callable[[], None] | None = None
        self.started = False
        self.started_at = 0.0
        self.queued_at = _clock()
        self.abandoned = False
        self.finished = False
        self.value: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        """Run the job in this thread and wake the waiting thread."""
        try:
            self.value = self._context.run(self._work)
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - for the thread that waits
            self.error = error
        except BaseException as error:  # noqa: BLE001
            # Its own exit or cancellation is not that of whoever waits for it.
            self.error = RuntimeError(f"it ended with {type(error).__name__}: {error}")
        self.finished = True
        self._done.set()
        if self.notify is not None:
            self.notify()

    def left(self, seconds: float | None, queue_seconds: float) -> float:
        """Remaining time, counted from the start of the job; the queue has its own limit."""
        if seconds is None:
            return 0.0
        if self.started:
            return self.started_at + seconds - _clock()
        # Looked at again before long: nobody says when it leaves the queue.
        return min(self.queued_at + queue_seconds + seconds - _clock(), seconds / 4)

    def wait(self, seconds: float | None) -> bool:
        """Whether it ended within that time."""
        return self._done.wait(seconds)

    def result(self) -> Any:
        """The result, or the exception."""
        if self.error is not None:
            raise self.error
        return self.value


class Workers:
    """At most `size` threads at work.

    Abandoned threads are not counted, nor threads that wait for another job of the pool: counting
    them could deadlock. Time in the queue does not count as the job's own until `queue_seconds`.
    """

    def __init__(self, size: int = 32, *, queue_seconds: float = 60.0) -> None:
        self._size = size
        self._queue_seconds = queue_seconds
        self._lock = threading.Lock()
        self._jobs: deque[Job] = deque()
        self._wake = threading.Semaphore(0)
        self._threads = 0
        self._idle = 0
        self._waiting = 0

    def submit(self, work: Callable[[], Any]) -> Job:
        """Have the work done as soon as a thread is free."""
        job = Job(work)
        self._enqueue(job)
        return job

    def _enqueue(self, job: Job) -> None:
        with self._lock:
            self._jobs.append(job)
            self._grow()
        self._wake.release()

    def _grow(self) -> None:
        if len(self._jobs) > self._idle and self._threads < self._size + self._waiting:
            threading.Thread(target=self._serve, name="hermes-worker", daemon=True).start()
            self._threads += 1
            self._idle += 1

    def _serve(self) -> None:
        _here.workers = self
        while True:
            woken = self._wake.acquire(timeout=IDLE_SECONDS)
            with self._lock:
                if not self._jobs:
                    if woken:
                        # What it was woken for has been given up on.
                        continue
                    self._idle -= 1
                    self._threads -= 1
                    return
                if not woken:
                    continue
                self._idle -= 1
                job = self._jobs.popleft()
                job.started_at = _clock()
                job.started = True
            job.run()
            with self._lock:
                if job.abandoned:
                    return
                if self._threads > self._size + self._waiting:
                    self._threads -= 1
                    return
                self._idle += 1
            # Or the last result would live until the next job comes.
            del job

    def abandon(self, job: Job) -> None:
        """Stop waiting for a job: one that has not begun never will, the thread of one that has is
        no longer counted."""
        with self._lock:
            if job.finished or job.abandoned:
                return
            job.abandoned = True
            if job.started:
                self._threads -= 1
                self._grow()
            else:
                self._jobs.remove(job)

    @contextmanager
    def _lent(self) -> Iterator[None]:
        """Do not count this worker thread while it waits for another job of the pool."""
        if getattr(_here, "workers", None) is not self:
            yield
            return
        with self._lock:
            self._waiting += 1
            self._grow()
        try:
            yield
        finally:
            with self._lock:
                self._waiting -= 1

    def run(
        self,
        work: Callable[[], Any],
        *,
        seconds: float | None,
        cancellation: Cancellation,
        grace: float,
    ) -> Any:
        """Wait for the work from sync code; raises `TimeoutError` or `CancelledError`."""
        job = self.submit(work)
        woken = threading.Event()
        job.notify = woken.set
        forget = cancellation.on_cancel(woken.set)
        try:
            with self._lent():
                in_time = job.finished or woken.wait(seconds)
                while not in_time and (left := job.left(seconds, self._queue_seconds)) > 0:
                    in_time = job.finished or woken.wait(left)
                if job.finished:
                    return job.result()
                cancellation.cancel("timed out" if not in_time else "cancelled")
                # A handler that listens gets a moment to clean up and say what it had done.
                if job.started and job.wait(grace) and job.error is None and in_time:
                    return job.result()
        except BaseException:
            if not job.finished:
                # Ctrl-C in the thread that waits.
                cancellation.cancel("cancelled")
                self.abandon(job)
            raise
        finally:
            forget()
        self.abandon(job)
        raise stopped_error(in_time, seconds, stuck=_stuck(job), reason=cancellation.reason)

    async def run_async(
        self,
        work: Callable[[], Any],
        *,
        seconds: float | None,
        cancellation: Cancellation,
        grace: float,
    ) -> Any:
        """Wait for the work from a running loop; raises `TimeoutError` or `CancelledError`."""
        import asyncio

        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        job = Job(work)
        job.notify = lambda: _wake(loop, done)
        self._enqueue(job)
        forget = cancellation.on_cancel(lambda: _wake(loop, done))
        in_time = True
        try:
            with self._lent():
                if seconds is None:
                    await done
                else:
                    in_time = bool((await asyncio.wait([done], timeout=seconds))[0])
                    while not in_time and (left := job.left(seconds, self._queue_seconds)) > 0:
                        in_time = bool((await asyncio.wait([done], timeout=left))[0])
                if job.finished:
                    return job.result()
                cancellation.cancel("timed out" if not in_time else "cancelled")
                if job.started:
                    done = loop.create_future()
                    if not job.wait(0):
                        await asyncio.wait([done], timeout=grace)
                    if job.wait(0) and job.error is None and in_time:
                        return job.result()
        except BaseException:
            if not job.finished:
                # Whoever awaits us was cancelled itself.
                cancellation.cancel("cancelled")
                self.abandon(job)
            raise
        finally:
            forget()
        self.abandon(job)
        raise stopped_error(in_time, seconds, stuck=_stuck(job), reason=cancellation.reason)


class StoppedLateError(TimeoutError):
    """A handler timed out; `stuck` if it ignored its cancellation too."""

    def __init__(self, message: str, *, stuck: bool) -> None:
        super().__init__(message)
        self.stuck = stuck


class StuckError(CancelledError):
    """A handler was cancelled and did not stop."""


def stopped_error(
    in_time: bool, seconds: float | None, *, stuck: bool, reason: str = "cancelled"
) -> Exception:
    """The error for a handler that was cancelled or timed out."""
    left = "; it did not stop when told and was given up on" if stuck else ""
    if in_time:
        return (StuckError if stuck else CancelledError)(f"{reason}{left}")
    return StoppedLateError(f"stopped after {seconds:g} s{left}", stuck=stuck)


def _stuck(job: Job) -> bool:
    return job.abandoned and job.started


def _wake(loop: asyncio.AbstractEventLoop, done: asyncio.Future[None]) -> None:
    def finish() -> None:
        if not done.done():
            done.set_result(None)

    try:
        loop.call_soon_threadsafe(finish)
    except RuntimeError:
        # The loop that waited is closed: nobody is there to be told.
        return
