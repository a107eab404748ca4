"""Values of a wrong type become the one right value, or stay and are refused."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Any

import pytest
from tests.corpus import each

from hermes.core.arguments import ArgumentReader, coerce_tool_args
from hermes.core.errors import ArgumentError

INTEGER = {"type": "integer"}
NUMBER = {"type": "number"}
BOOLEAN = {"type": "boolean"}
STRING = {"type": "string"}
NULL = {"type": "null"}
STRINGS = {"type": "array", "items": STRING}
INTEGERS = {"type": "array", "items": INTEGER}
POINT = {"type": "object", "properties": {"x": INTEGER, "y": INTEGER}}


def array(items: object) -> dict[str, Any]:
    return {"type": "array", "items": items}


def coerce(schema: object, value: object) -> Any:
    return coerce_tool_args({"type": "object", "properties": {"v": schema}}, {"v": value})["v"]


def same(left: object, right: object) -> bool:
    return repr(left) == repr(right)


@each(
    ("schema", "value", "expected"),
    [
        (INTEGER, "42", 42),
        (INTEGER, " -7\n", -7),
        (INTEGER, "0", 0),
        (INTEGER, "1.0", 1),
        (INTEGER, "1e3", 1000),
        (INTEGER, "9007199254740993.0", 9007199254740993),
        (INTEGER, "123456789012345678901234567890", 123456789012345678901234567890),
        (NUMBER, "42", 42),
        (NUMBER, "1.50", 1.5),
        (NUMBER, "-2.5e-3", -0.0025),
        (NUMBER, "0.30000000000000004", 0.30000000000000004),
        (NUMBER, "0.10000000000000001", 0.1),
        (BOOLEAN, "true", True),
        (BOOLEAN, "FALSE", False),
        (STRING, 5, "5"),
        (STRING, 10**30, str(10**30)),
        (STRING, 1.5, "1.5"),
        (STRING, 100.0, "100.0"),
        (STRINGS, "https://a.com", ["https://a.com"]),
        (STRINGS, "a, b", ["a, b"]),
        (STRINGS, "['a','b']", ["a", "b"]),
        (STRINGS, '["a", "b",]', ["a", "b"]),
        (STRINGS, '```json\n["a"]\n```', ["a"]),
        (STRINGS, '"[\\"a\\"]"', ["a"]),
        (STRINGS, "('a', 'b')", ["a", "b"]),
        (STRINGS, "[]", []),
        (STRINGS, '{"a": 1}', ['{"a": 1}']),
        (STRINGS, '"quoted"', ['"quoted"']),
        (STRINGS, "[a-z]*.py", ["[a-z]*.py"]),
        (STRINGS, "[0-9]*.txt", ["[0-9]*.txt"]),
        (STRINGS, "(a|b)", ["(a|b)"]),
        (STRINGS, "null", ["null"]),
        (STRINGS, 5, ["5"]),
        (STRINGS, [1, "b"], ["1", "b"]),
        (INTEGERS, "[1, 2]", [1, 2]),
        (INTEGERS, "5", [5]),
        (INTEGERS, ["1", 2], [1, 2]),
        (array(INTEGERS), "[[1], [2]]", [[1], [2]]),
        (array(INTEGERS), [["1"], "[2]"], [[1], [2]]),
        (array(POINT), '{"x": "1"}', [{"x": 1}]),
        (array(POINT), {"x": "1"}, [{"x": 1}]),
        ({"type": "array"}, "5", ["5"]),
        ({"type": "array", "prefixItems": [INTEGER, BOOLEAN]}, ["1", "true"], [1, True]),
        ({"type": "array", "items": [INTEGER, BOOLEAN]}, ["1", "true"], [1, True]),
        (POINT, '{"x": "1", "z": "kept"}', {"x": 1, "z": "kept"}),
        (POINT, "{'x': 1}", {"x": 1}),
        ({"type": "object"}, '"{\\"a\\": 1.10}"', {"a": 1.1}),
        ({"type": "object", "additionalProperties": INTEGER}, {"a": "1"}, {"a": 1}),
        (
            {"type": "object", "patternProperties": {"^n": INTEGER}},
            {"n": "1", "s": "1"},
            {"n": 1, "s": "1"},
        ),
        ({"type": "object", "properties": {"v": STRING}}, '{"v": 1.10}', {"v": "1.10"}),
    ],
)
def test_a_value_with_one_reading_is_repaired(
    schema: object, value: object, expected: object
) -> None:
    assert same(coerce(schema, value), expected)


@each(
    ("schema", "value"),
    [
        *(
            (INTEGER, text)
            for text in (
                "",
                " ",
                "1,000",
                "1_000",
                "0x10",
                "007",
                "+5",
                "1.5",
                "٣",
                "１",
                "5 apples",
                "true",
                "1e-1",
                "NaN",
                "1e9999999999",
            )
        ),
        *(
            (NUMBER, text)
            for text in (
                "",
                "1,5",
                ".5",
                "5.",
                "Infinity",
                "nan",
                "1e400",
                "1e-400",
                "0.1234567890123456789012",
                "--1",
            )
        ),
        *(
            (BOOLEAN, word)
            for word in ("yes", "no", "on", "off", "1", "0", "t", "", " ", 1, 0, 1.0)
        ),
        *((STRING, value) for value in (True, None, ["a"], {"a": 1}, [])),
        *(
            (STRINGS, value)
            for value in (
                "",
                " ",
                None,
                '["a", "b"',
                '["a" "b"]',
                "[a, b]",
                '["a"] and',
                {"a": 1},
                True,
                [None],
            )
        ),
        *((INTEGERS, value) for value in ("1,2", "1 2", "[1, 2", [1.5], ["x"])),
        (array(INTEGERS), [1, 2]),
        (array(INTEGERS), "[1, 2]"),
        *(
            (POINT, value)
            for value in (
                "",
                "x=1",
                '{"x": 1',
                '{"x": 1, "x": 2}',
                '{"x": 1}{"x": 1}',
                [1, 2],
                [],
                None,
                "[]",
            )
        ),
        *((INTEGER, value) for value in (1.5, True, None, [1], {"a": 1})),
        (NULL, "nil"),
        (False, "anything"),
    ],
)
def test_a_value_without_a_sure_reading_is_refused(schema: object, value: object) -> None:
    with pytest.raises(ArgumentError, match=r"^1 problem|^\d problems"):
        coerce(schema, value)


@each(
    ("schema", "value"),
    [
        *((STRING, text) for text in ("007", "true", "[1]", "null", "", " x ", '{"a": 1}', "1.10")),
        *(({}, value) for value in ("5", 5, None, ["1"], {"a": "1"})),
        *((True, value) for value in ("5", None, ["1"])),
        (INTEGER, 1.0),
        (NUMBER, 10**30),
        ({"type": ["string", "integer"]}, "5"),
        ({"anyOf": [STRING, INTEGER]}, "5"),
        ({"anyOf": [INTEGER, STRING]}, "5"),
        ({"type": ["string", "null"]}, "null"),
        ({"anyOf": [STRING, NULL]}, ""),
        ({"anyOf": [STRINGS, STRING]}, '["a"]'),
        ({"properties": {"x": INTEGER}}, "no object, no type"),
        ({"enum": ["a", "A"]}, "A"),
        ({"enum": [1, "1"]}, "1"),
        ({"oneOf": [{"type": "string", "maxLength": 2}, INTEGER]}, "42"),
    ],
)
def test_a_valid_value_is_not_touched(schema: object, value: object) -> None:
    assert coerce(schema, value) is value


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"enum": ["Red", "blue"]}, " RED ", "Red"),
        ({"type": "string", "enum": ["on", "off"]}, "ON", "on"),
        ({"enum": ["a", "A"]}, " a ", "a"),
        ({"enum": [1, 2]}, "2", 2),
        ({"enum": ["1", "2"]}, 2, "2"),
        ({"enum": ["true", "auto"]}, True, "true"),
        ({"enum": ["a", None]}, "null", None),
        ({"enum": [True, "auto"]}, "true", True),
        ({"const": "create"}, "Create", "create"),
        (array({"enum": ["a", "b"]}), "B", ["b"]),
    ],
)
def test_enum_members_are_found(schema: object, value: object, expected: object) -> None:
    assert same(coerce(schema, value), expected)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"enum": ["red", "blue"]}, "re"),
        ({"enum": ["red", "RED"]}, "Red"),
        ({"enum": ["a-b"]}, "a_b"),
        ({"enum": [1, 2]}, "3"),
        ({"enum": ["yes", "no"]}, True),
        ({"enum": [True]}, 1),
        ({"enum": ["a"]}, ["a"]),
    ],
)
def test_nearby_enum_members_are_not_guessed(schema: object, value: object) -> None:
    with pytest.raises(ArgumentError):
        coerce(schema, value)


@each(
    ("schema", "value", "expected"),
    [
        ({"anyOf": [INTEGER, NULL]}, "5", 5),
        ({"anyOf": [INTEGER, NULL]}, "", None),
        ({"anyOf": [INTEGER, NULL]}, "None", None),
        ({"type": ["integer", "null"]}, "null", None),
        ({"type": "integer", "nullable": True}, "null", None),
        ({"type": "integer", "nullable": True}, None, None),
        ({"type": "string", "enum": ["a"], "nullable": True}, None, None),
        ({"$ref": "#/properties/v/$defs/n", "nullable": True, "$defs": {"n": INTEGER}}, "7", 7),
        ({"anyOf": [STRINGS, NULL]}, "a", ["a"]),
        ({"anyOf": [STRINGS, NULL]}, "null", None),
        ({"anyOf": [INTEGER, BOOLEAN]}, "true", True),
        ({"anyOf": [INTEGER, NUMBER]}, "5", 5),
        ({"anyOf": [INTEGER, INTEGERS]}, "5", 5),
        ({"anyOf": [POINT, array(POINT)]}, '{"x": 1}', {"x": 1}),
        ({"anyOf": [POINT, STRINGS]}, '{"x": 1}', {"x": 1}),
        ({"anyOf": [STRINGS, INTEGERS]}, "[1]", [1]),
        ({"anyOf": [STRINGS, array(BOOLEAN)]}, [1, "true"], ["1", "true"]),
        ({"type": ["object", "array"]}, "[1]", [1]),
        ({"allOf": [INTEGER, {"minimum": 1}]}, "5", 5),
        ({"oneOf": [{"type": "string", "maxLength": 2}, INTEGER]}, "423", 423),
        (
            {
                "oneOf": [
                    {
                        "type": "object",
                        "properties": {"kind": {"const": "a"}, "n": INTEGER},
                        "required": ["kind"],
                    },
                    {
                        "type": "object",
                        "properties": {"kind": {"const": "b"}, "n": BOOLEAN},
                        "required": ["kind"],
                    },
                ]
            },
            {"kind": "b", "n": "true"},
            {"kind": "b", "n": True},
        ),
    ],
)
def test_unions_take_the_only_reading(schema: object, value: object, expected: object) -> None:
    assert same(coerce(schema, value), expected)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"anyOf": [BOOLEAN, {"enum": ["True"]}]}, "TRUE"),
        ({"anyOf": [INTEGER, BOOLEAN]}, "yes"),
        ({"anyOf": [INTEGER, NULL]}, " "),
    ],
)
def test_unions_without_one_reading_are_refused(schema: object, value: object) -> None:
    with pytest.raises(ArgumentError):
        coerce(schema, value)


def test_an_ambiguous_value_is_called_so() -> None:
    with pytest.raises(ArgumentError, match="ambiguous"):
        coerce({"anyOf": [BOOLEAN, {"enum": ["True"]}]}, "TRUE")


def test_references_and_conditions_are_followed() -> None:
    schema = {
        "$defs": {
            "node": {
                "type": "object",
                "properties": {"n": INTEGER, "next": {"$ref": "#/$defs/node"}},
            }
        },
        "type": "object",
        "properties": {"mode": STRING, "node": {"$ref": "#/$defs/node"}},
        "if": {"properties": {"mode": {"const": "count"}}},
        "then": {"properties": {"value": INTEGER}},
        "else": {"properties": {"value": STRING}},
    }

    counted = coerce_tool_args(
        schema, {"mode": "count", "value": "5", "node": {"n": "1", "next": '{"n": "2"}'}}
    )
    named = coerce_tool_args(schema, {"mode": "name", "value": 5})

    assert counted == {"mode": "count", "value": 5, "node": {"n": 1, "next": {"n": 2}}}
    assert named == {"mode": "name", "value": "5"}


def test_numbers_in_text_become_strings_as_they_were_written() -> None:
    schema = {"type": "object", "properties": {"version": STRING, "n": NUMBER}}

    read = coerce_tool_args(schema, '{"version": 1.10, "n": 1.10}')

    assert read == {"version": "1.10", "n": 1.1}
    assert type(read["n"]) is float


def test_unknown_keys_stay() -> None:
    schema = {"type": "object", "properties": {"n": INTEGER}}

    assert coerce_tool_args(schema, {"n": "1", "other": "2"}) == {"n": 1, "other": "2"}


def test_the_callers_values_are_not_changed() -> None:
    arguments: dict[str, Any] = {"n": "1", "inner": {"n": "2", "list": ["3"]}}
    schema = {
        "properties": {
            "n": INTEGER,
            "inner": {"properties": {"n": INTEGER, "list": INTEGERS, "new": {"default": 1}}},
        }
    }

    read = coerce_tool_args(schema, arguments)

    assert read == {"n": 1, "inner": {"n": 2, "list": [3], "new": 1}}
    assert arguments == {"n": "1", "inner": {"n": "2", "list": ["3"]}}


def test_subclasses_of_json_types_are_values_too() -> None:
    class Level(IntEnum):
        HIGH = 3

    class Name(StrEnum):
        A = "a"

    class Text(str):
        pass

    class Real(float):
        pass

    schema = {"properties": {"l": INTEGER, "n": STRING, "t": STRING, "r": array(NUMBER)}}

    read = coerce_tool_args(
        schema, {"l": Level.HIGH, "n": Name.A, "t": Text("x"), "r": [Real(0.5)]}
    )

    assert read == {"l": 3, "n": "a", "t": "x", "r": [0.5]}


def test_recursive_unions_do_not_grow_without_end() -> None:
    node = {"$ref": "#/$defs/node"}
    schema = {
        "$defs": {"node": {"anyOf": [array(node), array({"anyOf": [node, INTEGER]}), BOOLEAN]}},
        "properties": {"v": node},
    }
    value: Any = "no"
    for _ in range(9):
        value = [value]

    with pytest.raises(ArgumentError):
        ArgumentReader(schema).read({"v": value})
