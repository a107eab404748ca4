"""Reaching a server over HTTP: its address, its headers, and who we are to it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import MCP_DEFAULT_SSE_READ_TIMEOUT, MCP_DEFAULT_TIMEOUT

from hermes.core.errors import ConfigError
from hermes.mcp.client import limits
from hermes.mcp.client.variables import filled

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp.client._transport import TransportStreams

    from hermes.mcp.client.settings import Server


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
        from hermes.mcp.client.auth.provider import authorisation

        auth = await authorisation(server, url)
    times = httpx2.Timeout(MCP_DEFAULT_TIMEOUT, read=MCP_DEFAULT_SSE_READ_TIMEOUT)
    async with (
        httpx2.AsyncClient(
            headers={**limits.HEADERS, **headers},
            timeout=times,
            auth=auth,
            event_hooks={"request": [limits.hasten], "response": [limits.limit]},
        ) as client,
        streamable_http_client(
            url, http_client=client, max_sse_event_size=limits.MOST_BYTES
        ) as streams,
    ):
        yield streams
