"""Waits of a call: handler, approval or hook, each sync and async, with timeout and cancellation.

A sync handler without timeout runs in the caller's thread, one with timeout in a worker thread; an
async handler runs in the caller's task. A sync caller reaches it through `run`:

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

import msgspec

from hermes.core.context import Cancellation, CancelledError
from hermes.core.entry import is_coroutine_function
from hermes.runtime.loop_thread import LoopThread, close_loop
from hermes.runtime.workers import StoppedLateError, stopped_error

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine, Generator
    from typing import Any, Protocol

    from hermes.core.context import ApprovalRequest, ToolContext
    from hermes.core.entry import ToolEntry
    from hermes.core.protocols import Approver
    from hermes.runtime.pipeline import Runtime


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


# Coroutines that refused even to be closed; letting go of them would ask them again.
_undead: list[Any] = []


class Drive:
    """Await it for the coroutine's result; raises `CancelledError` or `StoppedLateError`.

    A cancellation of the awaiting task itself reaches the coroutine and is passed on.
    """

    __slots__ = (
        "_active",
        "_base",
        "_cancellation",
        "_coroutine",
        "_grace",
        "_late",
        "_loop",
        "_over",
        "_seconds",
        "_sent",
        "_task",
        "_timers",
    )

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, Any],
        *,
        seconds: float | None,
        cancellation: Cancellation,
        grace: float,
    ) -> None:
        self._coroutine = coroutine
        self._seconds = seconds
        self._cancellation = cancellation
        self._grace = grace

    def __await__(self) -> Generator[Any, Any, Any]:
        try:
            wanted = self._coroutine.send(None)
        except StopIteration as done:
            # Most have nothing to wait for, and need nothing of what follows.
            return done.value
        except (Exception, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - none of these may end the task that awaits
            raise ended(error) from None
        import asyncio

        self._loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._base = task.cancelling()
        self._active = True
        self._late = self._over = False
        # How often we have cancelled the task that awaits us, to be taken back at the end.
        self._sent = 0
        self._timers: list[asyncio.TimerHandle] = []
        forget = self._cancellation.on_cancel(self._told)
        if self._seconds is not None:
            self._timers.append(self._loop.call_later(self._seconds, self._expire))
        try:
            while True:
                try:
                    yield wanted
                except GeneratorExit:
                    raise
                except BaseException as error:
                    cancelled = isinstance(error, asyncio.CancelledError)
                    if cancelled and self._over:
                        raise
                    wanted = self._coroutine.throw(error)
                    # A timeout or task group of the handler's own cancels the same task, and takes
                    # that back; what is left after it had its turn came from outside.
                    if cancelled and self._from_outside():
                        self._give_grace()
                else:
                    wanted = self._coroutine.send(None)
        except StopIteration as done:
            if self._late:
                raise self._stopped() from None
            return done.value
        except asyncio.CancelledError:
            if self._from_outside():
                self._cancellation.cancel("cancelled")
                raise
            if self._sent:
                raise self._stopped() from None
            # Nobody meant this call.
            raise CancelledError("something that it waited for was cancelled") from None
        except SystemExit as error:
            raise ended(error) from None
        except Exception as error:
            if self._sent and not self._from_outside():
                raise self._stopped() from error
            raise
        finally:
            self._active = False
            forget()
            for timer in self._timers:
                timer.cancel()
            for _ in range(self._sent):
                task.uncancel()
            self._bury()

    def _from_outside(self) -> bool:
        return self._task.cancelling() > self._base + self._sent

    def _stopped(self) -> Exception:
        reason = self._cancellation.reason or "cancelled"
        return stopped_error(not self._late, self._seconds, stuck=self._over, reason=reason)

    def _told(self) -> None:
        """In whichever thread the stop is asked for."""
        try:
            self._loop.call_soon_threadsafe(self._stop)
        except RuntimeError:
            # The loop is closed, and the coroutine with it.
            return

    def _expire(self) -> None:
        if self._active and not self._sent:
            self._late = True
            self._stop()
            self._cancellation.cancel("timed out")

    def _stop(self) -> None:
        # Later than the end, this would cancel something else that the task has gone on to.
        if self._active and not self._sent:
            self._cancel()
            self._give_grace()

    def _give_grace(self) -> None:
        self._timers.append(self._loop.call_later(self._grace, self._give_up))

    def _give_up(self) -> None:
        if self._active and (self._sent or self._from_outside()):
            self._over = True
            self._cancel()

    def _cancel(self) -> None:
        self._sent += 1
        self._task.cancel()

    def _bury(self) -> None:
        try:
            self._coroutine.close()
        except RuntimeError:
            # It goes on even now; nobody will run it any more.
            _undead.append(self._coroutine)
        except Exception:  # noqa: BLE001 - what it raises while ending is nobody's answer
            return


def ended(error: BaseException) -> RuntimeError:
    """Error for a handler that raised `SystemExit` or cancelled itself."""
    return RuntimeError(f"it ended with {type(error).__name__}: {error}")


if TYPE_CHECKING:

    class Need(Protocol):
        """Something a stage can't do itself."""

        def sync(self, runtime: Runtime) -> Any: ...
        async def wait(self, runtime: Runtime) -> Any: ...


class Run(msgspec.Struct, eq=False):
    """The handler's turn."""

    entry: ToolEntry
    arguments: dict[str, Any]
    context: ToolContext
    cancellation: Cancellation

    def sync(self, runtime: Runtime) -> Any:
        """The handler's answer, for a caller that can't await."""
        entry = self.entry
        assert entry.invoke is not None
        if entry.is_async:
            return run(self.wait(runtime))
        if entry.timeout_seconds is None:
            try:
                value = entry.invoke(self.arguments, self.context)
            except (Exception, KeyboardInterrupt):
                raise
            except BaseException as error:  # noqa: BLE001 - it may end its own work, not the program
                raise ended(error) from None
            return run(settle(value)) if hasattr(value, "__await__") else value
        return runtime.workers.run(
            self._work,
            seconds=entry.timeout_seconds,
            cancellation=self.cancellation,
            grace=runtime.grace_seconds,
        )

    async def wait(self, runtime: Runtime) -> Any:
        """The handler's answer, inside a loop."""
        entry = self.entry
        if not entry.is_async:
            return await runtime.workers.run_async(
                self._work,
                seconds=entry.timeout_seconds,
                cancellation=self.cancellation,
                grace=runtime.grace_seconds,
            )
        assert entry.invoke is not None
        value = entry.invoke(self.arguments, self.context)
        if not hasattr(value, "__await__"):
            return value
        return await Drive(
            value if hasattr(value, "send") else settle(value),
            seconds=entry.timeout_seconds,
            cancellation=self.cancellation,
            grace=runtime.grace_seconds,
        )

    def _work(self) -> Any:
        assert self.entry.invoke is not None
        return _settled(self.entry.invoke(self.arguments, self.context))


class Ask(msgspec.Struct, eq=False):
    """A human's turn, until the call is cancelled."""

    approver: Approver
    request: ApprovalRequest
    cancellation: Cancellation

    def sync(self, runtime: Runtime) -> Any:
        """The approver's answer, for a sync caller."""
        if is_coroutine_function(self.approver):
            return run(self.wait(runtime))
        return _settled(self.approver(self.request))

    async def wait(self, runtime: Runtime) -> Any:
        """The approver's answer; a blocking approver runs in a worker thread."""
        if is_coroutine_function(self.approver):
            return await Drive(
                self.approver(self.request), seconds=None, cancellation=self.cancellation, grace=0
            )
        return await runtime.workers.run_async(
            lambda: _settled(self.approver(self.request)),
            seconds=None,
            cancellation=self.cancellation,
            grace=0,
        )


class Hook(msgspec.Struct, eq=False):
    """A plugin's turn, within its limit."""

    hook: Callable[..., Any]
    arguments: tuple[Any, ...]

    def sync(self, runtime: Runtime) -> Any:
        """The hook's result, for a sync caller."""
        if is_coroutine_function(self.hook):
            return run(self.wait(runtime))
        return runtime.workers.run(
            self._work,
            seconds=runtime.hooks.limit_seconds,
            cancellation=Cancellation(),
            grace=0,
        )

    async def wait(self, runtime: Runtime) -> Any:
        """The hook's result, inside a loop."""
        limit = runtime.hooks.limit_seconds
        if is_coroutine_function(self.hook):
            return await Drive(
                self.hook(*self.arguments), seconds=limit, cancellation=Cancellation(), grace=0
            )
        return await runtime.workers.run_async(
            self._work, seconds=limit, cancellation=Cancellation(), grace=0
        )

    def _work(self) -> Any:
        return _settled(self.hook(*self.arguments))


def _settled(value: Any) -> Any:
    """`value`, awaited through the bridge if it is awaitable."""
    return run(settle(value)) if hasattr(value, "__await__") else value


async def settle(awaitable: Any) -> Any:
    """Any awaitable as a coroutine."""
    return await awaitable
