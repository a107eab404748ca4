"""Several calls of one server at once, each with a question: who is asked what."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.mcp.client.conftest import Desk, eventually, tool

from hermes.core import ToolCall
from hermes.core.entry import ToolOutcome
from hermes.runtime import waits

SDK = Path(__file__).parent.parent / "servers" / "sdk.py"
NAMES = ("ann", "bob", "cleo")


class People:
    """One person for each session, who answers once all of them have been asked."""

    def __init__(self, names: tuple[str, ...], *, together: bool = True) -> None:
        self.asked: dict[str, list[str]] = {name: [] for name in names}
        self._all = threading.Barrier(len(names)) if together else None

    def answer(self, name: str, question: str) -> str:
        self.asked[name].append(question)
        if self._all is not None:
            self._all.wait(20)
        return f"{name}'s word"


def contexts(desk: Desk, people: People, *, session: str = "") -> dict[str, Any]:
    """The surroundings of a call by each of the people; in one session if that is named."""
    assert desk.app is not None
    runtime = desk.app.runtime

    def made(name: str) -> Any:
        async def sample(messages: Any, **_: Any) -> tuple[str, str, int]:
            said = await asyncio.to_thread(people.answer, name, messages[0]["text"])
            return said, "model", 10

        services = {
            "ask_person": lambda question, _: people.answer(name, question),
            "sample": sample,
        }
        return runtime.context(
            session_id=session or name, services=runtime.services.replace(**services)
        )

    return {name: made(name) for name in people.asked}


def all_at_once(desk: Desk, calls: dict[str, tuple[ToolCall, Any]]) -> dict[str, ToolOutcome]:
    """Each call by its name, begun before any has ended."""
    assert desk.app is not None
    runtime = desk.app.runtime

    async def run() -> list[ToolOutcome]:
        return await asyncio.gather(*(runtime.call(*one) for one in calls.values()))

    return dict(zip(calls, waits.run(run()), strict=True))


@pytest.fixture(params=["old", "new"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A server over HTTP, of either protocol."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, str(SDK), str(port), request.param])

    def listens() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    try:
        eventually(listens, 30)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("what", ["ask", "think"])
def test_over_http_each_question_reaches_who_made_the_call(desk: Desk, url: str, what: str) -> None:
    desk.open(sdk={"url": url, "sampling": 1000})
    people = People(NAMES)
    around = contexts(desk, people)

    outcomes = all_at_once(
        desk,
        {name: (ToolCall(f"mcp-sdk:{what}", {"who": name}), around[name]) for name in NAMES},
    )

    said = {name: outcome.value for name, outcome in outcomes.items()}
    assert said == {name: {"result": f"{name} was told {name}'s word"} for name in NAMES}
    assert all(
        len(asked) == 1 and f"for {name}" in asked[0] for name, asked in people.asked.items()
    )
    desk.close()


def form(name: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"answer": {"type": "string"}}}
    return {"message": f"for {name}", "requestedSchema": schema}


def test_over_a_pipe_nobody_is_asked_in_anothers_place(desk: Desk) -> None:
    desk.open(box=desk.peer(tool("ask"), tool("sleep")))
    people = People(NAMES, together=False)
    around = contexts(desk, people)
    question = {"method": "elicitation/create", "params": form("ann")}

    outcomes = all_at_once(
        desk,
        {
            "bob": (ToolCall("mcp-box:sleep", {"seconds": 1.0}), around["bob"]),
            "ann": (ToolCall("mcp-box:ask", question), around["ann"]),
        },
    )

    assert json.loads(outcomes["ann"].value)["action"] == "cancel"
    assert outcomes["bob"].value == "slept"
    assert not any(people.asked.values())


def test_over_a_pipe_one_person_is_asked_in_the_servers_name_alone(desk: Desk) -> None:
    desk.open(box=desk.peer(tool("ask"), tool("sleep")))
    assert desk.app is not None
    runtime = desk.app.runtime
    context = runtime.context(session_id="ann")
    question = {"method": "elicitation/create", "params": form("ann"), "after": 0.3}

    outcomes = all_at_once(
        desk,
        {
            "ask": (ToolCall("mcp-box:ask", question), context),
            "sleep": (ToolCall("mcp-box:sleep", {"seconds": 1.0}), context),
        },
    )
    alone = runtime.call_sync(ToolCall("mcp-box:ask", question, id="the-call"), context)

    assert json.loads(outcomes["ask"].value)["action"] == "accept"
    assert json.loads(alone.value)["action"] == "accept"
    first, second = desk.asked
    assert (first.call_id, second.call_id) == ("", "the-call")
    assert "does not say for which" in first.reason
    assert "box" in first.reason
    assert "does not say" not in second.reason


def test_over_a_pipe_no_model_is_asked_at_anothers_expense(desk: Desk) -> None:
    desk.open(box={**desk.peer(tool("ask"), tool("sleep")), "sampling": 1000})
    people = People(NAMES, together=False)
    # One session, and two agents in it that count for themselves.
    around = contexts(desk, people, session="one")
    messages = [{"role": "user", "content": {"type": "text", "text": "hi"}}]
    question = {
        "method": "sampling/createMessage",
        "params": {"messages": messages, "maxTokens": 10},
    }

    outcomes = all_at_once(
        desk,
        {
            "bob": (ToolCall("mcp-box:sleep", {"seconds": 1.0}), around["bob"]),
            "ann": (ToolCall("mcp-box:ask", question), around["ann"]),
        },
    )
    alone = all_at_once(desk, {"ann": (ToolCall("mcp-box:ask", question), around["ann"])})

    assert "not known which call" in json.loads(outcomes["ann"].value)["message"]
    assert json.loads(alone["ann"].value)["content"]["text"] == "ann's word"
    assert not people.asked["bob"]


def test_a_question_that_may_be_anothers_ends_with_the_last_call_only(desk: Desk) -> None:
    desk.open(box=desk.peer(tool("ask"), tool("sleep")))
    assert desk.app is not None
    runtime = desk.app.runtime
    asked = threading.Event()
    slept = threading.Event()

    def person(question: str, choices: list[str]) -> str:
        asked.set()
        assert slept.wait(20)
        return "yes"

    services = runtime.services.replace(ask_person=person)
    context = runtime.context(session_id="ann", services=services)
    question = {"method": "elicitation/create", "params": form("ann"), "after": 0.3}

    async def run() -> list[ToolOutcome]:
        async def sleep() -> ToolOutcome:
            done = await runtime.call(ToolCall("mcp-box:sleep", {"seconds": 0.8}), context)
            await asyncio.to_thread(asked.wait, 20)
            slept.set()
            return done

        # The one that sleeps came last, so it is its front door that asks.
        asking = asyncio.ensure_future(runtime.call(ToolCall("mcp-box:ask", question), context))
        sleeping = asyncio.ensure_future(sleep())
        return [await asking, await sleeping]

    outcome, _ = waits.run(run())

    assert json.loads(outcome.value)["action"] == "accept"
