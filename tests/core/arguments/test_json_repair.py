"""Argument text is read exactly, or refused with the right reason."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.corpus import each

from hermes.core.arguments import ArgumentReader, coerce_tool_args, split_glued
from hermes.core.errors import ArgumentError

ANY: dict[str, Any] = {"type": "object"}


def read(text: str) -> dict[str, Any]:
    return coerce_tool_args(ANY, text)


def refusal(text: str, schema: dict[str, Any] = ANY) -> str:
    with pytest.raises(ArgumentError) as caught:
        coerce_tool_args(schema, text)
    assert caught.value.hint
    assert caught.value.problems
    assert len(str(caught.value)) <= 2_000
    return str(caught.value)


@each(
    "text",
    [
        '{"a": [1, "x", null, true]}',
        '  \n{"a": [1, "x", null, true]}\t ',
        '\ufeff{"a": [1, "x", null, true]}',
        '```json\n{"a": [1, "x", null, true]}\n```',
        '```\n{"a": [1, "x", null, true]}\n```\n',
        '```JSON {"a": [1, "x", null, true]}```',
        '~~~python\n{"a": [1, "x", None, True]}\n~~~',
        '"{\\"a\\": [1, \\"x\\", null, true]}"',
        json.dumps(json.dumps('{"a": [1, "x", null, true]}')),
        "{'a': [1, 'x', None, True]}",
        "{'a': (1, 'x', None, True)}",
        '{"a": [1, "x", null, true,],}',
        "{“a”: [1, “x”, null, true]}",
        "{„a“: [1, „x“, null, true]}",
        "{‘a’: [1, ‘x’, null, true]}",
        "{\"a\": [1, 'x', None, true]}",
        '{"a": [1, "x", null, true]}{"a": [1, "x", null, true]}',
        '{"a": [1, "x", null, true]}\n{"a":[1,"x",null,true]}\n',
    ],
)
def test_one_meaning_in_many_spellings(text: str) -> None:
    assert read(text) == {"a": [1, "x", None, True]}


@each(
    "value",
    [
        "C:\\new\\table\\x41\\u0041",
        '\\"\\\\"',
        "line\u2028separator\u2029",
        "😀👩‍👩‍👧",
        "\ud83d",
        "\udc00\ud800",
        "tab\tnewline\nreturn\rnul\x00bell\x07",
        "“typographic” ‘quotes’ and 'plain' \"ones\"",
        "```json\n{}\n```",
        '{"a": 1',
        "True",
        "a, b,}",
    ],
)
def test_strings_survive_every_way_of_writing_them(value: str) -> None:
    expected = {"s": value}

    assert read(json.dumps(expected)) == expected
    assert read(json.dumps(expected, ensure_ascii=False)) == expected
    assert read(json.dumps(json.dumps(expected))) == expected
    assert read(repr(expected)) == expected
    assert read("```json\n" + json.dumps(expected) + "\n```") == expected


def test_raw_line_breaks_and_tabs_stay_in_strings() -> None:
    assert read('{"code": "def f():\n\treturn 1\n"}') == {"code": "def f():\n\treturn 1\n"}


@each(
    "text",
    [
        "{",
        '{"a',
        '{"a"',
        '{"a":',
        '{"a": tr',
        '{"a": Non',
        '{"a": -',
        '{"a": 1',
        '{"a": 1.',
        '{"a": 1e',
        '{"a": "x\\',
        '{"a": "x\\u00',
        '{"a": "x"',
        '{"a": "x",',
        '{"a": [1, 2',
        '{"a": {"b": 1}',
        '"{\\"a\\": 1',
        '"{\\"a\\": 1"',
        "{'a': 'b",
        "{“a”: “b",
        '```json\n{"a": 1',
        '{"a": 1}{"a": ',
    ],
)
def test_cut_off_text_is_called_incomplete(text: str) -> None:
    message = refusal(text)

    assert "incomplete" in message
    assert "not executed" in message
    assert "send smaller pieces" in message
    assert "invalid" not in message


def test_an_incomplete_text_says_how_much_arrived() -> None:
    text = '{"path": "a.txt", "content": "' + "x" * 5_000

    message = refusal(text)

    assert f"({len(text)} characters received)" in message
    assert '{"path": "a.txt"' in message
    assert len(message) < 400


@each(
    ("text", "position"),
    [
        ('{"a": x}', 7),
        ('{"a": 01}', 7),
        ('{"a": +1}', 7),
        ('{"a": .5}', 7),
        ('{"a": 1_000}', 7),
        ('{"a": 0x10}', 7),
        ('{"a": NaN}', 7),
        ('{"a": -Infinity}', 7),
        ('{"a": 1e999}', 7),
        ('{"a": undefined}', 7),
        ("{a: 1}", 2),
        ('{"a" 1}', 6),
        ('{"a": 1 "b": 2}', 9),
        ('{"a": 1,, "b": 2}', 9),
        ('{"a": [1,,2]}', 10),
        ("{,}", 2),
        ('{"a": "x" "y"}', 11),
        ('{"a": "he said "hi""}', 17),
        ("{'a': 'it's'}", 11),
        ('{"p": "C:\\dir"}', 10),
        ('{"p": "D:\\xab"}', 10),
        ('{"a": ("x")}', 7),
        ('{"a": {1, 2}}', 8),
        ('{"a": 1}}', 9),
        ('{"a": 1};', 9),
        ('{"a": 1} // done', 10),
        ('{"a": 1}[2]', 9),
        ('{“a": 1}', 2),
        ("arguments follow", 1),
        ('{"a": __import__("os")}', 7),
        ("{'a': 'b' * 9}", 11),
    ],
)
def test_wrong_text_is_called_invalid_and_located(text: str, position: int) -> None:
    message = refusal(text)

    assert f"invalid JSON at character {position} " in message
    assert "not executed" in message
    for other in ("incomplete", "truncated", "cut off"):
        assert other not in message


@pytest.mark.parametrize("text", ["[1]", "5", "null", "true", '"hello"'[:-1] + '"', '""x'])
def test_anything_but_an_object_is_refused(text: str) -> None:
    refusal(text)


def test_a_key_given_twice_must_say_the_same() -> None:
    assert read('{"a": 1, "a": 1}') == {"a": 1}
    assert "twice" in refusal('{"a": 1, "a": 2}')
    assert "twice" in refusal('{"a": 1, "a": true}')
    assert "twice" in refusal("{'a': {'b': 1, 'b': 2}}")


def test_different_objects_in_one_text_are_refused_but_can_be_split() -> None:
    text = '{"path": "a"}{"path": "b"}'

    assert "several argument objects" in refusal(text)
    assert split_glued(text) == ['{"path": "a"}', '{"path": "b"}']


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ('{"a":1}{"a":1}', ['{"a":1}{"a":1}']),
        ('{"a":1} {"a":2}\n{"a":2}{"a":1}', ['{"a":1}', '{"a":2}', '{"a":1}']),
        ('{"a":"}{"}', ['{"a":"}{"}']),
        ('{"a":1}{"a":', ['{"a":1}{"a":']),
        ('{"a":1}[1]', ['{"a":1}[1]']),
        ("", [""]),
        ("no json", ["no json"]),
    ],
)
def test_only_whole_objects_are_split(text: str, pieces: list[str]) -> None:
    assert split_glued(text) == pieces


@pytest.mark.parametrize("raw", [None, "", "  \n", "\ufeff", '""'])
def test_nothing_is_no_arguments_where_none_are_required(raw: str | None) -> None:
    reader = ArgumentReader({"type": "object", "properties": {"a": {"type": "string"}}})

    assert reader.read(raw) == {}


@pytest.mark.parametrize("raw", [None, "", "  \n"])
def test_nothing_is_refused_where_something_is_required(raw: str | None) -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}

    with pytest.raises(ArgumentError, match="path: required"):
        coerce_tool_args(schema, raw)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"a": ' * 50_000,
        "{'a': " + "[" * 5_000 + "]" * 5_000 + "}",
        '{"a": ' + "(" * 5_000,
        '{"a": ' + "[" * 300 + "]" * 300 + "}",
    ],
)
def test_deep_nesting_is_refused_without_a_crash(text: str) -> None:
    assert "nested" in refusal(text)


def test_numbers_that_python_can_not_hold_are_refused() -> None:
    assert read('{"n": ' + "9" * 4_000 + "}") == {"n": int("9" * 4_000)}
    assert "too large" in refusal('{"n": ' + "9" * 5_000 + "}")


def test_other_types_of_input_are_refused() -> None:
    for raw in (b"{}", 5, [("a", 1)]):
        with pytest.raises(ArgumentError):
            coerce_tool_args(ANY, raw)  # type: ignore[arg-type]
