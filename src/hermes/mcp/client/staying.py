"""Staying with a connected server: until it is lost, taking in what changes meanwhile."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, TypeVar

import anyio
from mcp_types import METHOD_NOT_FOUND
from pydantic import ValidationError

from hermes.mcp.client.asking import listing_of
from hermes.mcp.client.trouble import connect_trouble
from mcp import MCPError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from hermes.mcp.client.journal import Journal
    from hermes.mcp.client.listing import Listing
    from hermes.mcp.client.settings import Server
    from hermes.mcp.client.wire import Wire
    from mcp import Client

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
