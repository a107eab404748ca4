"""`BaseTool`: a tool with something to set up before its first call and to take down at the end."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from hermes.core.calling import is_coroutine_function
from hermes.core.entry import Lifecycle, ToolEntry
from hermes.core.errors import HermesError, RegistrationError

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from typing import Any, ClassVar

    from hermes.core.context import ToolContext
    from hermes.core.result import ToolResult


class BaseTool:
    """Subclass it, say what the tool is, and write `run`; `setup` and `teardown` if there is need.

    `parameters` is the JSON Schema of the arguments.
    `setup` runs once, before the first call; a failing one is tried again by the next call.
    `teardown` runs at shutdown when `setup` was begun, even after errors. Each of the three may
    be `async`.
    """

    name: ClassVar[str] = ""
    description: ClassVar[str] = ""
    toolset: ClassVar[str] = "custom"
    parameters: ClassVar[Any] = None
    effect: ClassVar[str] = "execute"
    tags: ClassVar[tuple[str, ...]] = ()
    timeout_seconds: ClassVar[float | None] = None

    def setup(self) -> Any:
        """Get ready for the first call."""

    def run(self, params: dict[str, Any], context: ToolContext) -> Any:  # noqa: ARG002
        """Carry out one call."""
        raise RegistrationError(f"{type(self).__name__} has no run()")

    def teardown(self) -> Any:
        """Let go of what `setup` took."""


class Once(Lifecycle):
    """Sees to it that `setup` ran once before any call, and `teardown` once after the last."""

    def __init__(self, instance: BaseTool) -> None:
        self.instance = instance
        self._lock = threading.Lock()
        self._begun = False
        self._ready = False

    def prepare(self) -> None:
        """Have `setup` run, whoever comes first; the others wait for it."""
        if self._ready:
            return
        with self._lock:
            if not self._ready:
                self._begun = True
                _finish(self.instance.setup())
                self._ready = True

    async def prepare_async(self) -> None:
        """`prepare` for a tool whose `setup` awaits."""
        if self._ready:
            return
        import asyncio

        # Waiting for another thread's setup must not stop this loop.
        await asyncio.to_thread(self._lock.acquire)
        try:
            if not self._ready:
                self._begun = True
                answer = self.instance.setup()
                if hasattr(answer, "__await__"):
                    await answer
                self._ready = True
        finally:
            self._lock.release()

    def close(self) -> None:
        """Have `teardown` run, if there is anything to take down."""
        with self._lock:
            if not self._begun:
                return
            self._begun = self._ready = False
            answer = self.instance.teardown()
        if hasattr(answer, "__await__"):
            import asyncio

            asyncio.run(_awaited(answer))


async def _awaited(answer: Awaitable[Any]) -> Any:
    return await answer


def _finish(answer: Any) -> None:
    if hasattr(answer, "__await__"):
        answer.close()
        raise HermesError("setup() is async but run() is not", hint="Make both async.")


def entry_for(
    cls: type,
    name: str | None,
    toolset: str | None,
    description: str | None,
    fields: dict[str, Any],
) -> ToolEntry:
    """The entry of a `BaseTool` class; one instance of it serves all calls."""
    if not issubclass(cls, BaseTool):
        raise RegistrationError(
            f"{cls.__name__} is a class but no BaseTool", hint="Subclass hermes.tools.BaseTool."
        )
    instance = cls()
    once = Once(instance)
    run = instance.run
    is_async = is_coroutine_function(run) or is_coroutine_function(instance.setup)

    def handler(params: dict[str, Any], context: ToolContext) -> ToolResult | Any:
        once.prepare()
        return run(params, context)

    async def async_handler(params: dict[str, Any], context: ToolContext) -> ToolResult | Any:
        await once.prepare_async()
        answer = run(params, context)
        return await answer if hasattr(answer, "__await__") else answer

    chosen = async_handler if is_async else handler
    for key in ("effect", "tags", "timeout_seconds"):
        fields.setdefault(key, getattr(cls, key))
    own = cls.toolset if toolset in (None, "custom") else toolset
    return ToolEntry(
        name or cls.name or cls.__name__,
        own or "custom",
        _parameters(cls),
        chosen,
        invoke=chosen,
        is_async=is_async,
        description=description or cls.description or (cls.__doc__ or "").strip(),
        module=cls.__module__,
        lifecycle=once,
        **fields,
    )


def _parameters(cls: type[BaseTool]) -> dict[str, Any]:
    given = cls.parameters
    if given is None:
        return {"type": "object", "properties": {}}
    if isinstance(given, dict):
        return given
    raise RegistrationError(
        f"parameters of {cls.__name__} must be a JSON Schema object, not {given!r:.60}"
    )
