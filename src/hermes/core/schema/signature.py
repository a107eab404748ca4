"""The parameters of a callable, read from its code object: `inspect` costs 20 ms to import."""

from __future__ import annotations

import sys
from types import FunctionType, MethodType

from hermes.core.errors import RegistrationError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_VARARGS, _VARKEYWORDS, _COROUTINE = 0x04, 0x08, 0x80
_MOST_LAYERS = 100  # of decorators and partials around one function


class _Missing:
    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"


MISSING = _Missing()


class Parameter:
    """One parameter that can be passed by name."""

    __slots__ = ("annotation", "default", "name")

    def __init__(self, name: str, annotation: object, default: object) -> None:
        self.name = name
        self.annotation = annotation
        self.default = default


class Signature:
    """What a callable takes, without what is already bound, and the function it comes from."""

    __slots__ = ("doc", "function", "is_async", "keywords", "keywords_name", "name", "parameters")

    def __init__(self, fn: Callable[..., Any]) -> None:
        consumed = 0
        fixed: set[str] = set()
        if type(fn) is FunctionType and not fn.__dict__:  # the common case, at a third of the cost
            function = fn
            self.is_async = bool(fn.__code__.co_flags & _COROUTINE)
            self.doc = fn.__doc__
        else:
            function, consumed, fixed = _unwrap(fn)
            self.is_async = _is_async(fn)
            self.doc = _doc(fn) or function.__doc__
        self.function = function
        self.name = function.__qualname__
        self.parameters: list[Parameter] = []
        self.keywords: object = MISSING  # the annotation of **kwargs
        self.keywords_name: str | None = None
        self._read(consumed, fixed)

    def _read(self, consumed: int, fixed: set[str]) -> None:
        function = self.function
        code = function.__code__
        names = code.co_varnames
        count = code.co_argcount
        end = count + code.co_kwonlyargcount
        hints = annotations_of(function)
        if code.co_flags & _VARARGS:
            raise RegistrationError(
                f"{self.name} takes *{names[end]}, and a tool is called by name",
                hint="Take a list instead; in a decorator, use functools.wraps.",
            )
        defaults = function.__defaults__ or ()
        first_default = count - len(defaults)
        for index in range(consumed, count):
            name = names[index]
            if name in fixed:
                continue
            if index < code.co_posonlyargcount:
                raise RegistrationError(
                    f"{self.name}: the parameter '{name}' is positional-only, "
                    "and a tool is called by name",
                    hint="Remove the '/' from the signature.",
                )
            default = defaults[index - first_default] if index >= first_default else MISSING
            self.parameters.append(Parameter(name, hints.get(name, MISSING), default))
        keyword_defaults = function.__kwdefaults__ or {}
        for name in names[count:end]:
            if name not in fixed:
                default = keyword_defaults.get(name, MISSING)
                self.parameters.append(Parameter(name, hints.get(name, MISSING), default))
        if code.co_flags & _VARKEYWORDS:
            self.keywords_name = names[end]
            self.keywords = hints.get(names[end], MISSING)


def annotations_of(owner: Any) -> dict[str, Any]:
    """The annotations written on a function or on this very class; text where they can't run."""
    if sys.version_info >= (3, 14):
        from annotationlib import Format, get_annotations

        try:
            return get_annotations(owner)
        except NameError:
            return get_annotations(owner, format=Format.STRING)
    found = owner.__dict__ if isinstance(owner, type) else {}
    return found.get("__annotations__", {}) if found else getattr(owner, "__annotations__", {})


def _unwrap(fn: Any) -> tuple[FunctionType, int, set[str]]:
    """The innermost function, how many leading parameters are bound, and which names are."""
    consumed = 0
    fixed: set[str] = set()
    target = fn
    for _ in range(_MOST_LAYERS):
        if isinstance(target, MethodType):
            consumed += 1
            target = target.__func__
        elif _is_partial(target):
            consumed += len(target.args)
            fixed.update(target.keywords)
            target = target.func
        elif getattr(target, "__wrapped__", None) is not None:
            target = target.__wrapped__
        elif isinstance(target, FunctionType):
            return target, consumed, fixed
        elif not isinstance(target, type) and isinstance(_call_method(target), FunctionType):
            consumed += 1
            target = _call_method(target)
        else:
            break
    raise RegistrationError(
        f"{fn!r} has no Python signature to make a schema from",
        hint="Write a function with `def` that calls it.",
    )


def _is_partial(target: object) -> bool:
    functools = sys.modules.get("functools")
    return functools is not None and isinstance(target, functools.partial)


def _is_async(fn: Any) -> bool:
    """Whether calling it makes a coroutine: the outermost function decides."""
    while _is_partial(fn) or isinstance(fn, MethodType):
        fn = fn.func if _is_partial(fn) else fn.__func__
    code = getattr(fn, "__code__", None) or getattr(_call_method(fn), "__code__", None)
    return code is not None and bool(code.co_flags & _COROUTINE)


def _doc(fn: Any) -> str | None:
    if _is_partial(fn):
        own: str | None = fn.__dict__.get("__doc__")
        return own or _doc(fn.func)
    if isinstance(fn, (FunctionType, MethodType)) or hasattr(fn, "__wrapped__"):
        text: str | None = fn.__doc__
        return text
    return getattr(_call_method(fn), "__doc__", None) or type(fn).__doc__


def _call_method(target: object) -> Any:
    return getattr(type(target), "__call__", None)  # noqa: B004 - the method itself is wanted
