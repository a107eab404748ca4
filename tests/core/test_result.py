"""What a tool gives back, as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core import ToolResult, tool_error, tool_result


def test_an_error_is_an_object_with_the_message() -> None:
    assert tool_error("no such file: größe.txt") == '{"error":"no such file: größe.txt"}'
    assert json.loads(tool_error("x", code=4, hint="y")) == {"error": "x", "code": 4, "hint": "y"}


@given(st.text(st.characters()), st.dictionaries(st.sampled_from("abc"), st.binary() | st.text()))
def test_an_error_is_always_json(message: str, extra: dict[str, Any]) -> None:
    assert "error" in json.loads(tool_error(message, **extra))


@pytest.mark.parametrize("odd", [None, 5, ValueError("x"), object()])
def test_an_error_of_any_kind_is_json(odd: Any) -> None:
    assert isinstance(json.loads(tool_error(odd))["error"], str)


@pytest.mark.parametrize(
    ("data", "fields", "value"),
    [
        (None, {}, None),
        ({"a": "ü"}, {}, {"a": "ü"}),
        ([1], {}, [1]),
        (None, {"a": 1, "b": None}, {"a": 1, "b": None}),
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ("text", {"b": 2}, {"result": "text", "b": 2}),
        ({1}, {}, [1]),
        (0, {"b": 2}, {"result": 0, "b": 2}),
    ],
)
def test_a_result_is_its_data_or_its_fields(data: Any, fields: Any, value: Any) -> None:
    assert json.loads(tool_result(data, **fields)) == value


def test_non_ascii_is_kept() -> None:
    assert "日本 ✓" in tool_result({"a": "日本 ✓"})
    assert "日本 ✓" in tool_error("日本 ✓")


@pytest.mark.parametrize(
    ("result", "value"),
    [
        (ToolResult(), None),
        (ToolResult([1]), [1]),
        (ToolResult({"a": 1}, notes=["cut"]), {"a": 1, "notes": ["cut"]}),
        (ToolResult("x", notes=["cut"]), {"result": "x", "notes": ["cut"]}),
        (ToolResult("x", lines=3), {"result": "x", "lines": 3}),
        (ToolResult(error="no"), {"error": "no"}),
        (ToolResult(error="no", hint="try"), {"error": "no", "hint": "try"}),
        (ToolResult([1], error="half"), {"error": "half", "data": [1]}),
    ],
)
def test_a_tool_result_has_one_value(result: ToolResult, value: Any) -> None:
    assert result.value() == value
    assert result.ok == ("error" not in (value if isinstance(value, dict) else {}))
    assert repr(value) in repr(result)


def test_the_data_is_not_changed_by_notes() -> None:
    data = {"a": 1}

    ToolResult(data, notes=["n"], more=1).value()

    assert data == {"a": 1}


def test_a_scalar_result_is_not_encoded_twice() -> None:
    from hermes.core import ToolCall, ToolRegistry
    from hermes.runtime import Runtime

    registry = ToolRegistry()
    answers = {"text": "s", "flag": True, "nothing": None, "list": [1]}
    schema = {"type": "object", "properties": {"which": {"type": "string"}}}
    registry.register("say", "t", schema, lambda which: tool_result(answers[which]), effect="read")

    runtime = Runtime(registry)

    for which, value in answers.items():
        assert runtime.call_sync(ToolCall("say", {"which": which})).value == value
