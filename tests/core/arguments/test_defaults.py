"""Absent keys get the schema's default where that is certain, and nothing else is added."""

from __future__ import annotations

from typing import Any

from tests.corpus import each

from hermes.core.arguments import ArgumentReader, coerce_tool_args

INNER: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer", "default": 1}}}


def read(properties: dict[str, Any], arguments: object, **rest: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, **rest}
    return coerce_tool_args(schema, arguments)  # type: ignore[arg-type]


@each(
    ("schema", "arguments", "expected"),
    [
        ({"type": "integer", "default": 5}, {}, {"v": 5}),
        ({"type": "integer", "default": 5}, {"v": 6}, {"v": 6}),
        ({"type": "integer", "default": 5}, {"v": "6"}, {"v": 6}),
        ({"type": ["integer", "null"], "default": None}, {}, {"v": None}),
        ({"type": ["integer", "null"], "default": 5}, {"v": None}, {"v": None}),
        ({"default": [1]}, {}, {"v": [1]}),
        (INNER, {}, {}),
        (INNER, {"v": {}}, {"v": {"n": 1}}),
        (INNER, {"v": "{}"}, {"v": {"n": 1}}),
        ({**INNER, "default": {}}, {}, {"v": {"n": 1}}),
        ({"type": "array", "items": INNER}, {"v": [{}, {"n": 2}]}, {"v": [{"n": 1}, {"n": 2}]}),
        ({"anyOf": [INNER, {"type": "null"}]}, {"v": {}}, {"v": {"n": 1}}),
        ({"additionalProperties": INNER}, {"v": {"x": {}}}, {"v": {"x": {"n": 1}}}),
        ({"$ref": "#/$defs/inner"}, {"v": {}}, {"v": {"n": 1}}),
        ({"$ref": "#/$defs/five"}, {}, {"v": 5}),
        ({"allOf": [INNER]}, {"v": {}}, {"v": {"n": 1}}),
        ({"type": "string", "default": None}, {}, {}),
        ({"type": "integer", "default": "5"}, {}, {}),
    ],
)
def test_defaults_are_filled(schema: dict[str, Any], arguments: object, expected: object) -> None:
    found = read({"v": schema}, arguments, **{"$defs": {"inner": INNER, "five": {"default": 5}}})

    assert found == expected


def test_a_default_fills_a_required_key() -> None:
    assert read({"v": {"type": "integer", "default": 1}}, {}, required=["v"]) == {"v": 1}


def test_a_default_that_breaks_a_rule_between_fields_stays_out() -> None:
    properties = {"a": {"type": "integer"}, "b": {"type": "integer", "default": 1}}
    either = [{"required": ["a"]}, {"required": ["b"]}]

    assert read(properties, {"a": 1}, oneOf=either) == {"a": 1}
    assert read(properties, {"a": "1"}, oneOf=either) == {"a": 1}
    assert read(properties, {}, oneOf=either) == {"b": 1}


def test_two_possible_branches_fill_nothing() -> None:
    other = {"type": "object", "properties": {"n": {"type": "integer", "default": 2}}}

    assert read({"v": {"anyOf": [INNER, other]}}, {"v": {}}) == {"v": {}}


def test_callers_can_not_change_the_defaults() -> None:
    reader = ArgumentReader({"properties": {"v": {"default": {"list": []}}}})

    reader.read({})["v"]["list"].append("poison")

    assert reader.read({}) == {"v": {"list": []}}


def test_the_callers_arguments_stay_as_they_are() -> None:
    arguments: dict[str, Any] = {"v": {}}

    read({"v": INNER, "w": {"default": 1}}, arguments)

    assert arguments == {"v": {}}
