"""Event loop thread of the agent: keeps the input line responsive."""

from __future__ import annotations

import asyncio
import threading

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    import concurrent.futures
    from collections.abc import Callable, Coroutine
    from typing import Any

# How long the end waits for what is under way.
_END_SECONDS = 10.0


class Worker:
    """Runs coroutines in a thread of its own; started by the first of them."""

    def __init__(self, failed: Callable[[BaseException], None]) -> None:
        """`failed` is told, in the thread, what something raised that nobody waits for."""
        self._failed = failed
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def begin(self, work: Coroutine[Any, Any, Any]) -> None:
        """Begin something that nobody waits for."""
        asyncio.run_coroutine_threadsafe(work, self._running()).add_done_callback(self._looked_at)

    def _looked_at(self, done: concurrent.futures.Future[Any]) -> None:
        if not done.cancelled() and (error := done.exception()) is not None:
            self._failed(error)

    def close(self, last: Coroutine[Any, Any, Any]) -> None:
        """Do one last thing and end the thread; what hangs is not waited for without limit."""
        if self._thread is None or self._loop is None:
            last.close()
            return
        ending = asyncio.run_coroutine_threadsafe(last, self._loop)
        try:
            ending.result(_END_SECONDS)
        except TimeoutError:
            ending.cancel()
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_END_SECONDS)

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._run, args=(self._loop,), name="hermes-agent", daemon=True
                )
                self._thread.start()
            return self._loop

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
        finally:
            left = asyncio.all_tasks(loop)
            for task in left:
                task.cancel()
            if left:
                loop.run_until_complete(asyncio.wait(left, timeout=2.0))
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()
