"""Odd schemas: mended so that nothing is lost, or refused with the reason."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.mcp.schemas import SchemaError, repair_schema

WORDS = st.sampled_from(
    ["type", "properties", "items", "enum", "anyOf", "oneOf", "allOf", "$ref", "required",
     "additionalProperties", "description", "default", "minimum", "pattern", "format", "not",
     "$defs", "const", "nullable", "prefixItems", "maxLength", "title"]
)  # fmt: skip
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from(["object", "string", "array", "null", "str", "#", "#/$defs/A", "x", "("]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_whatever_comes_is_mended_into_an_object_or_refused(schema: Any) -> None:
    try:
        found = repair_schema(schema).schema
    except SchemaError:
        return

    assert found["type"] == "object"
    assert isinstance(found["properties"], dict)
    jsonschema_rs.validator_for(found)
    assert not found.keys() & {"anyOf", "oneOf", "allOf", "$ref", "not"}
    assert repair_schema(found).schema == found


def test_a_plain_schema_is_left_as_it_is() -> None:
    plain = {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Where.", "minLength": 1},
            "mode": {"enum": ["a", "b"], "type": "string", "default": "a"},
            "list": {"type": "array", "items": {"type": "integer"}},
            "either": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["path"],
        "additionalProperties": False,
    }

    found = repair_schema({**plain, "$schema": "http://json-schema.org/draft-07/schema#"})

    assert found.schema == plain
    assert found.notes == []


@pytest.mark.parametrize(
    ("schema", "valid"),
    [
        (True, {"anything": 1}),
        (None, {}),
        ({"type": "object", "additionalProperties": "object"}, {"a": 1}),
        ({"type": "object", "properties": {"a": {"type": "array"}}}, {"a": [1, "x"]}),
        (
            {
                "type": "object",
                "properties": {"n": {"$ref": "#/$defs/N"}},
                "$defs": {"N": {"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}}}},
            },
            {"n": {"n": {"n": {}}}},
        ),
        (
            {"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null", "enum": ["x"]}]}}},
            {"a": None},
        ),
        ({"type": "object", "properties": {"a": {"enum": ["x", None], "type": "string"}}}, {"a": None}),
        ({"type": "object", "properties": {"a": {"type": "str"}}}, {"a": "x"}),
        ({"type": "object", "properties": {"a": True, "b": {"type": "string", "nullable": True}}}, {"a": 1, "b": None}),
        ({"type": ["object", "null"], "properties": None}, {}),
        ({"type": "object", "properties": {"a": {"items": [{"type": "string"}], "type": "array"}}}, {"a": ["x"]}),
        ({"type": "object", "required": ["gone"]}, {"gone": 1}),
        ({"type": "object", "properties": {"a": {"$ref": "https://x/y.json"}}}, {"a": 5}),
        ({"oneOf": [{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}, {"type": "object"}]}, {"a": "x"}),
        ({"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}, {"a": "x"}),
    ],
)  # fmt: skip
def test_odd_schemas_take_what_they_meant_to_take(schema: Any, valid: Any) -> None:
    found = repair_schema(schema)

    assert jsonschema_rs.validator_for(found.schema).is_valid(valid)


@pytest.mark.parametrize("schema", [False, "text", 7, [], {"type": "string"}, {"type": "array"}])
def test_what_cant_be_arguments_is_refused_with_the_reason(schema: Any) -> None:
    with pytest.raises(SchemaError, match=r"schema|arguments"):
        repair_schema(schema)


def test_a_schema_that_would_grow_without_end_is_refused() -> None:
    layers = {f"L{n}": {"type": "object", "properties": {x: {"$ref": f"#/$defs/L{n + 1}"} for x in "abcd"}} for n in range(12)}  # fmt: skip

    with pytest.raises(SchemaError, match="too large"):
        repair_schema(
            {"type": "object", "properties": {"a": {"$ref": "#/$defs/L0"}}, "$defs": layers}
        )


def test_texts_are_cleaned_and_kept_short() -> None:
    hidden = "see\u200b\u202ethis\U000e0041 " + "x" * 5000

    found = repair_schema({"type": "object", "properties": {"a": {"description": hidden}}}).schema

    said = found["properties"]["a"]["description"]
    assert said.startswith("seethis ")
    assert len(said) <= 500
