"""The guard by itself: names that were allowed, bodies that do not come, clients that go."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from tests.mcp.server.peers import run

from hermes.mcp.server import http_guard
from hermes.mcp.server.http_guard import GONE, Guard

TOKEN = "a-token-of-the-tests"


class Exchange:
    """One request, piece by piece, and what was answered."""

    def __init__(self, *pieces: bytes, host: str = "127.0.0.1", **scope: Any) -> None:
        self.scope = {
            "type": "http",
            "method": "POST",
            "path": "/mcp",
            "server": ("127.0.0.1", 80),
            "headers": [
                (b"host", host.encode()),
                (b"authorization", f"Bearer {TOKEN}".encode()),
            ],
            **scope,
        }
        self._pieces = list(pieces)
        self.gone = anyio.Event()
        self.status = 0
        self.body = b""

    async def receive(self) -> dict[str, Any]:
        if not self._pieces:
            await self.gone.wait()
            return {"type": "http.disconnect"}
        piece = self._pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(self._pieces)}

    async def send(self, message: Any) -> None:
        self.status = message.get("status", self.status)
        self.body += message.get("body", b"")


async def _echo(scope: Any, receive: Any, send: Any) -> None:
    message = await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": message["body"]})


def _status(made: Guard, exchange: Exchange) -> int:
    run(lambda: made(exchange.scope, exchange.receive, exchange.send))
    return exchange.status


def test_the_body_reaches_the_inside_whole() -> None:
    exchange = Exchange(b"one ", b"two")

    assert _status(Guard(_echo, TOKEN), exchange) == 200
    assert exchange.body == b"one two"


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("hermes.example", 200),
        ("HERMES.example:8443", 200),
        ("sub.hermes.example", 421),
        ("hermes.example.evil", 421),
        ("192.168.1.5", 200),
        ("192.168.1.5:80", 200),
        ("192.168.1.6", 421),
        ("localhost", 200),
        ("", 421),
    ],
)
def test_it_is_known_by_its_number_and_the_names_it_was_given(host: str, status: int) -> None:
    made = Guard(_echo, TOKEN, hosts=["Hermes.example"])
    server = ("192.168.1.5", 80)

    assert _status(made, Exchange(b"", host=host, server=server)) == status


def test_a_body_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_guard, "_BODY_SECONDS", 0.05)

    class Slow(Exchange):
        async def receive(self) -> dict[str, Any]:
            await anyio.sleep(0.01)
            return {"type": "http.request", "body": b".", "more_body": True}

    assert _status(Guard(_echo, TOKEN), Slow()) == 408


def test_a_request_that_is_broken_off_is_over() -> None:
    exchange = Exchange()
    exchange.gone.set()

    assert _status(Guard(_echo, TOKEN), exchange) == 400


def test_the_inside_learns_that_the_client_has_gone() -> None:
    seen: list[str] = []

    async def wait(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        scope[GONE].then(lambda: seen.append("called"))
        forget = scope[GONE].then(lambda: seen.append("forgotten"))
        forget()
        exchange.gone.set()
        seen.append((await receive())["type"])

    exchange = Exchange(b"{}")
    run(lambda: Guard(wait, TOKEN)(exchange.scope, exchange.receive, exchange.send))

    assert sorted(seen) == ["called", "http.disconnect"]


def test_everybody_can_be_sent_away() -> None:
    async def work() -> None:
        async def wait(scope: Any, receive: Any, send: Any) -> None:
            await receive()
            made.close()
            assert (await receive())["type"] == "http.disconnect"

        made = Guard(wait, TOKEN)
        exchange = Exchange(b"{}")
        with anyio.fail_after(5):
            await made(exchange.scope, exchange.receive, exchange.send)

    run(work)


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1#", "127.0.0.1#evil", "localhost/", "localhost\\x", "evil@localhost", "127.1"],
)
def test_a_name_with_more_than_a_name_in_it_is_none_of_ours(host: str) -> None:
    assert _status(Guard(_echo, TOKEN), Exchange(b"{}", host=host)) == 421


def test_a_request_that_says_twice_how_long_it_is_is_refused() -> None:
    exchange = Exchange(b"{}")
    exchange.scope["headers"] += [(b"content-length", b"2"), (b"transfer-encoding", b"chunked")]

    assert _status(Guard(_echo, TOKEN), exchange) == 400
