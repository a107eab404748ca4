"""When a session is over: its processes end, its approvals are forgotten, there is room again."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from tests.mcp.server.peers import app_with, processes, run, soon

from hermes.core import tool
from hermes.core.context import ToolContext
from hermes.core.entry import ToolCall
from hermes.mcp.server import sessions
from hermes.mcp.server.sessions import Sessions
from hermes.runtime.app import App


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[App]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sessions, "_LOOK_SECONDS", 0.02)
    made = app_with()
    yield made
    made.close()


def _request(key: str = "", *, modern: bool = True, host: str = "127.0.0.1") -> Any:
    """What a request of a client looks like to us."""
    headers = {"hermes-session": key} if modern else {"mcp-session-id": key}
    return SimpleNamespace(
        request=SimpleNamespace(headers=headers, client=SimpleNamespace(host=host)),
        protocol_version="2026-07-28" if modern else "2025-11-25",
        session=SimpleNamespace(client_params=None),
    )


def test_requests_belong_together_by_what_they_have_in_common(app: App) -> None:
    async def work() -> None:
        known = Sessions(app)
        one = await known.of(_request())

        assert await known.of(_request()) is one
        assert await known.of(_request("other")) is not one
        assert await known.of(_request(host="10.0.0.1")) is not one
        assert await known.of(_request(modern=False)) is not one
        both = await asyncio.gather(*(known.of(_request("same")) for _ in range(5)))
        assert len(set(map(id, both))) == 1
        await known.close_all()

    run(work)


def test_a_session_that_nobody_uses_ends_with_its_processes(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = f"{5000 + os.getpid() % 1000}.123"

    async def work() -> None:
        known = Sessions(app)
        watching = asyncio.ensure_future(known.watch())
        session = await known.of(_request())
        context = ToolContext(
            task=session.task, session_id=session.id, services=session.offering.services
        )
        call = ToolCall("terminal", {"command": f"sleep {mark}", "background": True})
        await app.runtime.call(call, context)
        await soon(lambda: processes(mark), "it never began")
        await asyncio.sleep(0.1)
        assert await known.of(_request()) is session

        monkeypatch.setattr(sessions, "IDLE_SECONDS", 0.01)
        await soon(lambda: not processes(mark), "it went on")
        assert await known.of(_request()) is not session
        watching.cancel()
        await known.close_all()

    run(work)


def test_a_client_that_stops_listening_is_gone_sooner(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "GONE_SECONDS", 0.01)

    async def work() -> None:
        known = Sessions(app)
        watching = asyncio.ensure_future(known.watch())
        key = sessions.key_of_id("abc")
        with known.listening(key):
            session = await known.of(_request("abc", modern=False))
            await asyncio.sleep(0.2)
            assert await known.of(_request("abc", modern=False)) is session
        quiet = await known.of(_request("never listened", modern=False))
        await asyncio.sleep(0.5)

        assert await known.of(_request("abc", modern=False)) is not session
        assert await known.of(_request("never listened", modern=False)) is quiet
        watching.cancel()
        await known.close_all()

    run(work)


def test_the_one_longest_away_makes_room(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MOST", 3)

    async def work() -> None:
        known = Sessions(app)
        first, second, third = [await known.of(_request(name)) for name in "abc"]
        await known.of(_request("a"))
        await known.of(_request("d"))

        assert await known.of(_request("a")) is first
        assert await known.of(_request("c")) is third
        assert await known.of(_request("b")) is not second
        await known.close_all()

    run(work)


def test_where_all_are_busy_another_is_sent_away(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MOST", 1)

    async def work() -> None:
        known = Sessions(app)
        await known.of(_request("a", modern=False))
        with known.listening(sessions.key_of_id("a")):
            with pytest.raises(MCPError, match="too many"):
                await known.of(_request("b", modern=False))
        await known.close_all()

    run(work)


def test_a_client_that_reads_nothing_keeps_no_other_from_hearing(app: App) -> None:
    heard = asyncio.Event()

    async def never(*_: Any) -> None:
        await asyncio.Event().wait()

    async def hears(*_: Any) -> None:
        heard.set()

    def add(name: str) -> None:
        @tool(registry=app.registry, name=name, toolset="trial", effect="read")
        def anything() -> str:
            """Anything."""
            return ""

    async def work() -> None:
        add("first")
        known = Sessions(app, toolsets=["trial"], defer=False)
        for name, link in (("a", never), ("b", hears)):
            request = _request(name, modern=False)
            request.session.send_notification = link
            await known.of(request)
        watching = asyncio.ensure_future(known.watch())

        add("second")
        await heard.wait()

        watching.cancel()
        await known.close_all()

    run(work)
