"""A model over HTTP, from the request to the answer, and everything that breaks in between."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.agent.providers.requests import HELLO, TOOLS, answer, ask, events, remote
from tests.corpus import each

from hermes.agent.providers.connection import BrokenStream, RetryLater
from hermes.agent.providers.http_model import HttpModel
from hermes.agent.providers.stream_reader import AnswerBuilder
from hermes.core.model_protocol import (
    Discarded,
    Done,
    Message,
    ModelError,
    ReasoningDelta,
    TextDelta,
    Waiting,
    WindowError,
)
from hermes.testing import Call, ScriptedModel, Turn

WIRES = ["chat", "responses", "anthropic"]


@pytest.mark.parametrize("wire", WIRES)
def test_text_reasoning_calls_and_usage_arrive(wire: str) -> None:
    usage = {"input": 100, "output": 20, "cached": 60, "reasoning": 5}
    turn = Turn(
        "Let me look at it.",
        reasoning="They want the file.",
        calls=[Call("read_file", {"path": "ä"}, id="c1"), Call("terminal", {"n": [1]}, id="c2")],
        usage=usage,
        piece=5,
    )
    with ScriptedModel([turn]) as server:
        heard = ask(remote(server, wire=wire))

    done = heard[-1]
    assert isinstance(done, Done)
    message = done.message
    assert message.text == "".join(e.text for e in heard if isinstance(e, TextDelta))
    assert message.text == "Let me look at it."
    assert message.reasoning == "".join(e.text for e in heard if isinstance(e, ReasoningDelta))
    assert message.reasoning == "They want the file."
    assert [(use.id, use.name, json.loads(use.arguments)) for use in message.calls] == [
        ("c1", "read_file", {"path": "ä"}),
        ("c2", "terminal", {"n": [1]}),
    ]
    assert (done.finish, done.model, done.provider) == ("calls", "scripted", "scripted")
    assert (done.usage.input, done.usage.output, done.usage.cached) == (100, 20, 60)


@pytest.mark.parametrize("wire", WIRES)
def test_an_answer_in_one_piece_is_understood_too(wire: str) -> None:
    turn = Turn("hm", reasoning="why", calls=[Call("read_file", {"path": "a"})])

    class Unstreamed(ScriptedModel):
        def take(self, path, headers, body, request):  # type: ignore[no-untyped-def]
            # As a server does that does not know how to stream.
            request.pop("stream")
            return super().take(path, headers, body, request)

    with Unstreamed([turn]) as server:
        done = answer(remote(server, wire=wire))

    assert (done.message.text, done.message.reasoning) == ("hm", "why")
    assert [use.name for use in done.message.calls] == ["read_file"]
    assert json.loads(done.message.calls[0].arguments) == {"path": "a"}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    ("finish", "expected"), [("stop", "stop"), ("length", "length"), ("content_filter", "filter")]
)
def test_why_it_ended_is_told(wire: str, finish: str, expected: str) -> None:
    with ScriptedModel([Turn("x", finish=finish)]) as server:
        assert answer(remote(server, wire=wire)).finish == expected


@pytest.mark.parametrize("wire", WIRES)
def test_a_call_that_was_cut_keeps_what_came_of_it(wire: str) -> None:
    calls = [Call("read_file", {"path": "a"}), Call("write_file", '{"path": "b", "content": "ab')]
    with ScriptedModel([Turn(calls=calls, finish="length")]) as server:
        done = answer(remote(server, wire=wire))

    assert done.finish == "length"
    assert [use.arguments for use in done.message.calls][1] == '{"path": "b", "content": "ab'


def test_a_call_that_was_cut_before_its_arguments_has_no_valid_ones() -> None:
    with ScriptedModel([Turn(calls=[Call("write_file", "")], finish="length")]) as server:
        done = answer(remote(server))

    with pytest.raises(ValueError):
        json.loads(done.message.calls[0].arguments)


def test_a_call_without_arguments_has_an_empty_object() -> None:
    with ScriptedModel([Turn(calls=[Call("read_file", "")])]) as server:
        assert answer(remote(server)).message.calls[0].arguments == "{}"


# -- trouble before the first byte --------------------------------------------------------------


def test_retry_after_is_waited_for_and_said() -> None:
    turns = [Turn(status=429, retry_after=0.05), Turn(status=503, retry_after="0"), "fine"]
    with ScriptedModel(turns) as server:
        heard = ask(remote(server))

    waits = [event for event in heard if isinstance(event, Waiting)]
    assert len(waits) == 2
    assert 0.05 <= waits[0].seconds < 0.5
    assert "429" in waits[0].reason
    assert isinstance(heard[-1], Done)


def test_a_server_that_wants_a_long_pause_is_not_waited_for() -> None:
    with ScriptedModel([Turn(status=429, retry_after=4000)]) as server:
        with pytest.raises(ModelError) as caught:
            ask(remote(server))

    assert caught.value.retryable
    assert "4000 s" in str(caught.value.hint)


def test_a_wrong_key_is_said_at_once_and_not_repeated() -> None:
    key = "sk-live-0123456789abcdefABCDEF0123456789"
    with ScriptedModel([Turn(status=401, error=f"Incorrect API key provided: {key}")]) as server:
        with pytest.raises(ModelError) as caught:
            ask(remote(server, key=key))

    assert caught.value.status == 401
    assert not caught.value.retryable
    assert key not in f"{caught.value} {caught.value.hint}"
    assert server.headers[0]["authorization"] == f"Bearer {key}"
    assert len(server.requests) == 1


def test_no_money_is_not_waited_for() -> None:
    turn = Turn(status=429, error="You exceeded your current quota", code="insufficient_quota")
    with ScriptedModel([turn]) as server:
        with pytest.raises(ModelError, match="quota"):
            ask(remote(server))


@pytest.mark.parametrize(
    "turn",
    [
        Turn(status=400, error="This model's maximum context length is 8192 tokens."),
        Turn(status=400, error="too long", code="context_length_exceeded"),
        Turn(status=400, error="prompt is too long: 210000 tokens > 200000 maximum"),
        Turn(status=500, error="the request exceeds the available context size"),
        Turn(status=413, error="Request too large"),
    ],
)
def test_a_conversation_that_is_too_long_is_told_apart(turn: Turn) -> None:
    with ScriptedModel([turn]) as server:
        with pytest.raises(WindowError):
            ask(remote(server))


def test_nobody_there_is_a_line_with_what_to_do() -> None:
    with ScriptedModel() as server:
        address = server.url
    with pytest.raises(ModelError) as caught:
        ask(HttpModel("ollama", "m", address))

    assert "can't be reached at http://127.0.0.1" in str(caught.value)
    assert "Start the server" in str(caught.value.hint)
    assert caught.value.retryable


@pytest.mark.parametrize("address", ["nonsense", "ftp://x/v1", "http://", "http://[::bad/v1"])
def test_an_address_that_is_none_is_said_to_be_none(address: str) -> None:
    with pytest.raises(ModelError):
        ask(HttpModel("x", "m", address))


def test_a_redirect_is_not_followed_with_the_key() -> None:
    turn = Turn(status=308, headers={"Location": "https://elsewhere.example/v1"})
    with ScriptedModel([turn]) as server:
        with pytest.raises(ModelError) as caught:
            ask(remote(server, key="k"))

    assert "elsewhere.example" in str(caught.value.hint)


def test_an_option_that_a_server_does_not_know_is_left_out_for_good() -> None:
    refusal = Turn(status=400, error="Unknown parameter: 'stream_options'")
    with ScriptedModel([refusal, "one", "two"]) as server:
        provider = remote(server)
        ask(provider)
        ask(provider)

    assert ["stream_options" in request for request in server.requests] == [True, False, False]


def test_a_refusal_that_names_no_option_is_an_error() -> None:
    with ScriptedModel([Turn(status=400, error="no")]) as server:
        with pytest.raises(ModelError, match="answered 400: no"):
            ask(remote(server))


# -- trouble in the middle ----------------------------------------------------------------------


@each("wire", WIRES)
@each(
    "trouble",
    [
        Turn("x" * 90, stall_after=3),
        Turn("x" * 90, break_after=3),
        Turn("x" * 90, error_after=3, status=200, error="overloaded"),
        Turn("x" * 90, finish="none"),
    ],
)
def test_an_answer_that_stops_is_asked_for_once_more(wire: str, trouble: Turn) -> None:
    with ScriptedModel([trouble, "whole"]) as server:
        heard = ask(remote(server, wire=wire, idle_timeout=0.3))

    assert [type(e) for e in heard].count(Discarded) <= 1
    assert isinstance(heard[-1], Done)
    assert heard[-1].message.text == "whole"
    if any(isinstance(event, TextDelta) and "x" in event.text for event in heard):
        assert any(isinstance(event, Discarded) for event in heard)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("place", [0, 2])
def test_an_answer_that_stops_twice_is_an_error(wire: str, place: int) -> None:
    stalled = [Turn("x" * 90, stall_after=place) for _ in range(3)]
    with ScriptedModel(stalled) as server:
        with pytest.raises(ModelError) as caught:
            ask(remote(server, wire=wire, idle_timeout=0.2))

    assert caught.value.retryable
    assert len(server.requests) == 2


def test_signs_of_life_alone_are_not_waited_for_without_end() -> None:
    alive = Turn(raw=[": still here\n\n"] * 200, delay=0.02)
    with ScriptedModel([alive, "at last"]) as server:
        heard = ask(remote(server, idle_timeout=0.1))

    assert any(isinstance(event, Discarded) for event in heard)
    assert isinstance(heard[-1], Done)


def test_events_that_are_no_json_are_a_broken_answer() -> None:
    with ScriptedModel([Turn(raw=["{nonsense"]), "fine"]) as server:
        heard = ask(remote(server))

    assert isinstance(heard[0], Discarded)
    assert isinstance(heard[-1], Done)


async def until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110 - the server lives in another thread
        await asyncio.sleep(0.01)


def test_cancelling_closes_the_connection_at_once() -> None:
    async def scenario(provider: HttpModel) -> None:
        task = asyncio.create_task(events(provider))
        await until(lambda: bool(server.requests))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: not server._connections)
        await provider.close()

    with ScriptedModel([Turn("x" * 50, stall_after=2)]) as server:
        asyncio.run(asyncio.wait_for(scenario(remote(server, idle_timeout=60.0)), 10))


def test_one_model_serves_several_event_loops() -> None:
    with ScriptedModel(then="ok") as server:
        provider = remote(server)
        for _ in range(3):
            assert answer(provider).message.text == "ok"


WORDS = st.sampled_from(
    [
        *("type", "choices", "delta", "message", "tool_calls", "function", "content", "index"),
        *("response", "item", "content_block", "error", "usage", "output", "code", "name", "text"),
        *("response.completed", "response.output_item.added", "content_block_delta", "tool_use"),
        *("finish_reason", "stop_reason", "status", "model", "id", "arguments", "input"),
        *("message_start", "message_delta", "text_delta", "input_json_delta", "function_call"),
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 999) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=5),
    max_leaves=12,
)


@given(st.sampled_from(WIRES), st.lists(st.dictionaries(WORDS, VALUES, max_size=6), max_size=4))
def test_odd_events_are_understood_or_a_broken_answer(wire: str, odd: list[dict[str, Any]]) -> None:
    provider = HttpModel("odd", "some-model", "http://127.0.0.1:1/v1", wire=wire)
    for whole in (False, True):
        heard = AnswerBuilder(provider.profile, TOOLS)
        try:
            for event in odd:
                provider._read(event, heard, whole=whole)
        except (BrokenStream, RetryLater, ModelError):
            continue
        heard.done(provider="odd", model="m")


# -- the conversation that is sent --------------------------------------------------------------


@pytest.mark.parametrize("wire", WIRES)
def test_the_beginning_of_a_request_stays_the_same_to_the_byte(wire: str) -> None:
    def reply(request: dict[str, object]) -> Turn:
        n = len(server.requests)
        return Turn(f"step {n}", calls=[Call("terminal", '{"broken": ' if n % 3 else "{}")])

    with ScriptedModel(then=reply) as server:
        provider = remote(server, "claude-x", wire=wire)
        messages = list(HELLO)
        for n in range(12):
            done = answer(provider, messages)
            messages.append(done.message)
            call = done.message.calls[0]
            messages.append(Message("tool", f"result {n}", call_id=call.id, name=call.name))
            if n % 4 == 0:
                messages.append(Message("user", f"more {n}"))

    prefixes = [server.prefix_bytes(n) for n in range(12)]
    for before, after in itertools.pairwise(prefixes):
        # The last message of one side may get neighbours; its brackets then close later.
        assert after.startswith(before.removesuffix(b"]}"))
    shares = [
        server.usage(Turn("x"), n)["cached"] * 4 / len(server.bodies[n]) for n in range(6, 12)
    ]
    assert min(shares) > 0.5


@pytest.mark.parametrize("wire", WIRES)
def test_a_broken_call_is_sent_back_as_valid_json_that_quotes_it(wire: str) -> None:
    broken = '{"path": "a", nonsense'
    with ScriptedModel([Turn(calls=[Call("read_file", broken)]), "sorry"]) as server:
        provider = remote(server, wire=wire)
        first = answer(provider)
        use = first.message.calls[0]
        result = Message("tool", "invalid JSON", call_id=use.id, name=use.name)
        answer(provider, [*HELLO, first.message, result])

    assert use.arguments == broken
    sent = json.dumps(server.requests[1])
    assert "unreadable_arguments" in sent
    assert "nonsense" in sent
    if wire == "chat":
        call = server.requests[1]["messages"][2]["tool_calls"][0]
        assert json.loads(call["function"]["arguments"]) == {"unreadable_arguments": broken}
