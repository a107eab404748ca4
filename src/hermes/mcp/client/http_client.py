"""HTTP transport: address, headers, authorization and response limits of a server on the
network.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import MCP_DEFAULT_SSE_READ_TIMEOUT, MCP_DEFAULT_TIMEOUT

from hermes.core.errors import ConfigError
from hermes.mcp.client.settings import filled

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp.client._transport import TransportStreams

    from hermes.mcp.client.settings import Server


MOST_BYTES = 64 * 1024 * 1024
GOODBYE_SECONDS = 1.0
# Sent with each request.
HEADERS = {"Accept-Encoding": "identity"}


async def hasten(request: httpx2.Request) -> None:
    """A hook for requests: a goodbye is said, and not waited for long."""
    if request.method == "DELETE":
        request.extensions["timeout"] = dict.fromkeys(
            ("connect", "read", "write", "pool"), GOODBYE_SECONDS
        )


async def limit(response: httpx2.Response) -> None:
    """A hook for responses, before anything of their content is read."""
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise httpx2.DecodingError(
            f"it sends what is compressed ({encoding[:40]}), which was not asked for",
            request=response.request,
        )
    if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
        response.stream = _Limited(response.stream, response.request)  # type: ignore[arg-type]


class _Limited(httpx2.AsyncByteStream):
    """The bytes of a response, up to a limit."""

    def __init__(self, stream: httpx2.AsyncByteStream, request: httpx2.Request) -> None:
        self._stream = stream
        self._request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for piece in self._stream:
            size += len(piece)
            if size > MOST_BYTES:
                raise httpx2.ReadError(
                    f"an answer grew past {MOST_BYTES >> 20} MiB", request=self._request
                )
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


@asynccontextmanager
async def http_streams(server: Server) -> AsyncIterator[TransportStreams]:
    """Both directions of a connection over HTTP."""
    url = filled(server.url)
    if not url.startswith(("https://", "http://")):
        raise ConfigError(f"its url {url!r:.60} is no http address")
    headers = {name: filled(value) for name, value in server.headers.items()}
    for name, value in headers.items():
        if not name.isascii() or "\n" in name + value or "\r" in name + value:
            raise ConfigError(f"its header {name!r:.40} can't be sent")
    auth = None
    if "authorization" not in map(str.lower, headers):
        from hermes.mcp.client.auth.bearer import authorisation

        auth = await authorisation(server, url)
    times = httpx2.Timeout(MCP_DEFAULT_TIMEOUT, read=MCP_DEFAULT_SSE_READ_TIMEOUT)
    async with (
        httpx2.AsyncClient(
            headers={**HEADERS, **headers},
            timeout=times,
            auth=auth,
            event_hooks={"request": [hasten], "response": [limit]},
        ) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=MOST_BYTES) as streams,
    ):
        yield streams
