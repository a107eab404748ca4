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
from hermes.mcp.client.listing import MAX_TOOLS, PROBLEM, Listing, launch_digest
from hermes.mcp.client.results import connect_error
from mcp import MCPError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine
    from typing import Any

    from hermes.mcp.client.sdk_compat import CompatDispatcher
    from hermes.mcp.client.server_log import ServerLog
    from hermes.mcp.client.settings import Server
    from mcp import Client

SETTLE_SECONDS = 0.05
# The longest pause before the list of a server is fetched again that announces changes all the
# time.
_STORM_SECONDS = 30.0
# The pause before a stream of changes that ended is opened again: at first, and at most.
LISTEN_SECONDS = 1.0
_MAX_LISTEN_SECONDS = 60.0
# Limits of a listing: tools looked at, characters of one definition, characters in all.
_MAX_LISTED = 20_000
_MAX_CHARS = 256_000
_MAX_TOTAL_CHARS = 16_000_000

_T = TypeVar("_T")


async def pages(request: Callable[..., Any], limit: int) -> AsyncIterator[Any]:
    """Each page of a list, at most `limit`; ends when a cursor repeats.

    Args:
        request: Fetches the page at `cursor`, the first one at None.
    """
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(limit):
        page = await request(cursor=cursor)
        yield page
        cursor = page.next_cursor
        if not cursor or cursor in seen:
            return
        seen.add(cursor)


async def fetch_listing(client: Client, dispatcher: CompatDispatcher, server: Server) -> Listing:
    """Everything the server offers; tools as it wrote them, invalid ones too."""
    capabilities = client.server_capabilities
    tools: list[Any] = []
    dispatcher.take_tools()
    callable_names: set[str] = set()
    async for page in pages(client.list_tools, _MAX_LISTED if capabilities.tools else 0):
        tools += dispatcher.take_tools()
        callable_names |= {tool.name for tool in page.tools}
        if len(tools) >= _MAX_LISTED:
            break
    info = client.server_info
    kept = _within_limits(tools, server)
    return Listing(
        launch_digest(server),
        [_with_header_problem(tool, callable_names) for tool in kept],
        beyond=len(tools) - len(kept),
        resources=capabilities.resources is not None,
        prompts=capabilities.prompts is not None,
        legacy=client.protocol_version not in MODERN_PROTOCOL_VERSIONS,
        instructions=client.instructions or "",
        version=f"{info.name} {info.version}" if info is not None else "",
    )


def _within_limits(tools: list[Any], server: Server) -> list[Any]:
    """The tools up to the limits; with too many, only those that the settings include."""
    if len(tools) > MAX_TOOLS:
        tools = [tool for tool in tools if _is_included(tool, server)][:MAX_TOOLS]
    kept = []
    left = _MAX_TOTAL_CHARS
    for tool in tools:
        size = len(to_json(tool))
        if size > _MAX_CHARS and isinstance(tool, dict):
            tool = {"name": tool.get("name"), PROBLEM: f"its definition has {size} characters"}
            size = 0
        left -= size
        if left < 0:
            break
        kept.append(tool)
    return kept


def _is_included(tool: Any, server: Server) -> bool:
    name = tool.get("name") if isinstance(tool, dict) else None
    return isinstance(name, str) and server.includes(name)


def _with_header_problem(tool: Any, callable_names: set[str]) -> Any:
    """The SDK leaves out a tool whose `x-mcp-header` names no valid header."""
    name = tool.get("name") if isinstance(tool, dict) else None
    if isinstance(name, str) and name and name not in callable_names:
        return {**tool, PROBLEM: "x-mcp-header names what can't be a header"}
    return tool


class ChangeWatch:
    """Wakes the connection to one server: its tools changed, or the connection ended."""

    def __init__(self, server: Server, log: ServerLog) -> None:
        self._server = server
        self._log = log
        self._wake = asyncio.Event()
        self._ended = asyncio.Event()
        self._stale = False

    def begin(self) -> None:
        """A new connection starts."""
        self._stale = False
        self._wake.clear()
        self._ended.clear()

    def end(self) -> None:
        """The connection is lost or dropped."""
        self._ended.set()
        self._wake.set()

    def changed(self) -> None:
        """The server announced a change of its tools."""
        self._stale = True
        self._wake.set()

    async def run(
        self,
        client: Client,
        dispatcher: CompatDispatcher,
        on_listing: Callable[[Listing], None],
        *,
        listen: bool,
    ) -> None:
        """Until the connection ends: fetch the listing after each change.

        Args:
            listen: The protocol announces changes only on a stream that the client opens.
        """
        listener = asyncio.ensure_future(self._listen(client)) if listen else None
        pause, fetched = SETTLE_SECONDS, 0.0
        try:
            while not self._ended.is_set():
                await self._wake.wait()
                self._wake.clear()
                if self._stale:
                    # Servers announce a change several times, and some never stop: back off.
                    often = time.monotonic() - fetched < 2 * pause + 1
                    pause = min(2 * pause, _STORM_SECONDS) if often else SETTLE_SECONDS
                    await self._unless_ended(asyncio.sleep(pause), pause)
                    fetched = time.monotonic()
                    self._stale = False
                    await self._fetch(client, dispatcher, on_listing)
        finally:
            if listener is not None:
                listener.cancel()

    async def _fetch(
        self, client: Client, dispatcher: CompatDispatcher, on_listing: Callable[[Listing], None]
    ) -> None:
        """Fetch the listing; on an error the old one stays in use."""
        limit = self._server.connect_seconds
        try:
            request = fetch_listing(client, dispatcher, self._server)
            listing = await self._unless_ended(request, limit)
        except (MCPError, ValidationError) as error:
            self._log.note(f"its tools can't be listed: {connect_error(error)}")
            return
        if listing is not None:
            on_listing(listing)
        elif not self._ended.is_set():
            self._log.note(f"its tools can't be listed: no answer within {limit:g} s")

    async def _unless_ended(self, work: Coroutine[Any, Any, _T], seconds: float) -> _T | None:
        """The result of `work`; None on a timeout or when the connection ends first."""
        task = asyncio.ensure_future(work)
        ended = asyncio.ensure_future(self._ended.wait())
        try:
            await asyncio.wait((task, ended), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() else None
        finally:
            ended.cancel()
            task.cancel()

    async def _listen(self, client: Client) -> None:
        """Subscribe to changes of the tool list; again, with back-off, when the stream ends."""
        tools = client.server_capabilities.tools
        pause = LISTEN_SECONDS
        while tools is not None and tools.list_changed:
            start = time.monotonic()
            reason = "the stream ended"
            try:
                async with client.listen(tools_list_changed=True) as changes:
                    async for _ in changes:
                        self.changed()
            except MCPError as error:
                reason = connect_error(error)
                if error.error.code == METHOD_NOT_FOUND:
                    self._log.note(f"no notice of changes: {reason}")
                    return
            except (RuntimeError, OSError, ValidationError, anyio.BrokenResourceError) as error:
                reason = connect_error(error)
            if time.monotonic() - start > _MAX_LISTEN_SECONDS:
                pause = LISTEN_SECONDS
            self._log.note(f"no notice of changes for {pause:g} s: {reason}")
            await asyncio.sleep(pause)
            pause = min(2 * pause, _MAX_LISTEN_SECONDS)
            # A change during the pause was not announced.
            self.changed()
