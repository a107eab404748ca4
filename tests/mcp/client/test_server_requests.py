"""What a server may ask of us, and who answers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.mcp.client.conftest import Desk, tool

from hermes.core import ToolCall

FORM = {
    "message": "Your details?",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "age": {"type": "integer", "minimum": 0},
            "size": {"type": "string", "enum": ["S", "M"], "default": "M"},
            "agree": {"type": "boolean"},
        },
        "required": ["name"],
    },
}


def ask(desk: Desk, method: str, params: dict[str, Any], **services: Any) -> Any:
    """What a server is answered that asks during a call."""
    assert desk.app is not None
    runtime = desk.app.runtime
    context = runtime.context(services=runtime.services.replace(**services))
    call = ToolCall("mcp-box:ask", {"method": method, "params": params})
    outcome = runtime.call_sync(call, context)
    assert outcome.ok, outcome.error
    return json.loads(outcome.value)


@pytest.fixture
def box(desk: Desk) -> Desk:
    desk.open(box={**desk.peer(tool("ask")), "sampling": 1000})
    return desk


def test_a_form_is_asked_field_by_field_and_read_by_its_schema(box: Desk) -> None:
    said = {"name": "Ann", "age": "41", "size": "", "agree": "yes"}
    asked: list[tuple[str, list[str]]] = []

    def person(question: str, choices: list[str]) -> str:
        asked.append((question, choices))
        return next(answer for name, answer in said.items() if f"\n{name}" in question)

    answer = ask(box, "elicitation/create", FORM, ask_person=person)

    assert answer["action"] == "accept"
    assert answer["content"] == {"name": "Ann", "age": 41, "size": "M", "agree": True}
    assert asked[0][0].startswith("box asks: Your details?")
    assert asked[2][1] == ["S", "M"]


def test_an_answer_that_is_missing_declines(box: Desk) -> None:
    answer = ask(box, "elicitation/create", FORM, ask_person=lambda *_: "")

    assert answer["action"] == "decline"


def test_with_nobody_there_a_question_is_cancelled(box: Desk) -> None:
    assert box.app is not None
    box.app.approver = box.app.runtime.approver = None

    assert ask(box, "elicitation/create", FORM)["action"] == "cancel"


def test_an_address_to_visit_is_shown_first_and_refused_when_it_is_none(
    box: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("hermes.mcp.client.http_client.open_in_browser", opened.append)
    params = {
        "mode": "url",
        "message": "Pay",
        "elicitationId": "1",
        "url": "https://example.com/pay",
    }

    good = ask(box, "elicitation/create", params)
    bad = ask(box, "elicitation/create", {**params, "url": "file:///etc/passwd"})

    assert (good["action"], bad["action"]) == ("accept", "decline")
    assert opened == ["https://example.com/pay"]
    assert [request.arguments["address"] for request in box.asked] == ["https://example.com/pay"]


def test_the_workspace_is_the_only_root(box: Desk) -> None:
    assert box.app is not None
    answer = ask(box, "roots/list", {})

    (root,) = answer["roots"]
    assert root["uri"].startswith("file:///")


MESSAGES = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "2+2?"}}],
    "maxTokens": 600,
}


def test_a_model_is_asked_with_consent_and_within_the_budget(box: Desk) -> None:
    given: list[Any] = []

    async def sample(messages: Any, *, system: str, max_tokens: int) -> tuple[str, str, int]:
        given.append((messages, max_tokens))
        return "4", "small-model", 700

    first = ask(box, "sampling/createMessage", MESSAGES, sample=sample)
    second = ask(box, "sampling/createMessage", MESSAGES, sample=sample)
    third = ask(box, "sampling/createMessage", MESSAGES, sample=sample)

    assert first["content"]["text"] == "4"
    assert second["model"] == "small-model"
    assert "used up" in third["message"]
    assert [limit for _, limit in given] == [600, 300]
    assert [request.rule for request in box.asked] == ["mcp:sampling"] * 2
    assert all(request.human_only for request in box.asked)


def test_a_model_is_not_asked_against_the_persons_will(box: Desk) -> None:
    box.answer = "no"

    answer = ask(box, "sampling/createMessage", MESSAGES, sample=lambda *_, **__: None)

    assert "did not agree" in answer["message"]


def test_a_server_without_a_budget_is_not_told_of_a_model(desk: Desk) -> None:
    desk.open(box=desk.peer(tool("ask")))

    answer = ask(desk, "sampling/createMessage", MESSAGES, sample=lambda *_, **__: None)

    assert "not supported" in answer["message"].lower()
