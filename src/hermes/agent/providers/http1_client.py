"""HTTP/1.1 client for model servers: h11 over asyncio streams, with keep-alive, without proxies.

Importing httpx2 and its async backend takes a third of a short run; h11 does the protocol in both
cases. `docs/decisions/http-client.md` has the figures. Behind a proxy httpx2 is used.
"""

from __future__ import annotations

import asyncio
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import h11

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator, Mapping
    from typing import Any

CONNECT_SECONDS = 20.0
_KEEP_ALIVE_SECONDS = 60.0
_MAX_IDLE = 8
_READ_BYTES = 64 * 1024
_MAX_HEAD_BYTES = 256 * 1024


class AddressError(ValueError):
    """A URL or a header that can't be sent."""


class ConnectError(OSError):
    """No connection to the server."""


class ClosedError(OSError):
    """The connection ended or broke the protocol in the middle of a request or response."""


class _Socket:
    """One connection and its protocol state."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.protocol = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MAX_HEAD_BYTES)
        self.idle_since = 0.0

    @property
    def reusable(self) -> bool:
        """Whether the server has kept it open."""
        age = asyncio.get_running_loop().time() - self.idle_since
        return (
            age < _KEEP_ALIVE_SECONDS
            and not self.reader.at_eof()
            and not self.writer.transport.is_closing()
        )

    async def event(self) -> Any:
        """The next event of the protocol."""
        try:
            while (event := self.protocol.next_event()) is h11.NEED_DATA:
                self.protocol.receive_data(await self.reader.read(_READ_BYTES))
        except (OSError, h11.RemoteProtocolError) as error:
            raise ClosedError(str(error) or type(error).__name__) from None
        return event

    def close(self) -> None:
        # Not `close`: nothing is left to send, and TLS would wait for the other side.
        self.writer.transport.abort()


class Response:
    """A response; its body is read with `chunks`."""

    def __init__(self, client: Http1Client, socket: _Socket, head: h11.Response) -> None:
        self.status_code: int = head.status_code
        self.headers: dict[str, str] = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers
        }
        self._client = client
        self._socket = socket
        self._closed = False

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body, decompressed; raises `ClosedError`."""
        encoding = self.headers.get("content-encoding", "identity").lower()
        # Asked for plain text, some proxies compress all the same.
        decoder = (
            zlib.decompressobj(zlib.MAX_WBITS | 32) if encoding in ("gzip", "deflate") else None
        )
        while type(event := await self._socket.event()) is not h11.EndOfMessage:
            if type(event) is not h11.Data:
                raise ClosedError("the connection was closed")
            data = bytes(event.data)
            if decoder is not None:
                try:
                    data = decoder.decompress(data)
                except zlib.error as error:
                    raise ClosedError(str(error)) from None
            if data:
                yield data
        self._closed = True
        self._client.release(self._socket)

    async def aclose(self) -> None:
        """Close the connection, unless the body was read to its end."""
        if not self._closed:
            self._closed = True
            self._socket.close()


class Http1Client:
    """Connections to one server, kept open between requests; for one event loop."""

    def __init__(self, base_url: str) -> None:
        """Nothing is opened yet; raises `AddressError`."""
        try:
            parts = urlsplit(base_url)
            port = parts.port
            host = parts.hostname or ""
            self._host = host if host.isascii() else host.encode("idna").decode()
        except ValueError as error:
            raise AddressError(str(error)) from None
        if parts.scheme not in ("http", "https") or not self._host:
            raise AddressError(f"no http or https address: {parts.scheme or base_url[:40]!r}")
        self._tls = parts.scheme == "https"
        self._port = port or (443 if self._tls else 80)
        self._path = parts.path.rstrip("/")
        host = f"[{self._host}]" if ":" in self._host else self._host
        self._headers = {"Host": host if port is None else f"{host}:{port}"}
        if parts.username:
            from base64 import b64encode
            from urllib.parse import unquote

            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._headers["Authorization"] = f"Basic {b64encode(login.encode()).decode()}"
        self._idle: list[_Socket] = []

    async def post(self, path: str, body: bytes, headers: Mapping[str, str]) -> Response:
        """Send a request; its response, with the body still to be read."""
        fields = {"Accept-Encoding": "identity", **headers, **self._headers}
        fields["Content-Length"] = str(len(body))
        try:
            head = h11.Request(
                method="POST", target=f"{self._path}{path}".encode(), headers=list(fields.items())
            )
        except (h11.LocalProtocolError, ValueError) as error:
            raise AddressError(str(error)) from None
        socket = await self._socket()
        try:
            protocol = socket.protocol
            socket.writer.write(protocol.send(head) or b"")
            socket.writer.write(protocol.send(h11.Data(data=body)) or b"")
            socket.writer.write(protocol.send(h11.EndOfMessage()) or b"")
            # A server may answer and close before it has read the whole body.
            with suppress(OSError):
                await socket.writer.drain()
            while type(event := await socket.event()) is not h11.Response:
                if type(event) is not h11.InformationalResponse:
                    raise ClosedError("the connection was closed without a response")
        except BaseException:
            socket.close()
            raise
        return Response(self, socket, event)

    async def _socket(self) -> _Socket:
        while self._idle:
            socket = self._idle.pop()
            if socket.reusable:
                return socket
            socket.close()
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                reader, writer = await asyncio.open_connection(
                    self._host,
                    self._port,
                    ssl=_ssl_context() if self._tls else None,
                    # A race between addresses drops the winner's socket when it is cancelled.
                    happy_eyeballs_delay=None if _is_address(self._host) else 0.25,
                )
        except TimeoutError:
            raise ConnectError(f"no connection within {CONNECT_SECONDS:g} s") from None
        except OSError as error:
            raise ConnectError(str(error) or type(error).__name__) from None
        return _Socket(reader, writer)

    def release(self, socket: _Socket) -> None:
        """Keep a connection for the next request, if the server keeps it open."""
        protocol = socket.protocol
        if protocol.our_state is h11.DONE and protocol.their_state is h11.DONE:
            protocol.start_next_cycle()
            socket.idle_since = asyncio.get_running_loop().time()
            self._idle.append(socket)
            if len(self._idle) > _MAX_IDLE:
                self._idle.pop(0).close()
        else:
            socket.close()

    async def aclose(self) -> None:
        """Close the idle connections."""
        idle, self._idle = self._idle, []
        for socket in idle:
            socket.close()
        # The transports close in the next iteration of the loop.
        await asyncio.sleep(0)


def _is_address(host: str) -> bool:
    """Whether a host is an IP address, so that there is nothing to choose from."""
    return ":" in host or host.replace(".", "").isdecimal()


_context: ssl.SSLContext | None = None


def _ssl_context() -> ssl.SSLContext:
    """One for all connections: reading the certificates takes longer than a request."""
    global _context
    if _context is None:
        import httpcore2

        _context = httpcore2.default_ssl_context()
    return _context
