"""Tool definitions: the `@tool` decorator, and `BaseTool` for tools with set-up and tear-down."""

from __future__ import annotations

import threading
from contextlib import contextmanager

from hermes.core.entry import Lifecycle, ToolEntry, is_coroutine_function, keyword_invoke
from hermes.core.errors import HermesError, RegistrationError
from hermes.core.registry import current_owner
from hermes.core.registry import registry as shared

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, ClassVar

    from hermes.core.context import ToolContext
    from hermes.core.entry import ToolResult


class BaseTool:
    """Base class of tools with set-up and tear-down: define the attributes and `run`.

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
        """Release the resources of `setup`."""


class Once(Lifecycle):
    """Sees to it that `setup` ran once before any call, and `teardown` once after the last."""

    def __init__(self, instance: BaseTool) -> None:
        self.instance = instance
        # Held for an instant only, never while `setup` runs.
        self._lock = threading.Lock()
        # How to tell each of those who wait; None while nobody sets up.
        self._waiting: list[Callable[[], object]] | None = None
        self._begun = False
        self._ready = False

    def prepare(self) -> None:
        """Run `setup` once; concurrent callers wait for it."""
        while not self._ready:
            over = threading.Event()
            if self._may_begin(over.set):
                with self._setting_up():
                    _finish(self.instance.setup())
            else:
                over.wait()

    async def prepare_async(self) -> None:
        """`prepare` for an async `setup`."""
        while not self._ready:
            import asyncio

            over, loop = asyncio.Event(), asyncio.get_running_loop()
            if self._may_begin(lambda: loop.call_soon_threadsafe(over.set)):  # noqa: B023
                with self._setting_up():
                    answer = self.instance.setup()
                    if hasattr(answer, "__await__"):
                        await answer
            else:
                await over.wait()

    def _may_begin(self, tell: Callable[[], object]) -> bool:
        """Whether the caller is to set up; else `tell` is called when it has to look again."""
        with self._lock:
            if self._ready:
                tell()
            elif self._waiting is None:
                self._waiting = []
                self._begun = True
                return True
            else:
                self._waiting.append(tell)
            return False

    @contextmanager
    def _setting_up(self) -> Iterator[None]:
        done = False
        try:
            yield
            done = True
        finally:
            with self._lock:
                self._ready = done
                waiting, self._waiting = self._waiting or [], None
            for tell in waiting:
                try:
                    tell()
                except RuntimeError:
                    # Its loop was closed: nobody waits there any more.
                    continue

    def close(self) -> Any:
        """Run `teardown` if `setup` ran; its awaitable, if it is async."""
        with self._lock:
            if not self._begun:
                return None
            self._begun = self._ready = False
        return self.instance.teardown()


def _finish(answer: Any) -> None:
    if hasattr(answer, "__await__"):
        answer.close()
        raise HermesError("setup() is async but run() is not", hint="Make both async.")


def entry_for(
    target: type | BaseTool,
    name: str | None,
    toolset: str | None,
    description: str | None,
    fields: dict[str, Any],
) -> ToolEntry:
    """The entry of a `BaseTool` class or instance; one instance serves all calls."""
    cls = target if isinstance(target, type) else type(target)
    if not issubclass(cls, BaseTool):
        raise RegistrationError(
            f"{cls.__name__} is not a BaseTool", hint="Subclass hermes.tools.BaseTool."
        )
    instance = target if isinstance(target, BaseTool) else cls()
    once = Once(instance)
    run = instance.run
    awaits = is_coroutine_function(run)
    is_async = awaits or is_coroutine_function(instance.setup)

    def handler(params: dict[str, Any], context: ToolContext) -> ToolResult | Any:
        once.prepare()
        return run(params, context)

    async def async_handler(params: dict[str, Any], context: ToolContext) -> ToolResult | Any:
        await once.prepare_async()
        if not awaits:
            import asyncio

            return await asyncio.to_thread(run, params, context)
        return await run(params, context)

    chosen = async_handler if is_async else handler
    for key in ("effect", "tags", "timeout_seconds"):
        fields.setdefault(key, getattr(instance, key))
    own = instance.toolset if toolset in (None, "custom") else toolset
    return ToolEntry(
        name or instance.name or cls.__name__,
        own or "custom",
        _parameters(instance),
        chosen,
        invoke=chosen,
        is_async=is_async,
        description=description or instance.description or (cls.__doc__ or "").strip(),
        module=cls.__module__,
        lifecycle=once,
        **fields,
    )


def _parameters(instance: BaseTool) -> dict[str, Any]:
    parameters = instance.parameters
    if parameters is None:
        return {"type": "object", "properties": {}}
    if isinstance(parameters, dict):
        return parameters
    raise RegistrationError(
        f"parameters of {type(instance).__name__} must be a JSON Schema object, "
        f"not {parameters!r:.60}"
    )


if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar, overload

    from hermes.core.registry import ToolRegistry

    Target = TypeVar("Target", bound=Callable[..., Any])
else:

    def overload(_):
        """Only a type checker reads overloads."""


@overload
def tool(name: Target, /) -> Target: ...
@overload
def tool(  # noqa: F811
    name: str | None = None,
    *,
    toolset: str = "custom",
    description: str | None = None,
    registry: ToolRegistry | None = None,
    **fields: Any,
) -> Callable[[Target], Target]: ...
def tool(  # noqa: F811
    name: Any = None,
    *,
    toolset: str = "custom",
    description: str | None = None,
    registry: ToolRegistry | None = None,
    **fields: Any,
) -> Any:
    """Register a function, sync or async, or a `BaseTool` class, and return it unchanged.

    The schema comes from the type hints, the text for the model from the docstring. `fields` are
    those of `ToolEntry`: tags, timeout_seconds, effect, permissions, aliases, check_fn, …
    """
    if callable(name):
        return _register(name, None, toolset, description, registry, fields)

    def decorate(target: Target) -> Target:
        return _register(target, name, toolset, description, registry, fields)

    return decorate


def _register(
    target: Target,
    name: str | None,
    toolset: str,
    description: str | None,
    registry: ToolRegistry | None,
    fields: dict[str, Any],
) -> Target:
    tools = shared if registry is None else registry
    # One decorator may be put on several targets: each has fields of its own.
    fields = dict(fields)
    if "origin" not in fields:
        fields["origin"], fields["owner"] = current_owner(target.__module__)
    if isinstance(target, type):
        tools.add(entry_for(target, name, toolset, description, fields))
        return target
    tools.add(entry_from(target, name, toolset, description, fields))
    return target


def entry_from(
    function: Callable[..., Any],
    name: str | None,
    toolset: str,
    description: str | None,
    fields: dict[str, Any],
) -> ToolEntry:
    """The entry of a plain function."""
    from hermes.core.schema import function_schema

    read = function_schema(function)
    return ToolEntry(
        name or function.__name__,
        toolset,
        read.parameters,
        function,
        invoke=keyword_invoke(function, read.context_parameter, read.convert),
        is_async=read.is_async,
        takes_context=read.context_parameter is not None,
        description=description or read.summary,
        module=function.__module__,
        **fields,
    )
