"""One error names every problem: the field, what was expected, what was received."""

from __future__ import annotations

from typing import Any

import pytest
from tests.corpus import each

from hermes.core.arguments import coerce_tool_args
from hermes.core.errors import ArgumentError

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 100},
        "mode": {"enum": ["fast", "slow"]},
        "tags": {"type": "array", "items": {"type": "string", "pattern": "^[a-z]+$"}},
        "where": {
            "type": "object",
            "properties": {"from": {"type": "string"}, "odd key": {"type": "integer"}},
            "required": ["from"],
            "additionalProperties": False,
        },
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    },
    "required": ["path"],
    "additionalProperties": False,
}


def error(arguments: object, schema: dict[str, Any] = SCHEMA) -> ArgumentError:
    with pytest.raises(ArgumentError) as caught:
        coerce_tool_args(schema, arguments)  # type: ignore[arg-type]
    found = caught.value
    assert len(str(found)) <= 2_000
    assert found.hint
    assert len(found.hint) <= 600
    assert str(found).encode()
    return found


def test_every_problem_is_listed_at_once() -> None:
    found = error(
        {
            "limit": "abc",
            "mode": "quick",
            "tags": ["ok", "No"],
            "where": {"odd key": "x"},
            "maybe": "soon",
            "pth": "a.txt",
        }
    )

    assert set(found.problems) == {
        "path: required, but missing",
        'limit: expected an integer, received "abc" (string)',
        'mode: expected one of "fast", "slow", received "quick" (string)',
        'tags[1]: expected a string that matches "^[a-z]+$", received "No" (string)',
        "where.from: required, but missing",
        'where["odd key"]: expected an integer, received "x" (string)',
        'maybe: expected an integer or null, received "soon" (string)',
        "pth: unknown field; did you mean path?",
    }
    assert str(found).startswith("8 problems with the arguments, not executed:")
    for field in ("add where.from, path", "leave out pth", "correct limit"):
        assert field in str(found.hint)


def test_limits_are_named_with_the_value_that_missed_them() -> None:
    found = error({"path": "a", "limit": "500"})

    assert found.problems == ["limit: expected a number of at most 100, received 500 (integer)"]


def test_fields_inside_unknown_territory_are_suggested_from_the_right_object() -> None:
    found = error({"path": "a", "where": {"from": "x", "form": "y"}})

    assert found.problems == ["where.form: unknown field; did you mean where.from?"]


def test_problems_inside_the_only_fitting_branch_are_shown() -> None:
    schema = {
        "properties": {
            "v": {
                "anyOf": [
                    {
                        "type": "object",
                        "properties": {"n": {"type": "integer"}},
                        "required": ["n", "m"],
                    },
                    {"type": "null"},
                ]
            }
        }
    }

    found = error({"v": {"n": "x"}}, schema)

    assert set(found.problems) == {
        "v.m: required, but missing",
        'v.n: expected an integer, received "x" (string)',
    }


def test_many_problems_are_counted_and_few_are_shown() -> None:
    schema = {"properties": {"v": {"type": "array", "items": {"type": "integer"}}}}

    found = error({"v": ["x" * 50] * 500}, schema)

    assert len(found.problems) <= 21
    shown = len(found.problems) - 1
    assert found.problems[-1] == f"and {500 - shown} more"
    assert str(found).startswith("500 problems")


def test_long_values_names_and_choices_are_cut() -> None:
    secret = "s" * 10_000
    schema = {
        "properties": {"n": {"type": "integer"}, "e": {"enum": ["x" * 500] * 50}},
        "additionalProperties": False,
    }

    found = error({"n": secret, "e": secret, "k" * 5_000: 1, "l": [secret] * 50}, schema)

    assert "s" * 100 not in str(found)
    assert len(found.problems) == 4


def test_a_text_that_was_meant_as_json_says_what_is_wrong_with_it() -> None:
    found = error({"path": "a", "where": '{"from": "x"'})

    assert "where: expected an object" in found.problems[0]
    assert "the text ends" in found.problems[0]


@each(
    ("schema", "value", "expected"),
    [
        ({"minLength": 2}, "x", "at least 2 characters"),
        ({"multipleOf": 5}, 7, "a multiple of 5"),
        ({"const": "x"}, "y", 'expected "x"'),
        ({"minItems": 2}, [1], "at least 2 items"),
        ({"uniqueItems": True}, [1, 1], "without repeated items"),
        ({"not": {"type": "string"}}, "x", "other than"),
        ({"contains": {"const": 1}}, [2], "contains"),
        ({"propertyNames": {"maxLength": 1}}, {"long": 1}, "key"),
        ({"minProperties": 2}, {"a": 1}, "at least 2 members"),
        ({"oneOf": [{"minimum": 1}, {"minimum": 2}]}, 3, "exactly one"),
        ({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, {}, "an object with"),
        (False, 1, "leave it out"),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, "v.b: required"),
        ({"unevaluatedProperties": False}, {"a": 1}, "v.a: unknown field"),
        ({"prefixItems": [{}], "items": False}, [1, 2], "v[1]"),
    ],
)
def test_every_rule_has_words(schema: object, value: object, expected: str) -> None:
    found = error({"v": value}, {"properties": {"v": schema}})

    assert expected in str(found)
    assert "`" not in str(found)


def test_lone_surrogates_can_be_refused_and_shown() -> None:
    found = error({"path": "a", "limit": "\ud800", "\udfff": 1})

    assert "limit: expected an integer" in str(found)
    assert len(found.problems) == 2


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        pytest.param(10**5_000, id="huge"),
        pytest.param(-(10**5_000), id="tiny"),
    ],
)
def test_values_that_are_no_json_are_refused(value: Any) -> None:
    schema = {"properties": {"v": {"maximum": 5, "type": ["number", "object"]}}}

    error({"v": value}, schema)
    error({"v": [value]}, schema)


def test_keys_must_be_strings() -> None:
    schema = {"properties": {"v": {"type": "integer"}}, "patternProperties": {"^x": {}}}

    for arguments in ({1: "x"}, {"v": {1: 2}}):
        assert "a key is not a string" in str(error(arguments, schema))


def test_deep_values_are_refused_without_a_crash() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    schema = {"$defs": {"r": {"type": "array", "items": {"$ref": "#/$defs/r"}}}}

    error({"v": deep}, {**schema, "properties": {"v": {"$ref": "#/$defs/r"}}})
    error({"v": deep}, {"type": "object"})
