"""Finding out which protocol a server speaks, without waiting long for one that says nothing.

The SDK asks `server/discover` first and waits ten seconds for the answer. Servers of the older
protocol answer with an error, and some not at all. So one that is silent for a moment is sent a
`ping`, which both protocols allow at any time: a server that answers this and not the other is
there, and old. One that answers neither may only be slow to start; it gets a little longer, and is
greeted in the old way then. Should it turn out to be new after all, it says so, and the SDK asks
again.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import anyio
import mcp_types as types
from mcp_types import METHOD_NOT_FOUND
from pydantic import ValidationError

from mcp import Client, MCPError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from contextlib import AsyncExitStack
    from typing import Any

    from mcp import ClientSession

    Discover = Callable[[str], Coroutine[Any, Any, dict[str, Any]]]

# How long a server is silent before it is pinged; how long it has for its answer once it has
# answered that; and how long altogether.
_MOMENT_SECONDS = 0.5
_AFTER_PING_SECONDS = 0.25
_LONGEST_SECONDS = 3.0


class GreetingClient(Client):
    """The SDK's client, quick to find out that a server is of the older kind."""

    async def _build_session(self, exit_stack: AsyncExitStack) -> ClientSession:
        session = await super()._build_session(exit_stack)
        session.send_discover = _quickly(session, session.send_discover)  # type: ignore[method-assign, assignment]
        return session


def _quickly(session: ClientSession, discover: Discover) -> Discover:
    async def found(version: str) -> dict[str, Any]:
        asked = asyncio.ensure_future(discover(version))
        try:
            async with asyncio.timeout(_LONGEST_SECONDS):
                await asyncio.wait([asked], timeout=_MOMENT_SECONDS)
                if not asked.done():
                    ping = asyncio.ensure_future(_pinged(session))
                    # Left alone: taking it back would be one more thing to understand.
                    await asyncio.wait([asked, ping], return_when=asyncio.FIRST_COMPLETED)
                    await asyncio.wait([asked], timeout=_AFTER_PING_SECONDS)
        except TimeoutError:
            # It may be starting still.
            pass
        finally:
            answered = asked.done()
            asked.cancel()
        if answered:
            return asked.result()
        raise MCPError(METHOD_NOT_FOUND, "server/discover was not answered")

    return found


async def _pinged(session: ClientSession) -> dict[str, Any]:
    """Wait until the server says something to a ping, whatever it is, or is gone."""
    try:
        await session.send_request(types.PingRequest(), types.EmptyResult)
    except (MCPError, ValidationError, RuntimeError, anyio.ClosedResourceError):
        return {}
    return {}
