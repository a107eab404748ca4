"""Handler invocation: `invoke(args, ctx)` built once from the signature of a handler."""

from __future__ import annotations

from hermes.core.errors import RegistrationError

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any

    Invoke = Callable[[dict[str, Any], Any], Any]

_VARIADIC = 0x08  # code flag: takes **kwargs
_COROUTINE = 0x80
_CONTEXT_NAMES = ("ctx", "context")


def is_coroutine_function(handler: Callable[..., Any]) -> bool:
    """Whether calling `handler` gives an awaitable, seen without importing `inspect`."""
    code = _code(_unwrapped(handler))
    return code is not None and bool(code.co_flags & _COROUTINE)


def keyword_invoke(
    handler: Callable[..., Any],
    context_parameter: str | None,
    convert: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
) -> Invoke:
    """Calls `handler` with the arguments as keywords."""
    if convert is not None:
        if context_parameter:
            return lambda args, ctx: handler(**convert(args), **{context_parameter: ctx})
        return lambda args, ctx: handler(**convert(args))  # noqa: ARG005
    if context_parameter:
        return lambda args, ctx: handler(**args, **{context_parameter: ctx})
    return lambda args, ctx: handler(**args)  # noqa: ARG005


def invoke_for(handler: Callable[..., Any], properties: Collection[str]) -> Invoke:
    """How to call a handler that was registered beside an explicit schema."""
    function = _unwrapped(handler)
    code = _code(function)
    if code is None:
        # A builtin or C callable says nothing of itself: the arguments go in by name.
        return keyword_invoke(handler, None)
    names = list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    positional = names[: code.co_argcount]
    by_place = set(names[: code.co_posonlyargcount])
    given = _given(handler) + bool(positional and _is_bound(function))
    names = [name for name in names if name not in positional[:given]]
    positional = positional[given:]
    context = _context_parameter(function, names, properties)
    if context in positional:
        positional.remove(context)
    variadic = bool(code.co_flags & _VARIADIC)
    if not positional or positional[0] in properties:
        missing = [
            name for name in properties if name in by_place or (name not in names and not variadic)
        ]
        if missing:
            raise RegistrationError(
                f"handler {handler!r} has no parameter for {', '.join(missing)} of its schema",
                hint="Name the parameters as in the schema, or take one mapping: handler(args).",
            )
        return keyword_invoke(handler, context)
    if context:
        return lambda args, ctx: handler(args, **{context: ctx})
    if variadic:
        return lambda args, ctx: handler(args, context=ctx, task_id=ctx.task_id)
    return lambda args, ctx: handler(args)  # noqa: ARG005


def _unwrapped(handler: Any) -> Any:
    """The function inside `functools.partial`."""
    while _is_partial(handler):
        handler = handler.func
    return handler


def _given(handler: Any) -> int:
    """How many leading arguments a `functools.partial` has filled in."""
    return _given(handler.func) + len(handler.args) if _is_partial(handler) else 0


def _is_partial(handler: Any) -> bool:
    return type(handler).__module__ == "functools" and hasattr(handler, "func")


def _code(handler: Callable[..., Any]) -> Any:
    target: Any = handler
    if not hasattr(target, "__code__") and not hasattr(target, "__func__"):
        target = getattr(type(target), "__call__", None)  # noqa: B004
    target = getattr(target, "__func__", target)
    return getattr(target, "__code__", None)


def _is_bound(handler: Callable[..., Any]) -> bool:
    return hasattr(handler, "__self__") or not hasattr(handler, "__code__")


def _context_parameter(handler: Any, names: list[str], properties: Collection[str]) -> str | None:
    notes = getattr(handler, "__annotations__", {})
    for name in names:
        note = notes.get(name)
        if (note if isinstance(note, str) else getattr(note, "__name__", "")) == "ToolContext":
            return name
    return next((n for n in _CONTEXT_NAMES if n in names and n not in properties), None)
