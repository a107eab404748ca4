"""From sync code to async handlers, in the three places sync code can find itself.

    main thread, no loop    one loop that lives as long as the program, so clients stay alive
    another thread          a loop of its own, as long as the thread
    inside a running loop   a helper thread with a loop of its own; the wait has a limit

Clients that a handler keeps (an HTTP pool, say) belong to the loop they were made in; since each
place has one loop that persists, they can be used again by the next call.
"""

from __future__ import annotations

import atexit
import contextvars
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Coroutine
    from typing import Any

HELPER_LIMIT_SECONDS = 300.0


class _ThreadLoop(threading.local):
    """The loop of this thread; closed when the thread ends."""

    runner: asyncio.Runner | None = None

    def get(self) -> asyncio.Runner:
        if self.runner is None:
            import asyncio

            self.runner = asyncio.Runner()
            if threading.current_thread() is threading.main_thread():
                atexit.register(self.runner.close)
            else:
                self.guard = _Closer(self.runner)
        return self.runner


class _Closer:
    """Closes a thread's loop when the thread's storage is let go."""

    def __init__(self, runner: asyncio.Runner) -> None:
        self._runner = runner

    def __del__(self) -> None:
        self._runner.close()


_local = _ThreadLoop()
_helper_lock = threading.Lock()
_helper_loop: asyncio.AbstractEventLoop | None = None


def run(coroutine: Coroutine[Any, Any, Any], *, limit: float = HELPER_LIMIT_SECONDS) -> Any:
    """The result of a coroutine, for a caller that can't await."""
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _local.get().run(coroutine, context=contextvars.copy_context())
    return _run_in_helper(coroutine, limit)


def _run_in_helper(coroutine: Coroutine[Any, Any, Any], limit: float) -> Any:
    import asyncio

    future = asyncio.run_coroutine_threadsafe(coroutine, _helper())
    try:
        return future.result(limit)
    except TimeoutError:
        if future.done():
            raise
        future.cancel()
        raise TimeoutError(
            f"no answer within {limit:g} s; call it with `await runtime.call(...)` instead"
        ) from None


def _helper() -> asyncio.AbstractEventLoop:
    global _helper_loop
    with _helper_lock:
        if _helper_loop is None:
            import asyncio

            _helper_loop = asyncio.new_event_loop()
            threading.Thread(
                target=_helper_loop.run_forever, name="hermes-bridge", daemon=True
            ).start()
        return _helper_loop
