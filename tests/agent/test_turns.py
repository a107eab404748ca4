"""Turns that are cut off, named and told off: what the model and the journal are left with."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.agent.agent import Agent
from hermes.core import ToolContext, ToolRegistry, tool
from hermes.core.model_protocol import Message
from hermes.runtime.app import App
from hermes.stores.sessions import Sessions, SessionsError
from hermes.testing import Call, ScriptedModel, Turn


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """An agent whose model follows a script."""
    monkeypatch.chdir(tmp_path)
    models: list[ScriptedModel] = []
    agents: list[Agent] = []

    def make(*script: Any, **more: Any) -> tuple[Agent, ScriptedModel]:
        model = ScriptedModel(script, then=more.pop("then", None)).__enter__()
        models.append(model)
        monkeypatch.setenv("OPENAI_BASE_URL", model.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
        more.setdefault("app", App())
        agent = Agent("openai/gpt-4o", **more)
        agents.append(agent)
        return agent, model

    yield make
    for agent in agents:
        agent.close()
        agent.app.close()
    for model in models:
        model.__exit__(None, None, None)


def _unanswered(messages: list[Message]) -> list[str]:
    answered = {message.call_id for message in messages if message.role == "tool"}
    return [use.id for message in messages for use in message.calls if use.id not in answered]


def test_a_turn_after_compaction_and_a_break_has_a_name_of_its_own(
    tmp_path: Path, ask: Any
) -> None:
    with Sessions() as sessions:
        session = sessions.begin(workspace=str(tmp_path), model="m", front_door="test")
        first, _ = ask(then="ok", journal=session)
        for number in range(4):
            first.run(f"question {number}")
        line = session.note("compaction", {})
        session.compact(line, [Message("user", "a summary of it all")])

        again, _ = ask(then="ok", journal=sessions.open(session.id))
        again.run("another question")

        names = [entry.turn for entry in session.journal() if entry.kind == "user"]
    assert len(names) == 5
    assert len(set(names)) == 5


def test_a_cancelled_turn_leaves_no_call_without_an_answer(tmp_path: Path, ask: Any) -> None:
    registry = ToolRegistry()
    begun = asyncio.Event()

    @tool(registry=registry, toolset="t", effect="read", concurrency="parallel")
    async def quick(ctx: ToolContext) -> str:
        """End at once."""
        return "quick result"

    @tool(registry=registry, toolset="t", effect="read", concurrency="parallel")
    async def endless(ctx: ToolContext) -> str:
        """Never end."""
        begun.set()
        await asyncio.sleep(3600)
        return "never"

    app = App(registry)
    app.config.values = {"tools": {"parallel": 1}}
    calls = [Call("quick", {}), Call("endless", {}), Call("endless", {})]
    with Sessions() as sessions:
        session = sessions.begin(workspace=str(tmp_path), model="m", front_door="test")
        agent, model = ask(Turn(calls=calls), "I see", app=app, journal=session, toolsets=["t"])

        async def stop_in_the_middle() -> None:
            turn = asyncio.ensure_future(agent.conversation.turn("go"))
            async with asyncio.timeout(10):
                await begun.wait()
            turn.cancel()
            with pytest.raises(asyncio.CancelledError):
                await turn
            await agent.conversation.turn("and now?")
            await agent.provider.close()

        asyncio.run(stop_in_the_middle())

        assert _unanswered(agent.conversation.messages) == []
        assert _unanswered(session.messages()) == []
        assert session.unfinished() == []
        statuses = [e.value.status for e in session.journal() if e.kind == "outcome"]
        assert sorted(statuses) == ["cancelled", "ok"]
    sent = [m["content"] for m in model.requests[1]["messages"] if m["role"] == "tool"]
    assert "quick result" in sent[0]
    assert "not known" in sent[1]
    assert "not carried out" in sent[2]


def test_a_journal_that_fails_leaves_a_conversation_that_can_go_on(
    tmp_path: Path, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Sessions() as sessions:
        session = sessions.begin(workspace=str(tmp_path), model="m", front_door="test")
        calls = [Call("system_info", {}), Call("system_info", {})]
        agent, _ = ask(Turn(calls=calls), "I see", journal=session)
        append = session.append

        def full(message: Message, **more: Any) -> int:
            if message.role == "tool":
                raise SessionsError("no room to keep the session")
            return append(message, **more)

        with monkeypatch.context() as patched:
            patched.setattr(session, "append", full)
            with pytest.raises(SessionsError):
                agent.run("go")

        assert _unanswered(agent.conversation.messages) == []


def test_the_remark_on_going_round_stands_apart_from_the_results(tmp_path: Path, ask: Any) -> None:
    loops = [Turn(calls=[Call("read_file", {"path": "none.txt"})]) for _ in range(9)]
    agent, model = ask(*loops)

    agent.turn("go")

    last = model.requests[-1]["messages"]
    for message in last:
        if message["role"] == "tool":
            json.loads(message["content"])
    assert any(m["role"] == "user" and "same result" in str(m["content"]) for m in last)
    for number in range(len(model.requests) - 1):
        assert model.prefix_bytes(number + 1).startswith(model.prefix_bytes(number))


def test_news_reach_the_model_before_its_next_step(ask: Any) -> None:
    agent, model = ask("all right")
    news = ["the helper has ended"]
    agent.conversation.notices = lambda: [news.pop()] if news else []

    agent.run("go on")

    assert model.requests[0]["messages"][-1]["content"] == "the helper has ended"


def test_a_call_that_takes_longer_than_the_turn_may_ends_with_it(ask: Any) -> None:
    agent, model = ask(Turn(calls=[Call("sleep", {"seconds": 600})]), "Here I am.", max_seconds=2)

    result = agent.turn("sleep long")
    agent.budget.seconds = None

    assert (result.ended, result.steps) == ("spent", 1)
    assert "as long as it may take" in result.text
    assert _unanswered(agent.conversation.messages) == []
    assert agent.run("and now?") == "Here I am."
    assert model.requests[-1]["messages"][-1]["content"] == "and now?"


def test_a_model_that_says_nothing_more_is_waited_for_as_long_as_the_turn_may_take(
    ask: Any,
) -> None:
    agent, _ = ask(Turn("A long text", piece=2, stall_after=2), "Here I am.", max_seconds=2)

    result = agent.turn("speak")
    agent.budget.seconds = None

    assert result.ended == "spent"
    assert agent.run("and now?") == "Here I am."
