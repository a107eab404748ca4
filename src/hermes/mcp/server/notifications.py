"""Notifications to a client: changed lists, log messages and progress, in the protocol version it
speaks.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from typing import TYPE_CHECKING, get_args

import anyio
from mcp.server.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp_types import (
    LOG_LEVEL_META_KEY,
    LoggingLevel,
    LoggingMessageNotification,
    LoggingMessageNotificationParams,
    PromptListChangedNotification,
    ResourceListChangedNotification,
    ResourceUpdatedNotification,
    ResourceUpdatedNotificationParams,
    ToolListChangedNotification,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from hermes.core.log import Log
from hermes.mcp.untrusted_text import valid_unicode

if TYPE_CHECKING:
    from typing import Any

    from mcp.server.session import ServerSession

    from hermes.mcp.server.sessions import Context, Session
    from hermes.runtime.hooks import Event, EventBus
    from hermes.runtime.pipeline import Runtime


log = Log("hermes.mcp")


async def tools_changed(session: Session, ctx: Context | None = None) -> None:
    """Tell a client that its list of tools is another, on the stream of `ctx` where it can be."""
    await session.bus.publish(ToolsListChanged())
    if session.link is not None:
        await _told(session.link, ToolListChangedNotification(), ctx)


async def resources_changed(session: Session, ctx: Context | None = None) -> None:
    """Tell a client that there is more to read."""
    await session.bus.publish(ResourcesListChanged())
    if session.link is not None:
        await _told(session.link, ResourceListChangedNotification(), ctx)


async def prompts_changed(session: Session, ctx: Context | None = None) -> None:
    """Tell a client that there are other prompts."""
    await session.bus.publish(PromptsListChanged())
    if session.link is not None:
        await _told(session.link, PromptListChangedNotification(), ctx)


async def notify_changed_lists(session: Session, ctx: Context | None = None) -> None:
    """Notify a client of the lists that changed since its last notification."""
    if session.offering.changed():
        await tools_changed(session, ctx)
    if session.offering.prompts_changed():
        await prompts_changed(session, ctx)
    if session.offering.resources_changed():
        await resources_changed(session, ctx)


async def resource_updated(session: Session, uri: str) -> None:
    """Notify a client that a subscribed resource changed."""
    await session.bus.publish(ResourceUpdated(uri=uri))
    if session.link is not None:
        params = ResourceUpdatedNotificationParams(uri=uri)
        await _told(session.link, ResourceUpdatedNotification(params=params), None)


async def _told(link: ServerSession, notification: Any, ctx: Context | None) -> None:
    try:
        if ctx is None:
            await link.send_notification(notification)
        else:
            await ctx.session.send_notification(notification, related_request_id=ctx.request_id)
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        log.info("a client has gone before it could be told of a change")


_LEVELS: tuple[LoggingLevel, ...] = get_args(LoggingLevel)
_KINDS: dict[str, LoggingLevel] = {"progress": "info", "output": "debug", "trouble": "warning"}
_LOGGER = "hermes"
_LOG_CHARS = 2_000
# How many lines may wait to be sent; what comes faster than it is read is left out.
_WAITING = 100


class Logs:
    """Forwards the log events of one call until closed."""

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
        self._unsubscribe = runtime.events.subscribe(self._on_event)
        self._telling = asyncio.ensure_future(self._tell())

    def attend(self, ctx: Context) -> None:
        """Tell another request from now on: the one that the call goes on with."""
        self._ctx = ctx

    async def told(self) -> None:
        """Wait until all notifications so far are sent."""
        # What was said just now is not noted yet.
        await asyncio.sleep(0)
        async with self._saying:
            self._news.clear()
            while self._lines:
                await self._say(*self._lines.popleft())

    async def close(self) -> None:
        """Send the rest, then stop."""
        self._unsubscribe()
        await self.told()
        self._note("debug", self._output.close(), whole_lines=True)
        await self.told()
        self._telling.cancel()

    def _on_event(self, event: Event) -> None:
        """Runs in the thread that reports."""
        level = _KINDS.get(event.kind)
        if event.call_id != self._call_id or level is None:
            return
        if _LEVELS.index(level) < self._least:
            return
        text = str(event.data.get("message") or event.data.get("text") or "")
        with contextlib.suppress(RuntimeError):
            # The loop may be closed, and nobody there to be told.
            self._loop.call_soon_threadsafe(self._note, level, text)

    def _note(self, level: LoggingLevel, text: str, *, whole_lines: bool = False) -> None:
        if level == "debug" and not whole_lines:
            text = self._output.feed(text)
        if text and len(self._lines) < _WAITING:
            self._lines.append((level, valid_unicode(text[:_LOG_CHARS])))
            self._news.set()

    async def _tell(self) -> None:
        while await self._news.wait():
            await self.told()

    async def _say(self, level: LoggingLevel, text: str) -> None:
        ctx = self._ctx
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            params = LoggingMessageNotificationParams(level=level, data=text, logger=_LOGGER)
            await ctx.session.send_notification(
                LoggingMessageNotification(params=params), related_request_id=ctx.request_id
            )


def level_for(ctx: Context, set_level: LoggingLevel | None) -> LoggingLevel | None:
    """The least that a client wants to read of a call; None where it wants nothing."""
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return set_level
    said = (ctx.meta or {}).get(LOG_LEVEL_META_KEY)
    return next((level for level in _LEVELS if level == said), None)


# At most one notification in this time, and one at least in the other.
_APART_SECONDS = 0.02
_SILENT_SECONDS = 10.0
_PROGRESS_CHARS = 500


class Progress:
    """Forwards the progress of one call until closed."""

    def __init__(self, events: EventBus, call_id: str, session: ServerSession) -> None:
        self._call_id = call_id
        self._session = session
        self._loop = asyncio.get_running_loop()
        self._begun = time.monotonic()
        self._news = asyncio.Event()
        # One at a time, in their order; and none is cut off on its way.
        self._saying = asyncio.Lock()
        self._message = ""
        self._fraction: float | None = None
        # Steps of unknown size first; then the part of the rest that is done. It only ever grows.
        self._steps = 0
        self._part = -1.0
        self._unsubscribe = events.subscribe(self._on_event)
        self._telling = asyncio.ensure_future(self._tell())

    def attend(self, session: ServerSession) -> None:
        """Tell another request from now on: the one that the call goes on with."""
        self._session = session

    async def told(self) -> None:
        """Wait until all notifications so far are sent."""
        # What was reported just now is not noted yet.
        await asyncio.sleep(0)
        async with self._saying:
            if self._news.is_set():
                await self._say()

    async def close(self) -> None:
        """Send the rest, then stop."""
        self._unsubscribe()
        await self.told()
        self._telling.cancel()

    def _on_event(self, event: Event) -> None:
        """Runs in the thread that reports."""
        if event.call_id != self._call_id:
            return
        if event.kind == "progress":
            text, fraction = str(event.data["message"]), event.data["fraction"]
        elif event.kind == "output":
            text, fraction = str(event.data["text"]).rstrip().rpartition("\n")[2], None
        else:
            return
        try:
            self._loop.call_soon_threadsafe(self._note, text, fraction)
        except RuntimeError:
            # The loop is closed, and nobody is there to be told.
            return

    def _note(self, text: str, fraction: float | None) -> None:
        self._message = valid_unicode(text[:_PROGRESS_CHARS])
        if fraction is not None:
            self._fraction = fraction
        self._news.set()

    async def _tell(self) -> None:
        while True:
            try:
                async with asyncio.timeout(_SILENT_SECONDS):
                    await self._news.wait()
            except TimeoutError:
                self._note(f"running for {time.monotonic() - self._begun:.0f} s", None)
            await self.told()
            await asyncio.sleep(_APART_SECONDS)

    async def _say(self) -> None:
        self._news.clear()
        progress, total = self._grown()
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._session.report_progress(progress, total, self._message or None)

    def _grown(self) -> tuple[float, float | None]:
        """The next value, past the last one, and the whole where it is known."""
        if self._fraction is None:
            self._steps += 1
            return float(self._steps), None
        wanted = min(max(self._fraction, 0.0), 1.0)
        # Not backwards, and not twice the same: the protocol forbids both.
        last = self._part
        self._part = wanted if wanted > last else last + (1 - last) / 100
        return self._steps + self._part, self._steps + 1.0
