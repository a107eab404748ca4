"""Sync-to-async bridge: runs a coroutine from sync code in a persistent event loop.

    main thread, no loop    one loop for the life of the program
    another thread          one loop for the life of the thread
    inside a running loop   a helper thread with its own loop; the wait has a timeout

Loops persist so that clients bound to a loop (an HTTP connection pool) survive between calls.
"""

from __future__ import annotations

import atexit
import contextvars
import threading
from typing import TYPE_CHECKING

from hermes.runtime.loop_thread import LoopThread, close_loop
from hermes.runtime.workers import StoppedLateError

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
                atexit.register(close_loop, self.runner.get_loop())
            else:
                self.guard = _Closer(self.runner)
        return self.runner


class _Closer:
    """Closes a thread's loop when the thread's storage is let go."""

    def __init__(self, runner: asyncio.Runner) -> None:
        self._runner = runner

    def __del__(self) -> None:
        close_loop(self._runner.get_loop())


_local = _ThreadLoop()
_helper_lock = threading.Lock()
# The first serves loops of other people; each further one serves the loop of the one before.
_helpers: list[LoopThread] = []


def run(coroutine: Coroutine[Any, Any, Any], *, limit: float | None = None) -> Any:
    """The result of a coroutine, for a caller that can't await."""
    import asyncio

    try:
        here = asyncio.get_running_loop()
    except RuntimeError:
        return _local.get().run(coroutine, context=contextvars.copy_context())
    return _run_in_helper(coroutine, here, HELPER_LIMIT_SECONDS if limit is None else limit)


def _run_in_helper(
    coroutine: Coroutine[Any, Any, Any], here: asyncio.AbstractEventLoop, limit: float
) -> Any:
    future = _helper(here).submit(coroutine)
    try:
        return future.result(limit)
    except BaseException as error:
        if future.done() or not future.cancel() or not isinstance(error, TimeoutError):
            raise
        raise StoppedLateError(
            f"gave no answer within {limit:g} s; call it with `await runtime.call(...)` instead",
            stuck=False,
        ) from None


def _helper(here: asyncio.AbstractEventLoop) -> LoopThread:
    with _helper_lock:
        # A helper that waits for itself would wait for ever.
        loops = [helper.loop for helper in _helpers]
        level = loops.index(here) + 1 if here in loops else 0
        if level == len(_helpers):
            _helpers.append(LoopThread("hermes-bridge"))
        return _helpers[level]
