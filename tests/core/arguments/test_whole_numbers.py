"""A handler that wants integers is given integers, however a model has written them."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.core import ToolCall, ToolRegistry, coerce_tool_args, tool
from hermes.core.arguments import ArgumentReader
from hermes.runtime import Runtime

INTEGER = {"type": "integer"}
NUMBER = {"type": "number"}


def read(schema: Any, value: Any, **more: Any) -> Any:
    whole = {"type": "object", "properties": {"v": schema}, **more}
    return ArgumentReader(whole, for_python=True).read({"v": value})["v"]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (INTEGER, 2.0),
        (INTEGER, "2.0"),
        ({"type": ["integer", "null"]}, 2.0),
        ({"anyOf": [INTEGER, {"type": "null"}]}, 2.0),
        ({"enum": [1, 2]}, 2.0),
        ({"allOf": [NUMBER, INTEGER]}, 2.0),
        ({"$ref": "#/$defs/count"}, 2.0),
    ],
)
def test_a_whole_number_is_an_int(schema: Any, value: Any) -> None:
    found = read(schema, value, **{"$defs": {"count": INTEGER}})

    assert (found, type(found)) == (2, int)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (NUMBER, 2.0),
        ({}, 2.0),
        ({"type": ["integer", "number"]}, 2.0),
        ({"anyOf": [INTEGER, NUMBER]}, 2.0),
        ({"type": "array", "items": NUMBER}, [2.0]),
        ({"type": "object", "properties": {"a": NUMBER}}, {"a": 2.0, "b": 3.0}),
        (
            {
                "anyOf": [
                    {"type": "array", "items": INTEGER},
                    {"type": "array", "items": NUMBER},
                ]
            },
            [2.0],
        ),
    ],
)
def test_what_may_be_a_fraction_is_not_touched(schema: Any, value: Any) -> None:
    assert read(schema, value) is value


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"type": "array", "items": INTEGER}, [1.0, 2, 3.0], [1, 2, 3]),
        ({"anyOf": [{"type": "array", "items": INTEGER}, {"type": "null"}]}, [1.0], [1]),
        ({"type": "array", "prefixItems": [INTEGER, NUMBER]}, [1.0, 2.0], [1, 2.0]),
        ({"type": "object", "properties": {"a": INTEGER}}, {"a": 1.0}, {"a": 1}),
        ({"type": "object", "additionalProperties": INTEGER}, {"a": 1.0}, {"a": 1}),
        (
            {"type": "array", "items": {"type": "object", "properties": {"a": INTEGER}}},
            [{"a": 1.0}],
            [{"a": 1}],
        ),
    ],
)
def test_so_it_is_inside_of_lists_and_objects(schema: Any, value: Any, expected: Any) -> None:
    before = repr(value)

    found = read(schema, value)

    assert repr(found) == repr(expected)
    assert repr(value) == before


def test_so_it_is_where_the_items_are_written_as_they_once_were() -> None:
    old = {"type": "array", "items": [NUMBER, INTEGER], "additionalItems": INTEGER}

    found = read(old, [1.0, 2.0, 3.0], **{"$schema": "http://json-schema.org/draft-07/schema#"})

    assert repr(found) == "[1.0, 2, 3]"


def test_a_function_of_ours_counts_with_what_it_is_given() -> None:
    registry = ToolRegistry()

    @tool(registry=registry, effect="read")
    def count(n: int, steps: list[int] | None = None) -> list[int]:
        """Count."""
        return [*range(n), *(range(10)[step] for step in steps or [])]

    with Runtime(registry) as runtime:
        said = [
            runtime.call_sync(ToolCall("count", arguments)).content
            for arguments in (
                {"n": 2.0},
                '{"n": 2.0, "steps": [3.0]}',
                {"n": "2.0", "steps": 3.0},
                {"n": 2, "steps": "[3.0]"},
            )
        ]

    assert said == ["[0,1]", "[0,1,3]", "[0,1,3]", "[0,1,3]"]


def test_the_plain_function_leaves_what_is_valid_as_it_is() -> None:
    value = 2.0

    found = coerce_tool_args({"properties": {"v": INTEGER}}, {"v": value})

    assert found["v"] is value
