"""Schemas of all ages and qualities: understood, or refused for good."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest
from tests.corpus import each

from hermes.core.arguments import ArgumentReader, coerce_tool_args
from hermes.core.errors import ArgumentError


def test_formats_are_not_asserted() -> None:
    draft_7 = "http://json-schema.org/draft-07/schema#"
    schema = {"$schema": draft_7, "properties": {"mail": {"type": "string", "format": "email"}}}

    assert coerce_tool_args(schema, {"mail": "not an address"}) == {"mail": "not an address"}


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"v": {"type": "integer", "minimum": 1, "exclusiveMinimum": True}}},
        {"properties": {"v": {"type": "integer", "exclusiveMinimum": 1}}},
        {
            "$schema": "http://json-schema.org/draft-04/schema#",
            "properties": {"v": {"type": "integer", "minimum": 1, "exclusiveMinimum": True}},
        },
        {
            "$schema": "https://example.invalid/dialect",
            "properties": {"v": {"type": "integer", "minimum": 2}},
        },
        {
            "definitions": {"n": {"type": "integer", "minimum": 2}},
            "properties": {"v": {"$ref": "#/definitions/n"}},
        },
        {
            "$ref": "#/$defs/all",
            "$defs": {"all": {"properties": {"v": {"type": "integer", "minimum": 2}}}},
        },
        OrderedDict(properties={"v": {"type": "integer", "minimum": 2}}),
    ],
)
def test_dialects_keep_their_meaning(schema: dict[str, Any]) -> None:
    assert coerce_tool_args(schema, {"v": "2"}) == {"v": 2}
    with pytest.raises(ArgumentError):
        coerce_tool_args(schema, {"v": "1"})


def test_positional_items_of_older_dialects_are_understood() -> None:
    items = {"items": [{"type": "integer"}], "additionalItems": {"type": "boolean"}}
    old = {"$schema": "http://json-schema.org/draft-07/schema#"}

    for head in ({}, old):
        schema: dict[str, Any] = {**head, "properties": {"v": {"type": "array", **items}}}
        assert coerce_tool_args(schema, {"v": ["1", "true"]}) == {"v": [1, True]}
        with pytest.raises(ArgumentError):
            coerce_tool_args(schema, {"v": [1, 2]})


@each(
    "schema",
    [
        {"type": "strin"},
        {"properties": {"v": {"type": "str"}}},
        {"properties": []},
        {"properties": {"v": 5}},
        {"additionalProperties": "object"},
        {"properties": {"v": {"$ref": "#/$defs/missing"}}},
        {"properties": {"v": {"$ref": "http://127.0.0.1:9/schema.json"}}},
        {"properties": {"v": {"pattern": "("}}},
        {"required": "path"},
        {"anyOf": []},
        {"enum": {1, 2}},
        {1: 2},
        pytest.param({"const": 10**5_000}, id="huge"),
        [],
        5,
        None,
        "object",
    ],
)
def test_a_broken_schema_fails_closed(schema: Any) -> None:
    for arguments in ({}, {"v": 1}, None, '{"v": 1}'):
        with pytest.raises(ArgumentError, match="the tool's own schema is invalid"):
            coerce_tool_args(schema, arguments)


def test_a_schema_that_holds_itself_fails_closed() -> None:
    schema: dict[str, Any] = {"properties": {}}
    schema["properties"]["v"] = schema

    with pytest.raises(ArgumentError, match="schema is invalid"):
        coerce_tool_args(schema, {})


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"properties": {"v": {"$ref": "#/properties/v"}}},
        {
            "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}},
            "$ref": "#/$defs/a",
        },
        {
            "$defs": {"a": {"default": {}, "properties": {"v": {"$ref": "#/$defs/a"}}}},
            "$ref": "#/$defs/a",
        },
        {
            "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "integer"}]}},
            "properties": {"v": {"$ref": "#/$defs/a"}},
        },
    ],
)
def test_references_in_circles_do_no_harm(schema: dict[str, Any]) -> None:
    for value in ("1", {"v": "2"}, None):
        try:
            read = coerce_tool_args(schema, {"v": value})
        except ArgumentError:
            continue
        assert "v" in read


def test_boolean_schemas_are_schemas() -> None:
    assert ArgumentReader(True).read({"a": 1}) == {"a": 1}  # type: ignore[arg-type]
    with pytest.raises(ArgumentError):
        ArgumentReader(False).read({"a": 1})  # type: ignore[arg-type]


def test_lone_surrogates_in_a_schema_do_no_harm() -> None:
    schema = {"description": "\ud800", "properties": {"\udc00": {"type": "integer"}}}

    assert coerce_tool_args(schema, {"a": 1}) == {"a": 1}


def test_arguments_stay_an_object_whatever_the_schema_says() -> None:
    for schema in ({"type": "array"}, {"anyOf": [{"type": "array"}, {"type": "string"}]}):
        with pytest.raises(ArgumentError):
            coerce_tool_args(schema, {"a": 1})


def test_a_schema_may_change_between_calls() -> None:
    schema: dict[str, Any] = {"properties": {"v": {"const": 1}}}
    assert coerce_tool_args(schema, {"v": "1"}) == {"v": 1}

    schema["properties"]["v"]["const"] = True
    assert coerce_tool_args(schema, {"v": "true"}) == {"v": True}

    schema["properties"]["v"] = {"type": "string"}
    assert coerce_tool_args(schema, {"v": 1}) == {"v": "1"}


def test_a_change_after_the_first_call_does_not_reach_a_remembered_schema() -> None:
    schema: dict[str, Any] = {"properties": {"n": {"type": "integer"}}}
    assert coerce_tool_args(schema, {"n": 1}) == {"n": 1}
    schema["properties"]["n"]["type"] = "string"

    assert coerce_tool_args({"properties": {"n": {"type": "integer"}}}, {"n": "1"}) == {"n": 1}


def test_nullable_opens_unions_to_null() -> None:
    integer, boolean = {"type": "integer"}, {"type": "boolean"}
    closed = {"properties": {"v": {"oneOf": [integer, boolean]}}}
    opened = {"properties": {"v": {"oneOf": [integer, boolean], "nullable": True}}}
    twice = {"properties": {"v": {"oneOf": [{**integer, "nullable": True}, {"type": "null"}]}}}

    assert coerce_tool_args(opened, {"v": None}) == {"v": None}
    assert coerce_tool_args(opened, {"v": "null"}) == {"v": None}
    assert coerce_tool_args(twice, {"v": None}) == {"v": None}
    with pytest.raises(ArgumentError):
        coerce_tool_args(closed, {"v": None})
    with pytest.raises(ArgumentError):
        coerce_tool_args(opened, {"v": "x"})


def test_a_parameter_may_be_called_nullable_or_default() -> None:
    schema = {"properties": {"nullable": {"type": "boolean"}, "default": {"type": "integer"}}}

    assert coerce_tool_args(schema, {"nullable": "true"}) == {"nullable": True}
    assert coerce_tool_args(schema, {"default": "1"}) == {"default": 1}


@pytest.mark.parametrize("depth", [20, 80, 120, 300, 3_000])
def test_deep_schemas_validate_or_fail_closed(depth: int) -> None:
    schema: dict[str, Any] = {"type": "integer", "default": 1}
    value: Any = "x"
    for _ in range(depth):
        schema = {"type": "object", "properties": {"v": schema}}
        value = {"v": value}

    with pytest.raises(ArgumentError):
        coerce_tool_args(schema, value)
