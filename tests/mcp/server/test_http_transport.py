"""Sessions that nobody says goodbye to, and connections that ask nothing: neither locks others out."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn
from tests.mcp.server.peers import app_with, run
from tests.mcp.server.test_http_server import PING
from uvicorn.server import ServerState

from hermes.mcp.server import http_server, sessions
from hermes.mcp.server.handlers import AppServer
from hermes.mcp.server.http_server import application

_TOKEN = "a-token-of-the-tests-0123456789"
_HEADERS = {
    "Authorization": f"Bearer {_TOKEN}",
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
}
_LIST = {"jsonrpc": "2.0", "id": 2, "method": "ping"}


def test_the_session_that_was_longest_away_makes_room_for_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sessions, "MOST", 3)
    app = app_with()

    async def work() -> list[int]:
        async with application(AppServer(app, toolsets=["files"]), _TOKEN, ()) as guard:
            transport = httpx2.ASGITransport(app=guard)
            async with httpx2.AsyncClient(
                transport=transport, base_url="http://127.0.0.1", headers=_HEADERS
            ) as http:

                async def begun() -> str:
                    answer = await http.post("/mcp", content=PING)
                    assert answer.status_code == 200, answer.text
                    return str(answer.headers["mcp-session-id"])

                async def used(session: str) -> int:
                    headers = {"mcp-session-id": session}
                    return (await http.post("/mcp", json=_LIST, headers=headers)).status_code

                first, second, third = [await begun() for _ in range(3)]
                assert await used(first) == 200
                fourth = await begun()
                # Nonsense makes no room.
                await http.post("/mcp", json=_LIST)
                return [await used(one) for one in (first, second, third, fourth)]

    assert run(work) == [200, 404, 200, 200]
    app.close()


@pytest.mark.parametrize(
    "mistake",
    [
        {"method": "POST", "content": b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}'},
        {"method": "POST", "content": b"{"},
        {"method": "PUT"},
        {"method": "DELETE", "headers": {"mcp-protocol-version": "2026-07-28"}},
    ],
)
def test_a_session_that_made_a_mistake_makes_room_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mistake: dict[str, Any]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sessions, "MOST", 2)
    app = app_with()

    async def work() -> list[int]:
        statuses = []
        async with application(AppServer(app, toolsets=["files"]), _TOKEN, ()) as guard:
            transport = httpx2.ASGITransport(app=guard)
            async with httpx2.AsyncClient(
                transport=transport, base_url="http://127.0.0.1", headers=_HEADERS
            ) as http:
                for _ in range(5):
                    begun = await http.post("/mcp", content=PING)
                    statuses.append(begun.status_code)
                    mine = {"mcp-session-id": begun.headers.get("mcp-session-id", "")}
                    headers = {**mine, **mistake.get("headers", {})}
                    await http.request(url="/mcp", **{**mistake, "headers": headers})
        return statuses

    assert run(work) == [200] * 5
    app.close()


@pytest.mark.parametrize("sent", [b"", b"POST /mcp HTTP/1.1\r\nHost: loc"])
def test_whoever_does_not_say_what_they_want_is_sent_away(
    sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "HEAD_SECONDS", 0.1)

    async def work() -> bytes:
        async with _listening() as listener:
            reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
            writer.write(sent)
            # Sent away, or this never ends.
            said = b""
            with contextlib.suppress(ConnectionError):
                said = await reader.read()
            writer.close()
            return said

    assert run(work) == b""


def test_a_request_that_came_is_served_and_the_next_has_its_own_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    valid_unicode = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"

    async def work() -> tuple[bytes, bytes]:
        async with _listening() as listener:
            reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
            writer.write(valid_unicode)
            first = await reader.readuntil(b"served")
            monkeypatch.setattr(http_server, "HEAD_SECONDS", 0.1)
            writer.write(valid_unicode[:-5])
            rest = await reader.read()
            writer.close()
            return first, rest

    first, rest = run(work)
    assert b"200 OK" in first
    assert rest == b""


class _Listener:
    """Connections of ours before an application that says whether the time still runs."""

    def __init__(self) -> None:
        self.port = 0
        self.state = ServerState()

    async def answer(self, scope: Any, receive: Any, send: Any) -> None:
        (one,) = self.state.connections
        assert isinstance(one, http_server.Connection)
        body = b"served" if one._limit is None else b"in a hurry"
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def _listening() -> AsyncIterator[_Listener]:
    listener = _Listener()
    config = uvicorn.Config(
        listener.answer, http=http_server.Connection, log_config=None, interface="asgi3"
    )
    config.load()
    server = await asyncio.get_running_loop().create_server(
        lambda: http_server.Connection(config=config, server_state=listener.state, app_state={}),
        "127.0.0.1",
        0,
    )
    async with server:
        listener.port = server.sockets[0].getsockname()[1]
        yield listener
