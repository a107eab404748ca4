"""What the pipeline may have to wait for, and how each is waited for.

Every need knows two ways: `sync` for a caller that can't await, `wait` for one inside a loop. A
sync handler called from sync code is just called; with a time limit it runs in a worker thread,
so that it can be given up on. An async handler called from sync code goes over the bridge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.context import CancelledError
from hermes.runtime import bridge
from hermes.runtime.workers import stopped_error

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from hermes.core.context import ApprovalRequest, Approver, ToolContext
    from hermes.core.entry import ToolEntry
    from hermes.runtime.pipeline import Runtime

    class Need(Protocol):
        """Something a stage can't do itself."""

        def sync(self, runtime: Runtime) -> Any: ...
        async def wait(self, runtime: Runtime) -> Any: ...


class Run:
    """The handler's turn."""

    __slots__ = ("arguments", "context", "entry")

    def __init__(self, entry: ToolEntry, arguments: dict[str, Any], context: ToolContext) -> None:
        self.entry = entry
        self.arguments = arguments
        self.context = context

    def sync(self, runtime: Runtime) -> Any:
        """The handler's answer, for a caller that can't await."""
        entry = self.entry
        assert entry.invoke is not None
        if entry.is_async:
            return bridge.run(self._awaited(runtime))
        if entry.timeout_seconds is None:
            return entry.invoke(self.arguments, self.context)
        return runtime.workers.run(
            self._work,
            seconds=entry.timeout_seconds,
            cancellation=self.context.cancellation,
            grace=runtime.grace_seconds,
        )

    async def wait(self, runtime: Runtime) -> Any:
        """The handler's answer, inside a loop."""
        entry = self.entry
        if not entry.is_async:
            return await runtime.workers.run_async(
                self._work,
                seconds=entry.timeout_seconds,
                cancellation=self.context.cancellation,
                grace=runtime.grace_seconds,
            )
        return await self._awaited(runtime)

    def _work(self) -> Any:
        assert self.entry.invoke is not None
        return self.entry.invoke(self.arguments, self.context)

    async def _awaited(self, runtime: Runtime) -> Any:
        if self.entry.timeout_seconds is not None:
            return await self._within(self.entry.timeout_seconds, runtime.grace_seconds)
        import asyncio

        assert self.entry.invoke is not None
        loop, current = asyncio.get_running_loop(), asyncio.current_task()
        assert current is not None
        cancellation = self.context.cancellation
        # No task of its own: that would double the cost of a short handler.
        forget = cancellation.on_cancel(lambda: loop.call_soon_threadsafe(current.cancel))
        try:
            return await self.entry.invoke(self.arguments, self.context)
        except asyncio.CancelledError:
            if cancellation.cancelled:
                # This call was to stop, not whoever awaits it.
                current.uncancel()
                raise CancelledError(cancellation.reason) from None
            cancellation.cancel("cancelled")
            raise
        finally:
            forget()

    async def _within(self, seconds: float, grace: float) -> Any:
        """The same with a time limit; a handler that ignores its end is given up on."""
        import asyncio

        assert self.entry.invoke is not None
        cancellation = self.context.cancellation
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(self.entry.invoke(self.arguments, self.context))
        task.add_done_callback(_discard)
        stop = asyncio.Event()
        forget = cancellation.on_cancel(lambda: loop.call_soon_threadsafe(stop.set))
        stopped = asyncio.ensure_future(stop.wait())
        try:
            done, _ = await asyncio.wait(
                {task, stopped}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if task in done:
                return task.result()
        except asyncio.CancelledError:
            cancellation.cancel("cancelled")
            task.cancel()
            await asyncio.wait({task}, timeout=grace)
            raise
        finally:
            forget()
            stopped.cancel()
        in_time = stopped in done
        cancellation.cancel("timed out")
        task.cancel()
        ended, _ = await asyncio.wait({task}, timeout=grace)
        raise stopped_error(in_time, seconds, stuck=not ended)


def _discard(task: Any) -> None:
    """Look at what a task raised, so that nobody complains that nobody did."""
    if not task.cancelled():
        task.exception()


class Ask:
    """A human's turn."""

    __slots__ = ("approver", "request")

    def __init__(self, approver: Approver, request: ApprovalRequest) -> None:
        self.approver = approver
        self.request = request

    def sync(self, runtime: Runtime) -> Any:  # noqa: ARG002
        """What the human said, for a caller that can't await."""
        said = self.approver(self.request)
        return bridge.run(_await(said)) if hasattr(said, "__await__") else said

    async def wait(self, runtime: Runtime) -> Any:  # noqa: ARG002
        """What the human said; a prompt that blocks does so in a thread."""
        import asyncio

        from hermes.core.calling import is_coroutine_function

        if is_coroutine_function(self.approver):
            return await self.approver(self.request)
        said = await asyncio.to_thread(self.approver, self.request)
        return await said if hasattr(said, "__await__") else said


class Hook:
    """A plugin's turn, within its limit."""

    __slots__ = ("arguments", "hook")

    def __init__(self, hook: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.hook = hook
        self.arguments = arguments

    def sync(self, runtime: Runtime) -> Any:
        """What the hook said, for a caller that can't await."""
        return bridge.run(self.wait(runtime))

    async def wait(self, runtime: Runtime) -> Any:
        """What the hook said, inside a loop."""
        import asyncio

        from hermes.core.calling import is_coroutine_function
        from hermes.core.context import Cancellation

        limit = runtime.hooks.limit_seconds
        if is_coroutine_function(self.hook):
            async with asyncio.timeout(limit):
                return await self.hook(*self.arguments)
        return await runtime.workers.run_async(
            lambda: self.hook(*self.arguments),
            seconds=limit,
            cancellation=Cancellation(),
            grace=0,
        )


async def _await(awaitable: Any) -> Any:
    return await awaitable
