"""What the pipeline may have to wait for, and how each is waited for.

Every need knows two ways: `sync` for a caller that can't await, `wait` for one inside a loop. A
sync handler called from sync code is just called; with a time limit it runs in a worker thread,
so that it can be given up on. An async handler called from sync code goes over the bridge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from hermes.core.calling import is_coroutine_function
from hermes.core.cancellation import Cancellation
from hermes.runtime import bridge
from hermes.runtime.drive import Drive, ended

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from hermes.core.approval import ApprovalRequest, Approver
    from hermes.core.context import ToolContext
    from hermes.core.entry import ToolEntry
    from hermes.runtime.pipeline import Runtime

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
            return bridge.run(self.wait(runtime))
        if entry.timeout_seconds is None:
            try:
                value = entry.invoke(self.arguments, self.context)
            except (Exception, KeyboardInterrupt):
                raise
            except BaseException as error:  # noqa: BLE001 - it may end its own work, not the program
                raise ended(error) from None
            return bridge.run(settle(value)) if hasattr(value, "__await__") else value
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
        """What the human said, for a caller that can't await."""
        if is_coroutine_function(self.approver):
            return bridge.run(self.wait(runtime))
        return _settled(self.approver(self.request))

    async def wait(self, runtime: Runtime) -> Any:
        """What the human said; a prompt that blocks does so in a thread."""
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
        """What the hook said, for a caller that can't await."""
        if is_coroutine_function(self.hook):
            return bridge.run(self.wait(runtime))
        return runtime.workers.run(
            self._work,
            seconds=runtime.hooks.limit_seconds,
            cancellation=Cancellation(),
            grace=0,
        )

    async def wait(self, runtime: Runtime) -> Any:
        """What the hook said, inside a loop."""
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
    """`value`, or what it stands for when plain code gave something to await."""
    return bridge.run(settle(value)) if hasattr(value, "__await__") else value


async def settle(awaitable: Any) -> Any:
    """Any awaitable as a coroutine."""
    return await awaitable
