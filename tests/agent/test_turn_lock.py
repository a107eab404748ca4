"""A conversation has one turn at a time, whoever speaks, from wherever."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import hermes.runtime.waits as waits
from hermes.agent.agent import Agent
from hermes.agent.turn_lock import TurnLock
from hermes.core.errors import HermesError
from hermes.runtime.app import App
from hermes.testing import ScriptedModel, Turn


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Agent]:
    """An agent whose model says `ok`, in its own time."""
    monkeypatch.chdir(tmp_path)
    app = App()
    with ScriptedModel(then=Turn("ok", piece=1, delay=0.02)) as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
        with Agent("openai/gpt-4o", app=app) as agent:
            yield agent
    app.close()


def _roles(agent: Agent) -> list[str]:
    return [message.role for message in agent.conversation.messages]


def test_threads_that_ask_at_once_are_answered_one_after_the_other(agent: Agent) -> None:
    threads = [threading.Thread(target=agent.run, args=(f"question {n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert _roles(agent) == ["user", "assistant"] * 4


def test_tasks_that_ask_at_once_are_answered_in_the_order_they_came(agent: Agent) -> None:
    async def ask() -> None:
        await asyncio.gather(*(agent.arun(f"question {n}") for n in range(3)))

    asyncio.run(ask())

    said = [message.text for message in agent.conversation.messages]
    assert said == ["question 0", "ok", "question 1", "ok", "question 2", "ok"]


def test_who_stops_waiting_keeps_nobody_else_from_it(agent: Agent) -> None:
    async def ask() -> None:
        first = asyncio.ensure_future(agent.arun("first"))
        second = asyncio.ensure_future(agent.arun("second"))
        third = asyncio.ensure_future(agent.arun("third"))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.gather(first, second, third, return_exceptions=True)

    asyncio.run(ask())

    said = [m.text for m in agent.conversation.messages if m.role == "user"]
    assert said == ["first", "third"]


def test_who_is_let_in_and_stops_at_the_same_moment_lets_the_next_one_in() -> None:
    gate = TurnLock()
    through: list[str] = []

    async def go(name: str) -> None:
        async with gate.turn():
            through.append(name)

    async def all_of_them() -> None:
        async with gate.turn():
            # Begun by somebody else, and not by this turn.
            tasks = [
                asyncio.create_task(go(name), context=elsewhere.copy())
                for name in ("second", "third")
            ]
            await asyncio.sleep(0)
        # It is let in with the next round of the loop; cancelled before that.
        tasks[0].cancel()
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 10)

    elsewhere = contextvars.copy_context()

    asyncio.run(all_of_them())

    assert through == ["third"]


def test_a_turn_that_would_wait_for_itself_is_told_so(agent: Agent) -> None:
    async def ask() -> None:
        async with agent.conversation.turn_lock.turn():
            await agent.arun("inside of it")

    with pytest.raises(HermesError, match="in the middle of a turn"):
        asyncio.run(ask())
    assert agent.run("afterwards") == "ok"


def test_what_was_begun_in_a_turn_may_speak_when_that_has_ended(agent: Agent) -> None:
    async def ask() -> str:
        over = asyncio.Event()

        async def later() -> str:
            await over.wait()
            return await agent.arun("and now?")

        async with agent.conversation.turn_lock.turn():
            begun = asyncio.ensure_future(later())
            await asyncio.sleep(0)
        over.set()
        return await begun

    assert asyncio.run(ask()) == "ok"


def test_a_cell_that_would_block_the_turn_it_waits_for_is_told_so(agent: Agent) -> None:
    async def cells() -> str:
        begun = asyncio.ensure_future(agent.arun("in the first cell"))
        await asyncio.sleep(0)
        with pytest.raises(HermesError, match=r"await agent\.arun") as told:
            agent.run("in the second cell")
        assert told.value.hint
        await begun
        return agent.run("in the third cell")

    assert asyncio.run(cells()) == "ok"


def test_in_a_notebook_a_turn_may_take_longer_than_a_call(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waits, "HELPER_LIMIT_SECONDS", 0.001)

    async def cell() -> str:
        return agent.run("in a cell")

    assert asyncio.run(cell()) == "ok"


def test_an_agent_that_was_closed_says_so(agent: Agent) -> None:
    agent.close()

    with pytest.raises(HermesError, match="was closed"):
        agent.run("anybody there?")
    with pytest.raises(HermesError, match="was closed"):
        asyncio.run(agent.arun("anybody there?"))
