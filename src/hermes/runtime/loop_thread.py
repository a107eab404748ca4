"""Event loop in a daemon thread, started on first use and closed with bounded waits."""

from __future__ import annotations

import threading

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine
    from concurrent.futures import Future
    from typing import Any

# How long tasks may take to end after they were cancelled.
CANCEL_SECONDS = 2.0


class LoopThread:
    """A thread with an event loop. It never keeps the program from exiting.

    Args:
        name: Name of the thread.
        main: Coroutine function; the thread ends with it. Without one it runs until `close`.
        before: Called in the thread before `asyncio` is imported; False ends the thread.
    """

    def __init__(
        self,
        name: str,
        *,
        main: Callable[[], Coroutine[Any, Any, None]] | None = None,
        before: Callable[[], bool] | None = None,
    ) -> None:
        self._name = name
        self._main = main
        self._before = before
        self._lock = threading.Lock()
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def started(self) -> bool:
        """Whether the thread was started."""
        return self._thread is not None

    def start(self) -> threading.Event:
        """Start the thread, if it is not started yet; the event is set once the loop runs."""
        with self._lock:
            if self._thread is None:
                self._ready = ready = threading.Event()
                self._thread = threading.Thread(
                    target=self._run, args=(ready,), name=self._name, daemon=True
                )
                self._thread.start()
            return self._ready

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The running loop."""
        self.start().wait()
        if self._loop is None:
            raise RuntimeError(f"{self._name} has ended")
        return self._loop

    def submit(self, coroutine: Coroutine[Any, Any, Any]) -> Future[Any]:
        """Run a coroutine in the thread."""
        import asyncio

        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    def close(
        self, last: Coroutine[Any, Any, Any] | None = None, *, seconds: float = CANCEL_SECONDS
    ) -> None:
        """Run `last`, cancel the remaining tasks and end the thread; the next use starts another.

        Each wait ends after `seconds`; a task that ignores its cancellation is abandoned.
        """
        import asyncio

        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if thread is None or loop is None or loop.is_closed():
            if last is not None:
                last.close()
            return
        try:
            if last is not None:
                ending = asyncio.run_coroutine_threadsafe(last, loop)
                try:
                    ending.result(seconds)
                except TimeoutError:
                    ending.cancel()
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(seconds + 2 * CANCEL_SECONDS)

    def join(self, seconds: float) -> None:
        """Wait for the thread to end by itself."""
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(seconds)

    def _run(self, ready: threading.Event) -> None:
        try:
            if self._before is not None and not self._before():
                return
            import asyncio

            self._loop = loop = asyncio.new_event_loop()
            asyncio.set_event_loop(loop)
            loop.call_soon(ready.set)
            try:
                if self._main is None:
                    loop.run_forever()
                else:
                    loop.run_until_complete(self._main())
            finally:
                close_loop(loop)
        finally:
            ready.set()


def close_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel the tasks of a loop that has stopped, and close it; for the loop's own thread."""
    import asyncio

    async def finish() -> None:
        await loop.shutdown_asyncgens()
        await loop.shutdown_default_executor()

    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    try:
        if tasks:
            loop.run_until_complete(asyncio.wait(tasks, timeout=CANCEL_SECONDS))
        loop.run_until_complete(asyncio.wait_for(finish(), CANCEL_SECONDS))
    except TimeoutError:
        return
    finally:
        loop.close()
