"""Tool list of a connected server: fetched page by page, and fetched again when it changes."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, TypeVar

import anyio
from mcp_types import METHOD_NOT_FOUND
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from hermes.core.json_text import to_json
from hermes.mcp.client.errors import connect_trouble
from hermes.mcp.client.listing import MOST_TOOLS, TROUBLE, Listing, launch_digest
from mcp import MCPError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine
    from typing import Any

    import mcp_types as types

    from hermes.mcp.client.sdk_compat import Wire
    from hermes.mcp.client.server_log import Journal
    from hermes.mcp.client.settings import Server
    from mcp import Client


async def pages(ask: Callable[..., Any], most: int) -> AsyncIterator[Any]:
    """Each page of a list, up to `most`; a server that leads back to a page has no more.

    Args:
        ask: Gives the page at a `cursor`; the first one where that is None.
    """
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(most):
        page = await ask(cursor=cursor)
        yield page
        cursor = page.next_cursor
        if not cursor or cursor in seen:
            return
        seen.add(cursor)


# How many tools are looked at, to find those that are wanted; and how much they may say: one of
# them, and all that are kept.
_MOST_LISTED = 20_000
_MOST_CHARS = 256_000
_MOST_CHARS_IN_ALL = 16_000_000


async def listing_of(client: Client, wire: Wire, server: Server) -> Listing:
    """What the server says it has: its tools as it wrote them, odd ones too."""
    capabilities = client.server_capabilities
    tools: list[Any] = []
    wire.take_tools()
    known: set[str] = set()
    async for page in pages(client.list_tools, _MOST_LISTED if capabilities.tools else 0):
        tools += wire.take_tools()
        known |= {tool.name for tool in page.tools}
        if len(tools) >= _MOST_LISTED:
            break
    # What a tool promises of its results is looked at by us, and never a reason to lose one.
    client.session.validate_tool_result = _nothing_wrong  # type: ignore[method-assign]
    info = client.server_info
    kept = _kept(tools, server)
    return Listing(
        launch_digest(server),
        [_marked(tool, known) for tool in kept],
        beyond=len(tools) - len(kept),
        resources=capabilities.resources is not None,
        prompts=capabilities.prompts is not None,
        legacy=client.protocol_version not in MODERN_PROTOCOL_VERSIONS,
        instructions=client.instructions or "",
        version=f"{info.name} {info.version}" if info is not None else "",
    )


def _kept(tools: list[Any], server: Server) -> list[Any]:
    """As many of a server's tools as it may have, those first that the settings want."""
    if len(tools) > MOST_TOOLS:
        wanted = [tool for tool in tools if isinstance(tool, dict) and _is_wanted(tool, server)]
        tools = wanted[:MOST_TOOLS]
    kept = []
    left = _MOST_CHARS_IN_ALL
    for tool in tools:
        size = len(to_json(tool))
        if size > _MOST_CHARS and isinstance(tool, dict):
            name = tool.get("name")
            tool = {"name": name, TROUBLE: f"its definition has {size} characters"}
            size = 0
        left -= size
        if left < 0:
            break
        kept.append(tool)
    return kept


def _is_wanted(tool: dict[str, Any], server: Server) -> bool:
    name = tool.get("name")
    return isinstance(name, str) and server.wants(name)


def _marked(tool: Any, known: set[str]) -> Any:
    """A tool that the SDK left out: it names headers that can't be sent, so it can't be called."""
    name = tool.get("name") if isinstance(tool, dict) else None
    if isinstance(name, str) and name and name not in known:
        return {**tool, TROUBLE: "x-mcp-header names what can't be a header"}
    return tool


async def _nothing_wrong(name: str, result: types.CallToolResult) -> None:
    """In place of the SDK's check, which would throw a usable result away."""


SETTLE_SECONDS = 0.05
# The longest pause before a server is asked again whose tools never stop changing.
_STORM_SECONDS = 30.0
# How long after the end of a stream of changes another one is asked for: at first, and at most.
LISTEN_SECONDS = 1.0
_LISTEN_MOST = 60.0

_T = TypeVar("_T")


class Staying:
    """What wakes the connection to one server: a change there, or its end."""

    def __init__(self, server: Server, journal: Journal) -> None:
        self._server = server
        self._journal = journal
        self._stirred = asyncio.Event()
        # The connection of now is lost or dropped.
        self._over = asyncio.Event()
        self._stale = False

    def begin(self) -> None:
        """A new connection is made."""
        self._stale = False
        self._stirred.clear()
        self._over.clear()

    def end(self) -> None:
        """The connection is over."""
        self._over.set()
        self._stirred.set()

    def changed(self) -> None:
        """The server's tools are others."""
        self._stale = True
        self._stirred.set()

    async def stay(
        self, client: Client, wire: Wire, take: Callable[[Listing], None], *, listen: bool
    ) -> None:
        """Until the end of the connection; `take` is given what the server has each time.

        Args:
            listen: It tells of changes only whoever asks to be told.
        """
        listening = asyncio.ensure_future(self._listen(client)) if listen else None
        pause, asked = SETTLE_SECONDS, 0.0
        try:
            while not self._over.is_set():
                await self._stirred.wait()
                self._stirred.clear()
                if self._stale:
                    # Servers announce one change several times, and some never stop.
                    often = time.monotonic() - asked < 2 * pause + 1
                    pause = min(2 * pause, _STORM_SECONDS) if often else SETTLE_SECONDS
                    await self._unless_over(asyncio.sleep(pause), pause)
                    asked = time.monotonic()
                    self._stale = False
                    await self._list_anew(client, wire, take)
        finally:
            if listening is not None:
                listening.cancel()

    async def _list_anew(self, client: Client, wire: Wire, take: Callable[[Listing], None]) -> None:
        """Take in what the server has now; where it does not say, what it had stays."""
        limit = self._server.connect_seconds
        try:
            asking = listing_of(client, wire, self._server)
            listing = await self._unless_over(asking, limit)
        except (MCPError, ValidationError) as error:
            self._journal.note(f"its tools can't be listed: {connect_trouble(error)}")
            return
        if listing is not None:
            take(listing)
        elif not self._over.is_set():
            self._journal.note(f"its tools can't be listed: no answer within {limit:g} s")

    async def _unless_over(self, work: Coroutine[Any, Any, _T], seconds: float) -> _T | None:
        """What comes of some work; None if that takes too long, or the connection ends first."""
        doing = asyncio.ensure_future(work)
        over = asyncio.ensure_future(self._over.wait())
        try:
            await asyncio.wait((doing, over), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            return doing.result() if doing.done() else None
        finally:
            over.cancel()
            doing.cancel()

    async def _listen(self, client: Client) -> None:
        """Hear of changes, from servers that tell only who listens; again when a stream ends."""
        told = client.server_capabilities.tools
        pause = LISTEN_SECONDS
        while told is not None and told.list_changed:
            begun = time.monotonic()
            why = "the stream ended"
            try:
                async with client.listen(tools_list_changed=True) as changes:
                    async for _ in changes:
                        self.changed()
            except MCPError as error:
                why = connect_trouble(error)
                if error.error.code == METHOD_NOT_FOUND:
                    self._journal.note(f"changes are not heard of: {why}")
                    return
            except (RuntimeError, OSError, ValidationError, anyio.BrokenResourceError) as error:
                why = connect_trouble(error)
            if time.monotonic() - begun > _LISTEN_MOST:
                pause = LISTEN_SECONDS
            self._journal.note(f"changes are not heard of for {pause:g} s: {why}")
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LISTEN_MOST)
            # Nobody says what happened meanwhile.
            self.changed()
