"""HTTP server: sockets, signals and shutdown; the SDK's transport with checks of request ids,
disconnects and single requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import logging
import signal
import socket
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import h11
import msgspec
import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import INVALID_REQUEST
from uvicorn.protocols.http.h11_impl import H11Protocol

from hermes.core.errors import HermesError
from hermes.core.json_text import to_json
from hermes.mcp.server import sessions
from hermes.mcp.server.handlers import AppServer
from hermes.mcp.server.http_guard import BODY, MOST_BYTES, PATH, Guard, answer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from hermes.mcp.server.http_guard import Message, Receive, Scope, Send, Token
    from hermes.runtime.app import App


class _Head(msgspec.Struct):
    id: int | str | msgspec.UnsetType = msgspec.UNSET
    method: str | msgspec.UnsetType = msgspec.UNSET


_decoded = msgspec.json.Decoder(_Head).decode


class InvalidRequestIdError(Exception):
    """A request with an invalid id; `body` is the error response."""

    def __init__(self, number: int | str | None, why: str) -> None:
        super().__init__(why)
        error = {"code": INVALID_REQUEST, "message": why}
        self.body = to_json({"jsonrpc": "2.0", "id": number, "error": error}).encode()


class RequestIds:
    """The numbers under which the clients of each session wait for an answer."""

    def __init__(self) -> None:
        self._open: set[tuple[str, int | str]] = set()

    @contextmanager
    def waiting(self, session: str, body: bytes) -> Iterator[Callable[[], None]]:
        """While a request of a session is answered; raises `InvalidRequestIdError`.

        Yields a function that marks it as answered earlier.
        """
        number = _number(body)
        if number is None or not session:
            yield lambda: None
            return
        key = session, number
        if key in self._open:
            raise InvalidRequestIdError(number, "another request under that id is not answered yet")
        self._open.add(key)
        ended = False

        def answered() -> None:
            nonlocal ended
            if not ended:
                ended = True
                self._open.discard(key)

        try:
            yield answered
        finally:
            answered()


def _number(body: bytes) -> int | str | None:
    """The id of a request; None for a notification or a response."""
    try:
        head = _decoded(body)
    except (ValueError, RecursionError):
        if _is_asked_wrongly(body):
            raise InvalidRequestIdError(
                None, "an id is a number without a fraction, or a text"
            ) from None
        # No message at all, which is found out elsewhere.
        return None
    if head.method is msgspec.UNSET or head.id is msgspec.UNSET:
        return None
    return head.id


def _is_asked_wrongly(body: bytes) -> bool:
    try:
        value: Any = json.loads(body)
    except (ValueError, RecursionError):
        return False
    if not isinstance(value, dict) or not isinstance(value.get("method"), str):
        return False
    number = value.get("id", 0)
    return isinstance(number, bool) or not isinstance(number, (int, str))


_SESSION = b"mcp-session-id"
# From where a stream that broke off is to go on. Nothing that was said is kept: it begins anew.
_LAST = b"last-event-id"


class HttpTransport:
    """The transport as an application; of `most` sessions, those that are away make room."""

    def __init__(
        self, manager: StreamableHTTPSessionManager, known: sessions.Sessions, *, most: int
    ) -> None:
        self._manager = manager
        self._sessions = known
        self._most = most
        self._numbers = RequestIds()
        # The sessions there are, that which was longest away first; and how many requests each
        # waits for.
        self._present: dict[str, None] = {}
        self._waiting: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        headers = [pair for pair in scope["headers"] if pair[0] != _LAST]
        scope = {**scope, "headers": headers}
        named = next((value.decode("latin-1") for name, value in headers if name == _SESSION), "")
        if not named and b'"initialize"' in scope[BODY]:
            await self._make_room(scope)
        self._waiting[named] += 1
        statuses: list[int] = []
        try:
            await self._served(named, scope, receive, self._watched(named, statuses, send))
        finally:
            self._waiting[named] -= 1
            if not self._waiting[named]:
                del self._waiting[named]
        refused = any(status >= 400 and status != 404 for status in statuses)
        if scope["method"] == "DELETE" and named and not refused:
            self._present.pop(named, None)
            await self._sessions.close(sessions.key_of_id(named))

    async def _served(self, named: str, scope: Scope, receive: Receive, send: Send) -> None:
        key = sessions.key_of_id(named) if named else ""
        if scope["method"] == "GET" and key:
            with self._sessions.listening(key):
                await self._manager.handle_request(scope, receive, send)
            return
        try:
            with self._numbers.waiting(key, scope[BODY]) as answered:

                async def told(message: Message) -> None:
                    if message["type"] == "http.response.body" and not message.get("more_body"):
                        # Before the client knows, for then it may ask again.
                        answered()
                    await send(message)

                await self._manager.handle_request(scope, receive, told)
        except InvalidRequestIdError as error:
            await answer(400, error.body, send)

    def _watched(self, named: str, statuses: list[int], send: Send) -> Send:
        """Observe a response: it starts a session, belongs to one, or its session is unknown.

        An error response also belongs to its session.
        """

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = dict(message.get("headers") or ()).get(_SESSION, b"").decode("latin-1")
                which = named or given
                statuses.append(message["status"])
                known = given or which in self._present
                self._present.pop(which, None)
                if known and message["status"] != 404:
                    self._present[which] = None
            await send(message)

        return told

    async def _make_room(self, scope: Scope) -> None:
        """Send those off that were longest away, while there are too many."""
        while len(self._present) >= self._most:
            one = next((one for one in self._present if one not in self._waiting), None)
            if one is None:
                return
            del self._present[one]
            headers = [(_SESSION, one.encode("latin-1"))]
            await self._manager.handle_request(
                {**scope, "method": "DELETE", "headers": headers}, _nothing, _unheard
            )
            await self._sessions.close(sessions.key_of_id(one))


async def _nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _unheard(message: Message) -> None:
    """Discards a response without a waiting client."""


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
