"""Several models for one question: in parallel, counted, and whatever becomes of some of them."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from hermes.agent.agent import Agent
from hermes.runtime.app import App
from hermes.stores.sessions import Session, Sessions
from hermes.testing import Call, ScriptedModel, Turn

QUESTION = "Which of them is the heavier one?"


class Bench:
    """An agent on one scripted model, with others at other services."""

    def __init__(self, stack: ExitStack, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.stack = stack
        self.monkeypatch = monkeypatch
        self.folder = folder
        self.store = stack.enter_context(Sessions())

    def serve(self, service: str, *script: Any, then: Any = None) -> ScriptedModel:
        model = self.stack.enter_context(ScriptedModel(script, then=then))
        self.monkeypatch.setenv(f"{service.upper()}_BASE_URL", model.url)
        self.monkeypatch.setenv(f"{service.upper()}_API_KEY", "none")
        return model

    def agent(self, settings: dict[str, Any] | None = None, **more: Any) -> tuple[Agent, Session]:
        session = self.store.begin(workspace=str(self.folder), model="", front_door="test")
        app = App()
        app.config.values = settings or {}
        self.stack.callback(app.close)
        agent = Agent("openai/gpt-4o", app=app, journal=session, **more)
        self.stack.callback(agent.close)
        return agent, session


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.endswith(("_API_KEY", "_BASE_URL")) or name == "HERMES_MODEL":
            monkeypatch.delenv(name)
    with ExitStack() as stack:
        yield Bench(stack, monkeypatch, tmp_path)


def asking(*after: Any) -> list[Any]:
    """A model that asks the others, then whatever comes."""
    return [Turn(calls=[Call("mixture_of_agents", {"question": QUESTION})], usage={}), *after]


def outcome(model: ScriptedModel) -> dict[str, Any]:
    (result,) = [m for m in model.requests[-1]["messages"] if m["role"] == "tool"]
    found: dict[str, Any] = json.loads(result["content"])["result"]
    return found


def used(text: str, input: int, output: int) -> Turn:  # noqa: A002
    return Turn(text, usage={"input": input, "output": output})


def test_the_models_of_the_settings_are_asked_and_one_answer_is_made(bench: Bench) -> None:
    main = bench.serve("openai", *asking("thanks"))
    first = bench.serve("deepseek", used("the left one", 10, 1))
    second = bench.serve("mistral", used("the right one", 20, 2))
    judge = bench.serve("xai", used("the right one, surely", 300, 3))
    names = {"models": ["deepseek/d", "mistral/m"], "aggregator": "xai/judge"}
    agent, session = bench.agent({"moa": names})

    assert agent.run("ask them") == "thanks"

    said = outcome(main)
    assert said["answer"] == "the right one, surely"
    assert [(m["model"], m["status"]) for m in said["models"]] == [
        ("deepseek/d", "ok"),
        ("mistral/m", "ok"),
    ]
    for model in (first, second):
        assert [m["content"] for m in model.requests[0]["messages"]] == [QUESTION]
    seen = judge.requests[0]["messages"][-1]["content"]
    assert all(text in seen for text in (QUESTION, "the left one", "the right one"))
    totals = session.totals().by_model
    assert {name: usage.input for name, usage in totals.items() if usage.input} == {
        "d": 10,
        "m": 20,
        "judge": 300,
        **({"gpt-4o": totals["gpt-4o"].input} if totals["gpt-4o"].input else {}),
    }
    assert agent.budget.usage.input >= 330


def test_failures_are_named_and_the_others_count(bench: Bench) -> None:
    main = bench.serve("openai", *asking(used("made of one", 5, 5), "thanks"))
    bench.serve("deepseek", "the left one")
    bench.serve("mistral", then=lambda _: Turn(status=401, error="wrong key"))
    bench.serve("xai", then="")
    names = ["deepseek/d", "mistral/m", "xai/x", "deepseek/d"]
    agent, _ = bench.agent({"moa": {"models": names}})

    agent.run("ask them")

    said = outcome(main)
    assert said["answer"] == "made of one"
    states = {model["model"]: model["status"] for model in said["models"]}
    assert states == {
        "deepseek/d": "ok",
        "mistral/m": "failed",
        "xai/x": "failed",
    }
    errors = {model["model"]: model.get("error", "") for model in said["models"]}
    assert "key" in errors["mistral/m"]
    assert "empty" in errors["xai/x"]


def test_when_nobody_answers_it_is_an_error_with_every_reason(bench: Bench) -> None:
    main = bench.serve("openai", *asking("I will think myself"))
    bench.serve("mistral", then=lambda _: Turn(status=401, error="wrong key"))
    bench.serve("xai", then="")
    agent, _ = bench.agent({"moa": {"models": ["mistral/m", "xai/x"]}})

    agent.run("ask them")

    said = outcome(main)
    assert "mistral/m" in said["error"]
    assert "xai/x" in said["error"]


def test_without_an_aggregator_the_answers_are_not_lost(bench: Bench) -> None:
    main = bench.serve("openai", *asking("thanks"))
    bench.serve("deepseek", then="the left one")
    bench.serve("mistral", then=lambda _: Turn(status=401, error="wrong key"))
    agent, _ = bench.agent({"moa": {"models": ["deepseek/d"], "aggregator": "mistral/m"}})

    agent.run("ask them")

    said = outcome(main)
    assert said["models"][0]["answer"] == "the left one"
    assert said["aggregator"]["status"] == "failed"
    assert "note" in said


def test_a_single_model_is_asked_several_times(bench: Bench) -> None:
    main = bench.serve("openai", *asking("a", "b", "c", "of all three", "thanks"))
    agent, _ = bench.agent()

    agent.run("ask them")

    assert outcome(main)["answer"] == "of all three"
    heats = {request.get("temperature") for request in main.requests[1:4]}
    assert len(heats) == 3


def test_what_is_found_is_asked_where_nothing_is_set(bench: Bench) -> None:
    main = bench.serve("openai", *asking("mine", "made of both", "thanks"))
    other = bench.serve("deepseek", "theirs")
    agent, _ = bench.agent()

    agent.run("ask them")

    said = outcome(main)
    assert said["answer"] == "made of both"
    assert [model["model"] for model in said["models"]][0] == "gpt-4o"
    assert len(other.requests) == 1


def test_the_budget_is_the_agents(bench: Bench) -> None:
    main = bench.serve("openai", *asking("thanks"))
    bench.serve("deepseek", then="theirs")
    names = ["deepseek/a", "deepseek/b", "deepseek/c"]
    agent, _ = bench.agent({"moa": {"models": names}}, max_steps=3)

    result = agent.turn("ask them")

    assert result.ended == "spent"
    (answer,) = [m.text for m in agent.conversation.messages if m.role == "tool"]
    states = [model["status"] for model in json.loads(answer)["result"]["models"]]
    assert sorted(states) == ["failed", "ok", "ok"]
    assert len(main.requests) == 1


def test_cancelling_ends_it_and_what_was_used_is_counted(bench: Bench) -> None:
    bench.serve("openai", *asking("thanks"))
    bench.serve("deepseek", used("quick", 10, 1))
    bench.serve("mistral", Turn("never", stall_after=1))
    agent, session = bench.agent({"moa": {"models": ["deepseek/d", "mistral/m"]}})
    done = asyncio.Event()
    agent.app.runtime.events.subscribe(
        lambda event: done.set() if "answered" in str(event.data.get("message")) else None
    )

    async def stop() -> None:
        turn = asyncio.ensure_future(agent.conversation.turn("ask them"))
        async with asyncio.timeout(20):
            await done.wait()
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        await agent.provider.close()

    asyncio.run(stop())

    assert session.totals().by_model["d"].input == 10
    assert agent.conversation.messages[-1].role == "tool"


def test_without_an_agent_it_says_so(bench: Bench) -> None:
    from hermes.core import ToolCall

    app = App()
    outcome = app.runtime.call_sync(ToolCall("mixture_of_agents", {"question": "?"}))
    app.close()

    assert outcome.status == "error"
    assert "mixture" in str(outcome.error)
