"""HTTP guard: token, Host, Origin, size and rate checks in front of the protocol."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
import os
import re
import stat
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from hermes.core.errors import ConfigError
from hermes.core.paths import home_path, write_private

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, MutableMapping
    from typing import Any


VARIABLE = "HERMES_MCP_TOKEN"
# Shorter ones can be guessed.
LEAST = 16
_MOST = 4096


class Token(NamedTuple):
    """The secret, where it comes from, and whether it was made just now."""

    secret: str
    source: str
    made: bool = False


def usual_file() -> str:
    """Where the token is kept that we make ourselves."""
    return home_path("mcp", "server-token")


def find_token(path: str | None = None) -> Token:
    """The token to ask clients for; made, and kept for its owner only, where there is none.

    Args:
        path: The file that holds it; the environment and the usual file are not looked at then.
    """
    if path is None and os.environ.get(VARIABLE):
        return Token(_checked(os.environ[VARIABLE], VARIABLE), VARIABLE)
    file = path or usual_file()
    try:
        return Token(_checked(_read(file), file), file)
    except FileNotFoundError:
        if path is not None:
            raise ConfigError(f"the token file {path} does not exist") from None
    import secrets

    secret = secrets.token_urlsafe(32)
    write_private(file, f"{secret}\n".encode())
    return Token(secret, file, made=True)


def same(secret: str, given: bytes) -> bool:
    """Whether that is the secret, in a time that says nothing of it."""
    return hmac.compare_digest(secret.encode(), given)


def _read(path: str) -> str:
    try:
        # Opened first, so that what is looked at is what is read.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ConfigError(f"the token file {path} can't be read: {error.strerror}") from None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise ConfigError(f"the token file {path} is no file")
        if os.name == "posix" and status.st_mode & 0o077:
            raise ConfigError(f"others can read the token file {path}", hint=f"chmod 600 {path}")
        return os.read(handle, _MOST + 1).decode("utf-8", "replace")
    finally:
        os.close(handle)


def _checked(text: str, source: str) -> str:
    secret = text.strip()
    if not LEAST <= len(secret) <= _MOST or not all("!" <= c <= "~" for c in secret):
        raise ConfigError(
            f"the token in {source} must be {LEAST} or more plain characters without spaces",
            hint=f"Take it away, and one is made in {usual_file()}.",
        )
    return secret


if TYPE_CHECKING:
    Message = MutableMapping[str, Any]
    Scope = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]
    Application = Callable[[Scope, Receive, Send], Awaitable[None]]

PATH = "/mcp"
# Where in a request's scope it says that its client has gone.
GONE = "hermes.gone"
# Where it has the whole body.
BODY = "hermes.body"
MOST_BYTES = 16 * 1024 * 1024
_BODY_SECONDS = 30.0
_HOST = re.compile(rb"[A-Za-z0-9._:%\[\]-]+")


class RefusedError(Exception):
    """A request that is not let in: the status, and why."""

    def __init__(self, status: int, why: str, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(why)
        self.status = status
        self.headers = headers


class Disconnect:
    """Tells whether the sender of a request has disconnected."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._callbacks: list[Callable[[], object]] = []

    def then(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call back when it happens; gives the function that takes that back."""
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback)

    def set(self) -> None:
        """It has happened."""
        self._event.set()
        for callback in tuple(self._callbacks):
            callback()

    async def wait(self) -> None:
        """Until it happens."""
        await self._event.wait()


class Guard:
    """An ASGI application in front of another one."""

    def __init__(
        self,
        inner: Application,
        token: str,
        *,
        hosts: Iterable[str] = (),
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._inner = inner
        self._token = token
        self._hosts = frozenset(host.lower().rstrip(".") for host in hosts)
        self._most = most_bytes
        self._open: set[Disconnect] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            raise RuntimeError(f"only HTTP is served, not {scope['type']}")
        try:
            self._check(scope)
            body = await self._body(scope, receive)
        except RefusedError as refused:
            await _refuse(refused, send)
            return
        scope[BODY] = body
        gone = scope[GONE] = Disconnect()
        self._open.add(gone)
        watching = asyncio.ensure_future(_watch(receive, gone))
        unread = [body]

        async def replay() -> Message:
            if unread:
                return {"type": "http.request", "body": unread.pop(), "more_body": False}
            await gone.wait()
            return {"type": "http.disconnect"}

        try:
            await self._inner(scope, replay, send)
        finally:
            watching.cancel()
            self._open.discard(gone)

    def close(self) -> None:
        """Let go of everybody who waits."""
        for gone in tuple(self._open):
            gone.set()

    def _check(self, scope: Scope) -> None:
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value)
        if b"transfer-encoding" in headers and b"content-length" in headers:
            # Whoever stands in between might see two requests where we see one.
            raise RefusedError(400, "it says in two ways how long it is")
        if not self._is_ours(_only(headers, b"host"), scope):
            raise RefusedError(421, "this is no name of this server")
        origin = _only(headers, b"origin")
        if origin is not None and not self._is_ours_page(origin, scope):
            raise RefusedError(403, "pages from there may not ask")
        scheme, _, credentials = (_only(headers, b"authorization") or b"").partition(b" ")
        if scheme.lower() != b"bearer" or not same(self._token, credentials.strip()):
            raise RefusedError(
                401, "send the token: Authorization: Bearer …", (b"www-authenticate", b"Bearer")
            )
        if scope["path"] != PATH:
            raise RefusedError(404, f"there is only {PATH}")

    def _is_ours(self, host: bytes | None, scope: Scope) -> bool:
        plain = host is not None and _HOST.fullmatch(host) is not None
        name = _name(f"//{host.decode()}") if host is not None and plain else None
        return name is not None and self._is_known(name, scope)

    def _is_ours_page(self, origin: bytes, scope: Scope) -> bool:
        text = origin.decode("latin-1")
        name = _name(text) if text.startswith(("http://", "https://")) else None
        return name is not None and self._is_known(name, scope)

    def _is_known(self, name: str, scope: Scope) -> bool:
        if name == "localhost" or name in self._hosts:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        # By number nobody can pretend to be somebody else.
        here = scope.get("server") or ("", 0)
        return address.is_loopback or str(address) == str(here[0])

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        """The whole body."""
        lengths = [value for name, value in scope["headers"] if name == b"content-length"]
        if any(not value.isdigit() or int(value) > self._most for value in lengths):
            raise RefusedError(413, f"more than {self._most} bytes")
        body = bytearray()
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        raise RefusedError(400, "the request was broken off")
                    body += message.get("body", b"")
                    if len(body) > self._most:
                        raise RefusedError(413, f"more than {self._most} bytes")
                    if not message.get("more_body", False):
                        return bytes(body)
        except TimeoutError:
            raise RefusedError(408, "the request came too slowly") from None


def _only(headers: dict[bytes, list[bytes]], name: bytes) -> bytes | None:
    """The one value of a header. Of two, another program might believe the other one."""
    values = headers.get(name, [])
    if len(values) > 1:
        raise RefusedError(400, f"{name.decode()} is there more than once")
    return values[0] if values else None


def _name(url: str) -> str | None:
    """The host in an address; None where it has more than a host and a port."""
    try:
        parts = urlsplit(url)
        # Asked for, since that is what finds a port that is none.
        parts.port  # noqa: B018
    except ValueError:
        return None
    more = parts.path or parts.query or parts.fragment or "@" in parts.netloc
    return parts.hostname.rstrip(".") if parts.hostname and not more else None


async def _watch(receive: Receive, gone: Disconnect) -> None:
    with contextlib.suppress(asyncio.CancelledError):
        while (await receive())["type"] != "http.disconnect":
            pass
        gone.set()


async def _refuse(refused: RefusedError, send: Send) -> None:
    from hermes.core.json_text import to_json

    body = to_json({"error": str(refused)}).encode()
    # What is left of its body is not worth waiting for.
    close = (b"connection", b"close")
    await answer(refused.status, body, send, close, *refused.headers)


async def answer(status: int, body: bytes, send: Send, *headers: tuple[bytes, bytes]) -> None:
    """Answer a request with a piece of JSON."""
    about = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        *headers,
    ]
    await send({"type": "http.response.start", "status": status, "headers": about})
    await send({"type": "http.response.body", "body": body})
