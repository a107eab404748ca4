"""The JSON protocol of tool calls."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core import HermesError, ToolCall, ToolRegistry, tool
from hermes.core.entry import ToolOutcome
from hermes.runtime import Runtime
from hermes.runtime.result_texts import read_calls, tool_results


def sent(*functions: Any, ids: Any = None) -> str:
    ids = ids or [f"id{n}" for n in range(len(functions))]
    calls = [
        {"id": one, "type": "function", "function": function}
        for one, function in zip(ids, functions, strict=True)
    ]
    return json.dumps({"tool_calls": calls})


def test_calls_are_read_with_arguments_as_object_or_text() -> None:
    calls = read_calls(
        sent(
            {"name": "a", "arguments": {"x": "ü"}},
            {"name": "b", "arguments": '{"x": 1}'},
            {"name": "c"},
            {"name": "d", "arguments": None},
        )
    )

    assert [(call.id, call.name, call.arguments) for call in calls] == [
        ("id0", "a", {"x": "ü"}),
        ("id1", "b", '{"x": 1}'),
        ("id2", "c", None),
        ("id3", "d", None),
    ]


@pytest.mark.parametrize("arguments", [[1], 5, False, 0, "[]"])
def test_arguments_of_the_wrong_kind_are_refused_by_name(arguments: Any) -> None:
    registry = ToolRegistry()
    ran: list[Any] = []
    tool("a", registry=registry, effect="read")(lambda: ran.append(1))

    (call,) = read_calls(sent({"name": "a", "arguments": arguments}))
    outcome = Runtime(registry).call_sync(call)

    assert outcome.status == "error"
    assert ran == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "5",
        "null",
        "{}",
        '{"tool_calls": null}',
        '{"tool_calls": {}}',
        "[" * 100_000,
    ],
)
def test_what_is_no_list_of_calls_is_said_with_the_shape(text: str) -> None:
    with pytest.raises(HermesError) as caught:
        read_calls(text)

    assert "tool_calls" in str(caught.value.hint)


@given(st.lists(st.sampled_from([None, "", 0, "call_1", "call_2", "call_3", "call_2_", 7])))
def test_an_id_that_was_made_up_is_nobody_elses(ids: list[Any]) -> None:
    calls = read_calls(sent(*[{"name": "a"}] * len(ids), ids=ids)) if ids else []

    given_ids = {str(one) for one in ids if one}
    made = [call.id for call, one in zip(calls, ids, strict=True) if not one]
    assert len(set(made)) == len(made)
    assert not given_ids & set(made)


def test_results_name_the_calls_they_answer() -> None:
    text = tool_results(
        [
            ToolOutcome("c1", "a", '{"x":"ü"}'),
            ToolOutcome("c2", "b", '{"error":"no"}', status="error"),
        ]
    )

    assert "ü" in text
    assert json.loads(text) == {
        "tool_results": [
            {"tool_call_id": "c1", "role": "tool", "name": "a", "content": '{"x":"ü"}'},
            {"tool_call_id": "c2", "role": "tool", "name": "b", "content": '{"error":"no"}'},
        ]
    }
    assert tool_results([]) == '{"tool_results":[]}'


def test_a_whole_turn_comes_back_in_its_order() -> None:
    registry = ToolRegistry()

    @tool(registry=registry, effect="read")
    def double(n: int) -> int:
        """Double it."""
        return n * 2

    calls = read_calls(sent(*[{"name": "double", "arguments": {"n": n}} for n in range(20)]))
    text = tool_results(Runtime(registry).call_many_sync(calls))

    results = json.loads(text)["tool_results"]
    assert [(r["tool_call_id"], r["content"]) for r in results] == [
        (f"id{n}", str(n * 2)) for n in range(20)
    ]


def test_an_odd_name_still_gets_an_answer() -> None:
    calls = read_calls('{"tool_calls": [{"id": "\\ud800", "function": {"name": "\\udfff"}}]}')

    text = tool_results(Runtime(ToolRegistry()).call_many_sync(calls))

    assert json.loads(text)["tool_results"][0]["tool_call_id"] == "\ud800"
    assert ToolCall("a").arguments is None


@pytest.mark.parametrize("item", [5, {}, {"function": "x"}, {"function": {"name": 5}}])
def test_one_item_that_is_no_call_is_answered_and_the_others_are_carried_out(item: Any) -> None:
    good = {"id": "b", "function": {"name": "say", "arguments": '{"text": "hi"}'}}

    calls = read_calls(json.dumps({"tool_calls": [item, good]}))

    assert [(call.id, call.name) for call in calls] == [("call_1", "(no name)"), ("b", "say")]
