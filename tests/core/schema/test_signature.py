"""Every kind of callable: what becomes a parameter, what stays out, what is refused."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Annotated, Any, Optional

import pytest

from hermes.core.errors import RegistrationError
from hermes.core.schema import function_schema

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from elsewhere import ToolContext, Unknown


def read(ctx: ToolContext, path: str, offset: int = 1, *, whole: bool = False) -> Unknown:
    """Read a file.

    Args:
        path: Where it is.
    """


def test_parameters_become_properties_in_the_order_of_the_signature() -> None:
    schema = function_schema(read)

    assert schema.parameters == {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Where it is."},
            "offset": {"type": "integer", "default": 1},
            "whole": {"type": "boolean", "default": False},
        },
        "required": ["path"],
        "additionalProperties": False,
    }
    assert list(schema.parameters["properties"]) == ["path", "offset", "whole"]
    assert schema.summary == "Read a file."
    assert schema.context_parameter == "ctx"
    assert not schema.is_async
    assert not schema.accepts_kwargs
    assert schema.convert is None


def test_two_calls_share_nothing_that_can_be_changed() -> None:
    def names(values: list[str] | None, other: list[str] | None) -> None: ...

    first = function_schema(names).parameters["properties"]["values"]
    first["items"]["type"] = "changed"

    assert function_schema(names).parameters["properties"]["values"]["items"] == {"type": "string"}


@pytest.mark.parametrize(
    "hint",
    [
        "ToolContext",
        "'ToolContext'",
        "ToolContext | None",
        "None | context.ToolContext",
        "Optional[ToolContext]",
        "typing.Optional['ToolContext']",
        "Annotated[ToolContext, 'the call']",
        "hermes.core.ToolContext",
    ],
)
def test_the_context_is_known_by_its_name_even_where_it_is_not_imported(hint: str) -> None:
    def tool(where, x): ...  # type: ignore[no-untyped-def]

    tool.__annotations__ = {"where": hint, "x": "int"}

    schema = function_schema(tool)

    assert schema.context_parameter == "where"
    assert list(schema.parameters["properties"]) == ["x"]


def test_the_context_is_known_by_its_class() -> None:
    context = type("ToolContext", (), {})
    derived = type("MyContext", (context,), {})

    def tool(c, x): ...  # type: ignore[no-untyped-def]

    optional = Optional[context]  # noqa: UP045 - an older spelling than `|`
    for hint in (context, derived, optional, context | None, Annotated[context, "c"]):
        tool.__annotations__ = {"c": hint}
        assert function_schema(tool).context_parameter == "c"


def test_two_contexts_are_refused() -> None:
    def tool(a: ToolContext, b: ToolContext) -> None: ...

    with pytest.raises(RegistrationError, match="two contexts: 'a' and 'b'"):
        function_schema(tool)


def test_skipped_parameters_stay_out_and_may_be_described() -> None:
    def tool(a: int, secret: Unknown) -> None:
        """Work.

        Args:
            a: One.
            secret: Not for the model.
        """

    schema = function_schema(tool, skip=["secret"])

    assert list(schema.parameters["properties"]) == ["a"]


def test_parameters_without_a_hint_take_any_value() -> None:
    def tool(a, b=2): ...  # type: ignore[no-untyped-def]

    assert function_schema(tool).parameters["properties"] == {"a": {}, "b": {"default": 2}}


class Counter:
    """Counts."""

    Step = int

    def bound(self, step: Step) -> int:
        """Count on."""
        return step

    @classmethod
    def of_class(cls, step: int) -> int:
        return step

    @staticmethod
    def free(step: int) -> int:
        return step

    async def __call__(self, step: int) -> int:
        """Count by calling."""
        return step


@pytest.mark.parametrize(
    "fn", [Counter().bound, Counter.of_class, Counter.free, Counter().free, Counter()]
)
def test_methods_and_callable_objects_have_their_own_parameters_only(
    fn: Callable[..., Any],
) -> None:
    assert list(function_schema(fn).parameters["properties"]) == ["step"]


def test_a_callable_object_has_the_text_and_the_nature_of_its_call() -> None:
    schema = function_schema(Counter())

    assert schema.summary == "Count by calling."
    assert schema.is_async


def test_what_a_partial_has_bound_is_no_longer_asked_for() -> None:
    async def send(server: str, text: str, times: int = 1, key: str = "") -> None:
        """Send it."""

    schema = function_schema(functools.partial(send, "here", key="hidden"))

    assert list(schema.parameters["properties"]) == ["text", "times"]
    assert schema.summary == "Send it."
    assert schema.is_async


def test_a_partial_of_a_bound_method_counts_both() -> None:
    class Box:
        def put(self, a: int, b: int) -> None: ...

    schema = function_schema(functools.partial(Box().put, 1))

    assert list(schema.parameters["properties"]) == ["b"]


def test_a_wrapped_function_shows_what_it_wraps() -> None:
    def logged(fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            return fn(*args, **kwargs)

        return wrapper

    @logged
    @functools.lru_cache
    def work(path: Path, n: int = 2) -> None:
        """Work."""

    schema = function_schema(work)

    assert list(schema.parameters["properties"]) == ["path", "n"]
    assert schema.summary == "Work."
    assert schema.is_async


def test_star_arguments_are_refused_with_a_way_out() -> None:
    def tool(*names: str) -> None: ...

    with pytest.raises(RegistrationError, match=r"\*names") as caught:
        function_schema(tool)
    assert "list" in (caught.value.hint or "")


def test_positional_only_parameters_are_refused_by_name() -> None:
    def tool(first: int, /, second: int) -> None: ...

    with pytest.raises(RegistrationError, match="'first' is positional-only"):
        function_schema(tool)


@pytest.mark.parametrize("thing", [len, int, Counter, 3, "text", None])
def test_what_has_no_python_signature_is_refused(thing: Any) -> None:
    with pytest.raises(RegistrationError, match="no Python signature"):
        function_schema(thing)


def test_keyword_arguments_open_the_object() -> None:
    def plain(a: int, **rest) -> None: ...  # type: ignore[no-untyped-def]

    def typed(a: int, **rest: Path) -> None: ...

    assert function_schema(plain).parameters["additionalProperties"] is True
    schema = function_schema(typed)
    assert schema.parameters["additionalProperties"] == {"type": "string"}
    assert schema.accepts_kwargs
    assert schema.convert is not None
    assert str(schema.convert({"a": 1, "b": "x/y"})["b"].parent) == "x"


def test_a_hint_that_nobody_can_resolve_names_function_parameter_and_hint() -> None:
    def tool(a: int, thing: Unknown | None) -> None: ...

    with pytest.raises(RegistrationError) as caught:
        function_schema(tool)
    message = str(caught.value)
    assert "tool" in message
    assert "'thing'" in message
    assert "Unknown | None" in message
    assert "TYPE_CHECKING" in (caught.value.hint or "")


@pytest.mark.parametrize("hint", [complex, "list[complex]", type[int], "dict[float, int]", "1 +"])
def test_a_hint_without_a_schema_is_refused(hint: Any) -> None:
    def tool(a) -> None: ...  # type: ignore[no-untyped-def]

    tool.__annotations__ = {"a": hint}

    with pytest.raises(RegistrationError, match="'a'") as caught:
        function_schema(tool)
    assert caught.value.hint
