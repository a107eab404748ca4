"""Clients over HTTP: the streamable transport of both eras, behind the guard.

By default only this machine is served. Other machines can reach it only where that was asked for;
what is said is not encrypted, so a proxy that does that belongs in front.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import signal
import socket
from typing import TYPE_CHECKING, NamedTuple

import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from hermes.core.errors import HermesError
from hermes.mcp.server import sessions
from hermes.mcp.server.attending import Attended
from hermes.mcp.server.connection import Connection
from hermes.mcp.server.door import Door
from hermes.mcp.server.guard import MOST_BYTES, PATH, Guard

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from hermes.mcp.server.token import Token
    from hermes.runtime.app import App

_MOST_REQUESTS = 512
_END_SECONDS = 3


class Address(NamedTuple):
    """Where to listen."""

    host: str
    port: int

    @classmethod
    def read(cls, text: str) -> Address:
        """`HOST:PORT`, `[::1]:PORT`, `:PORT` or `PORT`; this machine where no host is named."""
        host, _, port = text.strip().rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if not port.isascii() or not port.isdigit() or len(port) > 5 or int(port) > 65535:
            raise HermesError(f"{text!r:.80} is no HOST:PORT", hint="Such as 127.0.0.1:8765.")
        return cls(host or "127.0.0.1", int(port))


def serve_http(
    app: App,
    address: Address,
    token: Token,
    *,
    toolsets: Sequence[str] | None = None,
    defer: bool = True,
    services: Mapping[str, Any] | None = None,
    remote: bool = False,
    hosts: Iterable[str] = (),
    listening: Callable[[str], object] | None = None,
) -> None:
    """Serve clients over HTTP until a signal ends us.

    Args:
        app: What is served.
        address: Where to listen; port 0 takes a free one.
        token: What clients have to know.
        toolsets: Those to offer; those of the settings if None.
        defer: Whether many tools are offered through `tool_search`.
        services: More that handlers can reach.
        remote: Whether other machines may be served.
        hosts: Names that this server is also known by.
        listening: Told the address once clients can come.
    """
    sockets = bound(address, remote=remote)
    try:
        door = Door(app, toolsets=toolsets, defer=defer, services=services)
        # Whoever asks knows it; the logs and results need not.
        app.runtime.redactor.add(token.secret)
        known = {address.host, *hosts}
        asyncio.run(_serve(door, sockets, token.secret, known, listening))
    finally:
        for each in sockets:
            each.close()


def bound(address: Address, *, remote: bool) -> list[socket.socket]:
    """Sockets that listen there: one for each address that the host has."""
    try:
        found = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "no name is spelled like that"
        raise HermesError(f"{address.host[:80]} is no host: {why}") from None
    numbers = dict.fromkeys((family, place[0]) for family, _, _, _, place in found)
    if not remote and not all(_is_here(number) for _, number in numbers):
        raise HermesError(
            f"{address.host} can be reached from other machines",
            hint="Add --allow-remote if that is meant; 127.0.0.1 is this machine alone.",
        )
    sockets: list[socket.socket] = []
    port = address.port
    try:
        for family, number in numbers:
            sockets.append(_listening(family, str(number), port))
            port = sockets[0].getsockname()[1]
    except OSError as error:
        for each in sockets:
            each.close()
        raise HermesError(
            f"{address.host}:{address.port} can't be listened on: {error.strerror}"
        ) from None
    return sockets


def _is_here(number: str | int) -> bool:
    return ipaddress.ip_address(str(number).partition("%")[0]).is_loopback


def _listening(family: int, number: str, port: int) -> socket.socket:
    # With the protocol named: only then does the loop send small answers without delay.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            # The other family has a socket of its own.
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind((number, port))
        made.listen(128)
    except OSError:
        made.close()
        raise
    return made


class _Listener(uvicorn.Server):
    """Uvicorn, with the signals left to us: it would raise them again before we have ended."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextlib.asynccontextmanager
async def application(door: Door, secret: str, hosts: Iterable[str]) -> AsyncIterator[Guard]:
    """The door as an ASGI application, guarded; open as long as this lasts."""
    manager = StreamableHTTPSessionManager(
        door.server,
        session_idle_timeout=sessions.IDLE_SECONDS,
        max_request_body_size=MOST_BYTES,
        # Not met in practice: those that are away make room before.
        max_sessions=2 * sessions.MOST,
    )
    async with manager.run():
        attended = Attended(manager, door.sessions, most=sessions.MOST)
        yield Guard(attended, secret, hosts=hosts)


async def _serve(
    door: Door,
    sockets: list[socket.socket],
    secret: str,
    hosts: Iterable[str],
    listening: Callable[[str], object] | None,
) -> None:
    async with application(door, secret, hosts) as guard:
        server = _Listener(
            uvicorn.Config(
                guard,
                http=Connection,
                log_config=None,
                access_log=False,
                lifespan="off",
                ws="none",
                # Who is asking is who is connected, whatever a header says.
                proxy_headers=False,
                server_header=False,
                limit_concurrency=_MOST_REQUESTS,
                timeout_keep_alive=30,
                timeout_graceful_shutdown=_END_SECONDS,
            )
        )
        _on_signals(server, guard)
        if listening is not None:
            listening(_url(sockets[0]))
        await server.serve(sockets)


def _on_signals(server: _Listener, guard: Guard) -> None:
    """Each signal ends in good order."""

    def stop() -> None:
        # Everybody is sent away on purpose; that is not worth a line each.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        server.should_exit = True
        guard.close()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):
            loop.add_signal_handler(number, stop)


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}{PATH}" if ":" in host else f"http://{host}:{port}{PATH}"
