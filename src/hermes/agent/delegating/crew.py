"""The thread that children work in: they go on whatever their parent waits for, or does not."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

_LEAVE_SECONDS = 2.0


class Crew:
    """One event loop in a thread of its own, begun when the first child is."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """Where children work."""
        with self._lock:
            if self._loop is None:
                import asyncio

                self._loop = asyncio.new_event_loop()
                # No program is kept from ending by its children.
                self._thread = threading.Thread(
                    target=self._loop.run_forever, name="hermes-children", daemon=True
                )
                self._thread.start()
            return self._loop

    def close(self) -> None:
        """End the thread; what is still at work in it is cancelled and let go."""
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is None or self._thread is None:
            return
        _cancel_rest(loop)
        loop.call_soon_threadsafe(loop.stop)
        self._thread.join(_LEAVE_SECONDS)
        if not self._thread.is_alive():
            loop.close()


def _cancel_rest(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel every task of the loop and give them a moment."""
    import asyncio

    async def cancelled() -> None:
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        if rest:
            await asyncio.wait(rest, timeout=_LEAVE_SECONDS)
        await loop.shutdown_asyncgens()
        await loop.shutdown_default_executor()

    future = asyncio.run_coroutine_threadsafe(cancelled(), loop)
    try:
        future.result(2 * _LEAVE_SECONDS)
    except TimeoutError:
        future.cancel()
