"""What a call says while it runs, as log messages to a client that wants to read them.

In the older era a client asks for them with `logging/setLevel`, and nothing is sent before that;
in the newer one each request says for itself which it wants.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from typing import TYPE_CHECKING, get_args

import anyio
from mcp_types import (
    LOG_LEVEL_META_KEY,
    LoggingLevel,
    LoggingMessageNotification,
    LoggingMessageNotificationParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from hermes.mcp.texts import whole

if TYPE_CHECKING:
    from hermes.mcp.server.sessions import Context
    from hermes.runtime.events import Event
    from hermes.runtime.pipeline import Runtime

_LEVELS: tuple[LoggingLevel, ...] = get_args(LoggingLevel)
_KINDS: dict[str, LoggingLevel] = {"progress": "info", "output": "debug", "trouble": "warning"}
_LOGGER = "hermes"
_LINE = 2_000
# How many lines may wait to be sent; what comes faster than it is read is left out.
_WAITING = 100


class Logs:
    """Watches one call, and passes on what is said in it until it is closed."""

    def __init__(self, runtime: Runtime, call_id: str, ctx: Context, level: LoggingLevel) -> None:
        self._call_id = call_id
        self._ctx = ctx
        self._least = _LEVELS.index(level)
        self._loop = asyncio.get_running_loop()
        self._lines: deque[tuple[LoggingLevel, str]] = deque()
        self._news = asyncio.Event()
        # One at a time, in their order; and none is cut off on its way.
        self._saying = asyncio.Lock()
        # Output comes in pieces, and a secret may stand in two of them.
        self._output = runtime.redactor.stream()
        self._unsubscribe = runtime.events.subscribe(self._heard)
        self._telling = asyncio.ensure_future(self._tell())

    def attend(self, ctx: Context) -> None:
        """Tell another request from now on: the one that the call goes on with."""
        self._ctx = ctx

    async def told(self) -> None:
        """Until the client is told of all that was said so far."""
        # What was said just now is not noted yet.
        await asyncio.sleep(0)
        async with self._saying:
            self._news.clear()
            while self._lines:
                await self._say(*self._lines.popleft())

    async def close(self) -> None:
        """Say what is still unsaid, and no more."""
        self._unsubscribe()
        await self.told()
        self._note("debug", self._output.close(), whole_lines=True)
        await self.told()
        self._telling.cancel()

    def _heard(self, event: Event) -> None:
        """In the thread of whoever reports."""
        level = _KINDS.get(event.kind)
        if event.call_id != self._call_id or level is None:
            return
        if _LEVELS.index(level) < self._least:
            return
        said = str(event.data.get("message") or event.data.get("text") or "")
        with contextlib.suppress(RuntimeError):
            # The loop may be closed, and nobody there to be told.
            self._loop.call_soon_threadsafe(self._note, level, said)

    def _note(self, level: LoggingLevel, said: str, *, whole_lines: bool = False) -> None:
        if level == "debug" and not whole_lines:
            said = self._output.feed(said)
        if said and len(self._lines) < _WAITING:
            self._lines.append((level, whole(said[:_LINE])))
            self._news.set()

    async def _tell(self) -> None:
        while await self._news.wait():
            await self.told()

    async def _say(self, level: LoggingLevel, said: str) -> None:
        ctx = self._ctx
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            params = LoggingMessageNotificationParams(level=level, data=said, logger=_LOGGER)
            await ctx.session.send_notification(
                LoggingMessageNotification(params=params), related_request_id=ctx.request_id
            )


def level_for(ctx: Context, set_level: LoggingLevel | None) -> LoggingLevel | None:
    """The least that a client wants to read of a call; None where it wants nothing."""
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return set_level
    said = (ctx.meta or {}).get(LOG_LEVEL_META_KEY)
    return next((level for level in _LEVELS if level == said), None)
