"""Odd streams of odd servers, and the calls that were meant."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.agent.providers.requests import answer, ask, remote

from hermes.core.model_protocol import TextDelta
from hermes.testing import Call, ScriptedModel, Turn


def chunk(*calls: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    delta = {"tool_calls": list(calls)} if calls else {}
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def part(name: str | None, arguments: Any, **more: Any) -> dict[str, Any]:
    return {"function": {"name": name, "arguments": arguments}, **more}


def heard(*chunks: dict[str, Any] | str) -> list[tuple[str, str]]:
    with ScriptedModel([Turn(raw=[*chunks, chunk(finish="tool_calls"), "[DONE]"])]) as server:
        done = answer(remote(server))
    assert len({use.id for use in done.message.calls}) == len(done.message.calls)
    assert all(use.id for use in done.message.calls)
    return [(use.name, use.arguments) for use in done.message.calls]


def test_a_name_glued_to_itself_and_an_object_glued_to_itself_are_one_call() -> None:
    with ScriptedModel([Turn(calls=[Call("read_fileread_file", '{"a":1}{"a":1}')])]) as server:
        calls = answer(remote(server)).message.calls

    assert [(use.name, use.arguments) for use in calls] == [("read_file", '{"a":1}')]


def test_two_objects_glued_together_are_two_calls() -> None:
    with ScriptedModel([Turn(calls=[Call("read_file", '{"path":"a"}{"path":"b"}')])]) as server:
        calls = answer(remote(server)).message.calls

    assert [json.loads(use.arguments)["path"] for use in calls] == ["a", "b"]
    assert calls[0].id != calls[1].id


def test_two_names_glued_together_go_with_their_objects() -> None:
    glued = Call("read_fileterminal", '{"path":"a"}{"command":"ls"}')
    with ScriptedModel([Turn(calls=[glued])]) as server:
        calls = answer(remote(server)).message.calls

    assert [(use.name, use.arguments) for use in calls] == [
        ("read_file", '{"path":"a"}'),
        ("terminal", '{"command":"ls"}'),
    ]


@pytest.mark.parametrize("name", ["functions.read_file:0", "functions.read_file", "read_file:12"])
def test_what_a_template_puts_around_a_name_is_left_out(name: str) -> None:
    with ScriptedModel([Turn(calls=[Call(name, "{}")])]) as server:
        assert answer(remote(server)).message.calls[0].name == "read_file"


def test_an_unknown_name_stays_as_it_is() -> None:
    with ScriptedModel([Turn(calls=[Call("read_filx", "{}")])]) as server:
        assert answer(remote(server)).message.calls[0].name == "read_filx"


def test_calls_that_are_all_numbered_zero_are_told_apart_by_their_ids() -> None:
    assert heard(
        chunk(part("read_file", '{"path":"a"}', index=0, id="x")),
        chunk(part("terminal", '{"command":"ls"}', index=0, id="y")),
    ) == [("read_file", '{"path":"a"}'), ("terminal", '{"command":"ls"}')]


def test_calls_without_numbers_are_told_apart_by_their_names() -> None:
    assert heard(
        chunk(part("read_file", '{"pa', id="x"), part(None, 'th":"a"}')),
        chunk(part("read_file", '{"path":"b"}', id="y")),
    ) == [("read_file", '{"path":"a"}'), ("read_file", '{"path":"b"}')]


def test_a_name_repeated_with_every_piece_is_one_name() -> None:
    assert heard(
        chunk(part("read_file", '{"path"', index=0, id="x")),
        chunk(part("read_file", ':"a"}', index=0, id="x")),
    ) == [("read_file", '{"path":"a"}')]


def test_arguments_that_come_as_an_object_are_text_afterwards() -> None:
    assert heard(chunk(part("read_file", {"path": "a"}, index=0))) == [
        ("read_file", '{"path":"a"}')
    ]


def test_the_old_way_to_ask_for_a_call_is_known() -> None:
    old = {"function_call": {"name": "read_file", "arguments": '{"path":"a"}'}}
    assert heard({"choices": [{"index": 0, "delta": old}]}) == [("read_file", '{"path":"a"}')]


def test_a_call_spelled_as_text_is_run_and_never_shown() -> None:
    text = (
        'I will look.\n<tool_call>\n{"name": "read_file", "arguments": {"path": "a"}}\n</tool_call>'
    )
    with ScriptedModel([Turn(text, piece=3)]) as server:
        events = ask(remote(server, "qwen3-32b"))

    done = events[-1]
    assert [use.name for use in done.message.calls] == ["read_file"]
    assert done.finish == "calls"
    assert done.message.text == "I will look."
    shown = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert shown.strip() == "I will look."


def test_a_model_that_calls_properly_is_taken_at_its_word() -> None:
    text = '{"name": "read_file", "arguments": {"path": "a"}}'
    with ScriptedModel([Turn(text)]) as server:
        done = answer(remote(server, "gpt-5.1"))

    assert (done.message.text, done.message.calls) == (text, ())


def test_a_call_that_is_also_spelled_is_run_once() -> None:
    text = '<tool_call>{"name": "read_file", "arguments": {"path": "a"}}</tool_call>'
    with ScriptedModel([Turn(text, calls=[Call("read_file", {"path": "a"})])]) as server:
        done = answer(remote(server, "qwen3-32b"))

    assert len(done.message.calls) == 1
    assert done.message.text == ""


def test_usage_of_a_server_that_reports_none_is_nothing() -> None:
    with ScriptedModel([Turn("x", usage={})]) as server:
        assert answer(remote(server)).usage.input == 0
