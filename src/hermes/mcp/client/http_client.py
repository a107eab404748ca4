"""HTTP transport: address, headers, authorization and response limits; URLs for a person's
browser.
"""

from __future__ import annotations

import ipaddress
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import MCP_DEFAULT_SSE_READ_TIMEOUT, MCP_DEFAULT_TIMEOUT

from hermes.core.errors import ConfigError
from hermes.mcp.client.settings import expand

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp.client._transport import TransportStreams

    from hermes.mcp.client.settings import Server


MAX_LENGTH = 4_000


def url_problem(url: str, *, server_url: str = "") -> str:
    """The reason why a URL may not be opened; empty when it may.

    It has to be https. Plain http is accepted on this machine, for a server on this machine.

    Args:
        server_url: The address of the server that sent the URL.
    """
    if len(url) > MAX_LENGTH:
        return f"it has {len(url)} characters"
    if not url.isascii() or any(c <= " " or c in '"<>\\^`{|}' or c == "\x7f" for c in url):
        return "it has characters that no address has"
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return "it can't be read"
    if parts.scheme not in ("https", "http"):
        return f"its scheme is {parts.scheme[:20] or 'missing'!r}, not https"
    if not host or parts.username is not None or parts.password is not None:
        return "it names no host, or a user"
    if any(mark in url for mark in ("$(", "$%7B", "`")):
        return "it looks like a command"
    if parts.scheme == "http" and not (
        is_local(host) and is_local(urlsplit(server_url).hostname or "")
    ):
        return "it is not encrypted (http)"
    if is_private(host) and not is_private(urlsplit(server_url).hostname or ""):
        return f"{host} is an address inside this network, and the server is outside of it"
    return ""


def is_local(host: str) -> bool:
    """Whether a host is the loopback interface."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_private(host: str) -> bool:
    """Whether a host name or address belongs to this machine or a private network."""
    if is_local(host):
        return True
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return host.endswith((".local", ".internal")) or "." not in host


def open_in_browser(url: str) -> bool:
    """Open a URL in the person's browser; False without a browser."""
    import webbrowser

    try:
        # `webbrowser` starts programs without a shell.
        return webbrowser.open(url)
    except (webbrowser.Error, OSError):
        return False


MAX_BYTES = 64 * 1024 * 1024
DELETE_SECONDS = 1.0
HEADERS = {"Accept-Encoding": "identity"}


async def limit_delete(request: httpx2.Request) -> None:
    """Request hook: a short timeout for the DELETE that ends a session."""
    if request.method == "DELETE":
        request.extensions["timeout"] = dict.fromkeys(
            ("connect", "read", "write", "pool"), DELETE_SECONDS
        )


async def limit_response(response: httpx2.Response) -> None:
    """Response hook: refuse compressed content, and limit the size of the body."""
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise httpx2.DecodingError(
            f"it sends compressed content ({encoding[:40]}), which was not asked for",
            request=response.request,
        )
    if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
        response.stream = _LimitedStream(response.stream, response.request)  # type: ignore[arg-type]


class _LimitedStream(httpx2.AsyncByteStream):
    """A response body of at most `MAX_BYTES`."""

    def __init__(self, stream: httpx2.AsyncByteStream, request: httpx2.Request) -> None:
        self._stream = stream
        self._request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for piece in self._stream:
            size += len(piece)
            if size > MAX_BYTES:
                raise httpx2.ReadError(
                    f"an answer grew past {MAX_BYTES >> 20} MiB", request=self._request
                )
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


@asynccontextmanager
async def http_streams(server: Server) -> AsyncIterator[TransportStreams]:
    """The streams of a connection over HTTP."""
    url = expand(server.url)
    if not url.startswith(("https://", "http://")):
        raise ConfigError(f"its url {url!r:.60} is no http address")
    headers = {name: expand(value) for name, value in server.headers.items()}
    for name, value in headers.items():
        if not name.isascii() or "\n" in name + value or "\r" in name + value:
            raise ConfigError(f"its header {name!r:.40} can't be sent")
    auth = None
    if "authorization" not in map(str.lower, headers):
        from hermes.mcp.client.auth.tokens import authentication

        auth = await authentication(server, url)
    times = httpx2.Timeout(MCP_DEFAULT_TIMEOUT, read=MCP_DEFAULT_SSE_READ_TIMEOUT)
    async with (
        httpx2.AsyncClient(
            headers={**HEADERS, **headers},
            timeout=times,
            auth=auth,
            event_hooks={"request": [limit_delete], "response": [limit_response]},
        ) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=MAX_BYTES) as streams,
    ):
        yield streams
