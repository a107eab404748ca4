"""HTTP server: sockets, signals and shutdown around the streamable HTTP transport."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import signal
import socket
from typing import TYPE_CHECKING, NamedTuple

import h11
import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from uvicorn.protocols.http.h11_impl import H11Protocol

from hermes.core.errors import HermesError
from hermes.mcp.server import sessions
from hermes.mcp.server.handlers import AppServer
from hermes.mcp.server.http_guard import MOST_BYTES, PATH, Guard
from hermes.mcp.server.http_transport import HttpTransport

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from hermes.mcp.server.http_guard import Token
    from hermes.runtime.app import App


# How long the head of a request may take, from the connection or from its first byte.
HEAD_SECONDS = 10.0


class Connection(H11Protocol):
    """A connection that is ended when the head of a request does not come in time."""

    _limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the idle timer."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Something came."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """They have gone."""
        self._forget()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Have the time run while the head of a request is awaited."""
        if not self._awaits():
            self._forget()
        elif self._limit is None:
            self._limit = self.loop.call_later(HEAD_SECONDS, self._too_slow)

    def _awaits(self) -> bool:
        # Resting between two requests has a limit of its own.
        return self.conn.their_state is h11.IDLE and self.timeout_keep_alive_task is None

    def _forget(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None

    def _too_slow(self) -> None:
        self._limit = None
        if self._awaits():
            self.transport.close()


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
    """Serve clients over HTTP until a signal.

    Args:
        app: The App with the tools.
        address: Where to listen; port 0 takes a free one.
        token: The token that clients have to send.
        toolsets: The toolsets to offer; those of the settings if None.
        defer: Whether many tools are offered through `tool_search`.
        services: More services for handlers.
        remote: Whether other machines may connect.
        hosts: More host names of this server.
        listening: Called with the address once clients can connect.
    """
    sockets = bound(address, remote=remote)
    try:
        door = AppServer(app, toolsets=toolsets, defer=defer, services=services)
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
async def application(door: AppServer, secret: str, hosts: Iterable[str]) -> AsyncIterator[Guard]:
    """The door as an ASGI application, guarded; open as long as this lasts."""
    manager = StreamableHTTPSessionManager(
        door.server,
        session_idle_timeout=sessions.IDLE_SECONDS,
        max_request_body_size=MOST_BYTES,
        # Not met in practice: those that are away make room before.
        max_sessions=2 * sessions.MOST,
    )
    async with manager.run():
        attended = HttpTransport(manager, door.sessions, most=sessions.MOST)
        yield Guard(attended, secret, hosts=hosts)


async def _serve(
    door: AppServer,
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
