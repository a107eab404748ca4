"""How handlers of every shape are called."""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, Any

import pytest
from tests.corpus import each

from hermes.core import RegistrationError, ToolContext
from hermes.core.entry import invoke_for, is_coroutine_function

if TYPE_CHECKING:
    from collections.abc import Callable

ARGUMENTS = {"path": "p", "limit": 3}


class Box:
    """A handler in every place a class has for one."""

    def method(self, path: str, limit: int) -> Any:
        return path, limit

    def mapping(self, args: dict[str, Any]) -> Any:
        return args["path"], args["limit"]

    @classmethod
    def of_class(cls, path: str, limit: int) -> Any:
        return path, limit

    @staticmethod
    def static(path: str, limit: int) -> Any:
        return path, limit

    def __call__(self, path: str, limit: int) -> Any:
        return path, limit

    async def later(self, path: str, limit: int) -> Any:
        return path, limit


class MappingBox:
    def __call__(self, args: dict[str, Any], **more: Any) -> Any:
        return args["path"], args["limit"]


def by_name(path: str, limit: int = 1) -> Any:
    return path, limit


def keyword_only(*, path: str, limit: int) -> Any:
    return path, limit


def anything(**given: Any) -> Any:
    return given["path"], given["limit"]


def mapping(args: dict[str, Any]) -> Any:
    return args["path"], args["limit"]


def mapping_and_more(args: dict[str, Any], **more: Any) -> Any:
    assert more["task_id"] == "main"
    return args["path"], args["limit"]


def by_place(args: dict[str, Any], /) -> Any:
    return args["path"], args["limit"]


def with_first(prefix: str, args: dict[str, Any]) -> Any:
    return args["path"], args["limit"]


HANDLERS: list[Callable[..., Any]] = [
    by_name,
    keyword_only,
    anything,
    mapping,
    mapping_and_more,
    by_place,
    lambda args, **kw: (args["path"], args["limit"]),
    Box().method,
    Box().mapping,
    Box.of_class,
    Box.static,
    Box(),
    MappingBox(),
    functools.partial(by_name),
    functools.partial(mapping),
    functools.partial(with_first, "x"),
    functools.partial(functools.partial(with_first, "x")),
    functools.partial(Box().method),
]


@each("handler", HANDLERS)
def test_a_handler_of_any_shape_gets_its_arguments(handler: Any) -> None:
    invoke = invoke_for(handler, ["path", "limit"])

    assert invoke(dict(ARGUMENTS), ToolContext()) == ("p", 3)


def annotated(where: ToolContext, path: str, limit: int) -> Any:
    return where, path, limit


def named_ctx(path: str, limit: int, ctx: Any) -> Any:
    return ctx, path, limit


def named_context(path: str, limit: int, *, context: Any = None) -> Any:
    return context, path, limit


def mapping_with_context(args: dict[str, Any], ctx: Any) -> Any:
    return ctx, args["path"], args["limit"]


def context_first(ctx: ToolContext, args: dict[str, Any]) -> Any:
    return ctx, args["path"], args["limit"]


class ContextBox:
    def __call__(self, args: dict[str, Any], ctx: ToolContext) -> Any:
        return ctx, args["path"], args["limit"]


@pytest.mark.parametrize(
    "handler",
    [
        annotated,
        named_ctx,
        named_context,
        mapping_with_context,
        functools.partial(annotated),
        ContextBox(),
    ],
)
def test_whoever_wants_the_context_gets_it(handler: Any) -> None:
    context = ToolContext()

    got = invoke_for(handler, ["path", "limit"])(dict(ARGUMENTS), context)

    assert got == (context, "p", 3)


def test_a_property_called_context_is_an_argument() -> None:
    def search(query: str, context: int) -> Any:
        return query, context

    invoke = invoke_for(search, ["query", "context"])

    assert invoke({"query": "q", "context": 2}, ToolContext()) == ("q", 2)


def test_a_handler_without_room_for_a_property_is_refused() -> None:
    with pytest.raises(RegistrationError, match="limit"):
        invoke_for(lambda path: path, ["path", "limit"])


def test_a_parameter_that_takes_no_name_is_refused_for_a_property() -> None:
    def placed(path: str, /, limit: int) -> Any:
        return path, limit

    with pytest.raises(RegistrationError, match="path"):
        invoke_for(placed, ["path", "limit"])


def test_a_builtin_is_called_by_name() -> None:
    assert invoke_for(dict, ["path", "limit"])(dict(ARGUMENTS), None) == ARGUMENTS


def test_async_handlers_are_known_in_every_shape() -> None:
    async def plain() -> None:
        await asyncio.sleep(0)

    class Callable_:  # noqa: N801
        async def __call__(self) -> None:
            await asyncio.sleep(0)

    assert is_coroutine_function(plain)
    assert is_coroutine_function(Box().later)
    assert is_coroutine_function(Callable_())
    assert is_coroutine_function(functools.partial(plain))
    assert is_coroutine_function(functools.partial(functools.partial(Box().later)))
    for other in (by_name, Box(), Box().method, len, dict, functools.partial(by_name)):
        assert not is_coroutine_function(other)
