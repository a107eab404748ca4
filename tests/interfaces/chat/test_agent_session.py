"""The agent of a chat is made once, and is never lost, whoever stops waiting for it."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

from hermes.interfaces.chat.agent_session import AgentOptions, AgentSession


class _Slow(AgentSession):
    """Makes its agents when it is told to, and counts them."""

    def __init__(self) -> None:
        events = SimpleNamespace(subscribe=lambda _: lambda: None)
        app: Any = SimpleNamespace(runtime=SimpleNamespace(events=events))
        view: Any = SimpleNamespace(note=lambda *_: None, tool_event=None)
        super().__init__(app, view, SimpleNamespace(), AgentOptions())  # type: ignore[arg-type]
        self.go = threading.Event()
        self.agents: list[Any] = []

    def _new_agent(self, session: Any) -> Any:
        self.go.wait(20)
        agent = SimpleNamespace(provider=_Provider(), workspace="/w", closed=False)
        agent.close = lambda: setattr(agent, "closed", True)
        self.agents.append(agent)
        return agent


class _Provider:
    model = name = "m"

    async def close(self) -> None:
        return


def test_two_that_need_it_at_once_get_the_same() -> None:
    async def both() -> list[Any]:
        opening = _Slow()
        asked = [asyncio.ensure_future(opening.start()) for _ in range(2)]
        await asyncio.sleep(0)
        opening.go.set()
        return list(await asyncio.gather(*asked))

    first, second = asyncio.run(both())
    assert first is second


def test_an_agent_that_nobody_waits_for_any_more_is_the_next_one_s() -> None:
    async def interrupted() -> tuple[Any, _Slow]:
        opening = _Slow()
        turn = asyncio.ensure_future(opening.start())
        await asyncio.sleep(0)
        turn.cancel()
        await asyncio.wait([turn])
        following = asyncio.ensure_future(opening.start())
        await asyncio.sleep(0)
        opening.go.set()
        return await following, opening

    agent, opening = asyncio.run(interrupted())
    assert opening.agents == [agent]


def test_one_that_is_still_being_made_is_closed_with_the_rest() -> None:
    async def left() -> _Slow:
        opening = _Slow()
        turn = asyncio.ensure_future(opening.start())
        await asyncio.sleep(0)
        turn.cancel()
        ending = asyncio.ensure_future(opening.end())
        await asyncio.sleep(0)
        opening.go.set()
        await ending
        return opening

    opening = asyncio.run(left())
    (agent,) = opening.agents
    assert agent.closed
    assert opening.agent is None
