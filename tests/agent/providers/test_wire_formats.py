"""What each API is sent: pictures, forced calls, kept reasoning, marks for caches, quirks."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.agent.providers.requests import HELLO, TOOLS, answer, ask, remote

from hermes.core.model_protocol import Discarded, Image, Message, ToolUse
from hermes.testing import Call, ScriptedModel, Turn

PICTURE = Image("image/png", data="aGk=")
WIRES = ["chat", "responses", "anthropic"]


def sent(
    messages: tuple[Message, ...] = HELLO, *, wire: str = "chat", model: str = "m", **options: Any
) -> dict[str, Any]:
    with ScriptedModel(["ok"]) as server:
        answer(remote(server, model, wire=wire), messages, **options)
    return server.requests[0]


@pytest.mark.parametrize("wire", WIRES)
def test_a_picture_is_sent(wire: str) -> None:
    request = sent((Message("user", "what is it?", images=(PICTURE,)),), wire=wire)

    assert "aGk=" in json.dumps(request)


@pytest.mark.parametrize("wire", WIRES)
def test_a_picture_in_a_result_reaches_the_model(wire: str) -> None:
    asked = Message("assistant", calls=(ToolUse("a", "read_file"), ToolUse("b", "read_file")))
    results = [Message("tool", "see", call_id=i, name="read_file", images=(PICTURE,)) for i in "ab"]
    request = sent((*HELLO, asked, *results), wire=wire)

    assert json.dumps(request).count("aGk=") == 2
    if wire == "chat":
        # Results follow their calls without anything in between.
        assert [m["role"] for m in request["messages"][3:]] == ["tool", "tool", "user"]


@pytest.mark.parametrize("wire", WIRES)
def test_a_model_that_sees_nothing_is_told_that_there_was_a_picture(wire: str) -> None:
    request = sent((Message("user", "?", images=(PICTURE,)),), wire=wire, model="deepseek-chat")

    assert "aGk=" not in json.dumps(request)
    assert "sees no pictures" in json.dumps(request)


@pytest.mark.parametrize(
    ("wire", "choice"),
    [
        ("chat", {"type": "function", "function": {"name": "terminal"}}),
        ("responses", {"type": "function", "name": "terminal"}),
        ("anthropic", {"type": "tool", "name": "terminal"}),
    ],
)
def test_a_call_can_be_forced(wire: str, choice: dict[str, Any]) -> None:
    assert sent(wire=wire, force="terminal")["tool_choice"] == choice


def test_tools_are_written_in_the_words_of_each_api() -> None:
    chat, responses, anthropic = (sent(wire=wire)["tools"][0] for wire in WIRES)

    function = TOOLS[0]["function"]
    assert chat == TOOLS[0]
    assert responses == {"type": "function", **function, "strict": False}
    assert anthropic["input_schema"] == function["parameters"]


@pytest.mark.parametrize(
    ("model", "name"), [("gpt-5.1", "max_completion_tokens"), ("qwen3", "max_tokens")]
)
def test_the_limit_of_an_answer_has_the_name_that_the_model_knows(model: str, name: str) -> None:
    request = sent(model=model, max_tokens=100, temperature=0.5)

    assert request[name] == 100
    assert ("temperature" in request) is (model == "qwen3")


def test_the_end_of_what_is_cached_is_marked_without_changing_what_was_sent() -> None:
    request = sent(wire="anthropic", model="claude-sonnet-4-5")

    assert request["cache_control"] == {"type": "ephemeral"}
    assert request["system"][0]["cache_control"] == {"type": "ephemeral"}
    assert "cache_control" not in json.dumps(request["messages"])


def test_a_server_that_knows_no_marks_gets_none() -> None:
    refusal = Turn(status=400, error="cache_control: Extra inputs are not permitted")
    with ScriptedModel([refusal, "ok"]) as server:
        answer(remote(server, wire="anthropic"))

    assert "cache_control" not in json.dumps(server.requests[1])


def test_neighbours_of_one_side_are_joined_for_an_api_that_wants_turns() -> None:
    asked = Message("assistant", "look", calls=(ToolUse("a", "read_file", '{"path": "x"}'),))
    result = Message("tool", "text", call_id="a", name="read_file")
    request = sent((*HELLO, asked, result, Message("user", "and?")), wire="anthropic")

    assert [m["role"] for m in request["messages"]] == ["user", "assistant", "user"]
    assert [b["type"] for b in request["messages"][1]["content"]] == ["text", "tool_use"]
    assert request["messages"][1]["content"][1]["input"] == {"path": "x"}
    assert [b["type"] for b in request["messages"][2]["content"]] == ["tool_result", "text"]


@pytest.mark.parametrize(("wire", "mark"), [("responses", "encrypted"), ("anthropic", "signature")])
def test_sealed_reasoning_is_sent_back_with_its_answer(wire: str, mark: str) -> None:
    turn = Turn("look", reasoning="hm", calls=[Call("read_file", {"path": "a"})])
    with ScriptedModel([turn, "done"]) as server:
        provider = remote(server, "gpt-5.1", wire=wire)
        said = answer(provider).message
        result = Message("tool", "text", call_id=said.calls[0].id, name="read_file")
        answer(provider, (*HELLO, said, result))

    text = json.dumps(server.requests[1])
    assert "sealed-0" in text
    assert mark in text


def test_reasoning_is_echoed_where_it_is_required_and_only_there() -> None:
    thought = Message("assistant", "", reasoning="hm", calls=(ToolUse("a", "read_file"),))
    silent = Message("assistant", "", calls=(ToolUse("b", "read_file"),))
    results = [Message("tool", "x", call_id=i, name="read_file") for i in "ab"]
    messages = (*HELLO, thought, results[0], silent, results[1], Message("assistant", "done"))

    deepseek = sent(messages, model="deepseek-v4-pro")["messages"]
    other = sent(messages, model="llama-3.3-70b")["messages"]

    assert [m.get("reasoning_content") for m in deepseek if m["role"] == "assistant"] == [
        "hm",
        "",
        None,
    ]
    assert "reasoning_content" not in json.dumps(other)


def test_a_server_that_wants_reasoning_back_gets_it() -> None:
    refusal = Turn(
        status=400, error="The `reasoning_content` in the thinking mode must be passed back"
    )
    thought = Message("assistant", "", reasoning="hm", calls=(ToolUse("a", "read_file"),))
    result = Message("tool", "x", call_id="a", name="read_file")
    with ScriptedModel([refusal, "ok"]) as server:
        heard = ask(remote(server, "mystery-1"), (*HELLO, thought, result))

    assert server.requests[1]["messages"][2]["reasoning_content"] == "hm"
    assert not any(isinstance(event, Discarded) for event in heard)


def test_ids_have_the_form_that_the_server_wants_and_still_match() -> None:
    asked = Message("assistant", calls=(ToolUse("call_with/odd id", "read_file"),))
    result = Message("tool", "x", call_id="call_with/odd id", name="read_file")
    request = sent((*HELLO, asked, result), model="mistral-large-latest")["messages"]

    call_id = request[2]["tool_calls"][0]["id"]
    assert len(call_id) == 9
    assert call_id.isalnum()
    assert request[3]["tool_call_id"] == call_id


def test_what_a_gateway_wants_to_see_again_is_sent_again() -> None:
    details = [{"type": "reasoning.encrypted", "data": "sealed"}]
    extra = {"google": {"thought_signature": "sealed too"}}
    delta = {
        "reasoning_details": details,
        "tool_calls": [
            {
                "index": 0,
                "id": "a",
                "function": {"name": "read_file", "arguments": "{}"},
                "extra_content": extra,
            }
        ],
    }
    events = [{"choices": [{"index": 0, "delta": delta, "finish_reason": "tool_calls"}]}]
    with ScriptedModel([Turn(raw=events), "done"]) as server:
        provider = remote(server)
        said = answer(provider).message
        answer(provider, (*HELLO, said, Message("tool", "x", call_id="a", name="read_file")))

    again = server.requests[1]["messages"][2]
    assert again["reasoning_details"] == details
    assert again["tool_calls"][0]["extra_content"] == extra


def test_nothing_is_asked_before_the_first_question() -> None:
    with ScriptedModel(["ok"]) as server:
        provider = remote(server)
        assert server.paths == []
        answer(provider)

    assert server.paths == ["/v1/chat/completions"]
