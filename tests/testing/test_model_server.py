"""The scripted model: what it is told to say, over real HTTP, whatever goes wrong by plan."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

import pytest

from hermes.testing import Call, ScriptedModel, Turn

ASKED = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def post(url: str, path: str, body: Any, *, timeout: float = 10.0) -> tuple[int, Any, bytes]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=timeout)
    try:
        connection.request("POST", f"{parts.path}{path}", json.dumps(body))
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


def data(body: bytes) -> list[Any]:
    lines = [line[6:] for line in body.decode().splitlines() if line.startswith("data: ")]
    return [line if line == "[DONE]" else json.loads(line) for line in lines]


def test_turns_are_said_in_order_and_requests_are_kept() -> None:
    with ScriptedModel(["one", "two"]) as model:
        said = [
            json.loads(post(model.url, "/chat/completions", {**ASKED, "n": n})[2]) for n in (1, 2)
        ]

    assert [s["choices"][0]["message"]["content"] for s in said] == ["one", "two"]
    assert [request["n"] for request in model.requests] == [1, 2]
    assert model.left == 0


def test_a_turn_may_be_a_function_of_the_request() -> None:
    with ScriptedModel(then=lambda request: f"{len(request['messages'])} messages") as model:
        status, _, body = post(model.url, "/chat/completions", ASKED)

    assert status == 200
    assert json.loads(body)["choices"][0]["message"]["content"] == "1 messages"


def test_the_end_of_the_script_is_an_error_that_says_so() -> None:
    with ScriptedModel() as model:
        status, _, body = post(model.url, "/chat/completions", ASKED)

    assert status == 400
    assert "at its end" in json.loads(body)["error"]["message"]


def test_a_stream_has_pieces_calls_usage_and_an_end() -> None:
    turn = Turn(
        "hello there",
        calls=[Call("read_file", {"path": "a"}, id="x1"), ("broken", '{"path": ')],
        reasoning="hm",
        piece=4,
        usage={"input": 10, "output": 5, "cached": 8, "reasoning": 2},
    )
    with ScriptedModel([turn]) as model:
        events = data(post(model.url, "/chat/completions", {**ASKED, "stream": True})[2])

    deltas = [e["choices"][0]["delta"] for e in events[:-1] if e["choices"]]
    calls = [call for d in deltas for call in d.get("tool_calls", ())]
    assert "".join(d.get("content", "") for d in deltas) == "hello there"
    assert calls[0]["id"] == "x1"
    assert "".join(c["function"]["arguments"] for c in calls if c["index"] == 1) == '{"path": '
    assert events[-2]["usage"]["prompt_tokens_details"]["cached_tokens"] == 8
    assert events[-1] == "[DONE]"


@pytest.mark.parametrize(
    ("path", "kinds"),
    [
        ("/responses", ["response.created", "response.completed"]),
        ("/messages", ["message_start", "message_stop"]),
    ],
)
def test_the_other_two_apis_stream_typed_events(path: str, kinds: list[str]) -> None:
    with ScriptedModel([Turn("hi", calls=[("f", {"a": 1})], reasoning="hm")]) as model:
        events = data(post(model.url, path, {"model": "m", "stream": True})[2])

    assert [events[0]["type"], events[-1]["type"]] == kinds


def test_errors_carry_status_and_retry_after() -> None:
    with ScriptedModel([Turn(status=429, error="slow down", retry_after=7)]) as model:
        status, headers, body = post(model.url, "/messages", {"model": "m"})

    assert (status, headers["Retry-After"]) == (429, "7")
    assert json.loads(body)["error"]["message"] == "slow down"


def test_a_break_is_seen_as_one() -> None:
    with ScriptedModel([Turn("x" * 100, break_after=2)]) as model:
        with pytest.raises(http.client.IncompleteRead):
            post(model.url, "/chat/completions", {**ASKED, "stream": True})


def test_a_stall_sends_what_was_said_and_no_more() -> None:
    with ScriptedModel([Turn("x" * 100, stall_after=2)]) as model:
        with pytest.raises(TimeoutError):
            post(model.url, "/chat/completions", {**ASKED, "stream": True}, timeout=0.3)


def test_the_conversation_of_the_next_request_begins_with_the_one_before() -> None:
    longer = {**ASKED, "messages": [*ASKED["messages"], {"role": "user", "content": "more"}]}
    with ScriptedModel(then="ok") as model:
        for body in (ASKED, longer, longer):
            post(model.url, "/chat/completions", body)

    assert model.prefix_bytes(1).startswith(model.prefix_bytes(0))
    assert not model.prefix_bytes(0).startswith(model.prefix_bytes(1))
    assert model.usage(Turn("x"), 0)["cached"] == 0
    assert model.usage(Turn("x"), 2)["cached"] == len(model.prefix_bytes(2)) // 4


def test_marks_for_caches_are_no_part_of_the_conversation() -> None:
    marked = {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}
    plain = {"type": "text", "text": "a"}
    with ScriptedModel(then="ok") as model:
        for block in (marked, plain):
            post(model.url, "/messages", {"messages": [{"role": "user", "content": [block]}]})

    assert model.prefix_bytes(0) == model.prefix_bytes(1).replace(b": ", b":").replace(b", ", b",")


def test_models_are_listed_and_unknown_paths_refused() -> None:
    with ScriptedModel() as model:
        assert post(model.url, "/nonsense", {})[0] == 404

    with pytest.raises(RuntimeError):
        _ = model.url
