"""Sessions: the state kept for one client, and its end."""

from __future__ import annotations

import asyncio
import secrets
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from hermes.core.errors import HermesError
from hermes.core.log import Log
from hermes.mcp.server import offered_tools
from hermes.mcp.server.notifications import notify_changed_lists, resource_updated
from hermes.mcp.server.offered_tools import OfferedTools
from hermes.runtime.parallel import Turns
from hermes.runtime.pipeline import begin_session, end_session

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from mcp.server.context import ServerRequestContext
    from mcp.server.session import ServerSession
    from mcp_types import CallToolRequestParams, GetPromptRequestParams, LoggingLevel

    from hermes.core.entry import ToolEntry
    from hermes.mcp.server.calls import Call
    from hermes.runtime.app import App

    Context = ServerRequestContext[Any, Any]

log = Log("hermes.mcp")

STDIO = "stdio"
# A header by which a client of the newer era names one of several lines of work.
SESSION_HEADER = "hermes-session"
# How long a session lasts that nobody uses; and one whose client had listened, and stopped.
IDLE_SECONDS = 1800.0
GONE_SECONDS = 60.0
_LOOK_SECONDS = 5.0
# How many clients may be there; past that, the one that was longest away makes room.
MOST = 256
# How many questions may wait for their answers.
_PARKED = 64
# How many large results are listed.
_ARTIFACTS = 500
# How many calls of a client may be under way, those that wait for their turn among them.
_CALLS = 1000
# How many addresses a client may watch.
_WATCHED = 100


class Session:
    """The state of one client."""

    def __init__(
        self,
        app: App,
        *,
        toolsets: Sequence[str] | None,
        defer: bool,
        services: Mapping[str, Any],
    ) -> None:
        self.id = f"mcp-{secrets.token_hex(8)}"
        self.runtime = app.runtime
        self.room = asyncio.Semaphore(app.config.get("tools.parallel"))
        self.turns = Turns()
        self.task = self.runtime.task(self.id, workspace=app.project)
        self.offering = OfferedTools(app, toolsets, defer=defer, services=services)
        self.bus = InMemorySubscriptionBus()
        self.listen = ListenHandler(self.bus, max_subscriptions=16)
        self.link: ServerSession | None = None
        self.used = time.monotonic()
        # Which log messages the client asked for; none, if it did not.
        self.log_level: LoggingLevel | None = None
        self.artifacts: dict[str, str] = {}
        # What the client watches, and the tool that it was read with when it was last looked at.
        self.watched: dict[str, ToolEntry | None] = {}
        self.parked: dict[str, Call] = {}
        self._telling: asyncio.Task[None] | None = None
        self._calls: set[Call] = set()
        begin_session(self.runtime, self.id)

    def began(self, call: Call) -> None:
        """Remember a call, to end it with the session."""
        self._calls.add(call)

    def ended(self, call: Call) -> None:
        """A call is over."""
        self._calls.discard(call)
        self.used = time.monotonic()

    def left(self, handle: str, tool: str) -> bool:
        """Add a stored result of a call; whether it is new."""
        if handle in self.artifacts:
            return False
        if len(self.artifacts) >= _ARTIFACTS:
            del self.artifacts[next(iter(self.artifacts))]
        self.artifacts[handle] = tool
        return True

    def park(self, call: Call) -> str:
        """Keep a call that waits for its client, under an unguessable token; empty if full."""
        if len(self.parked) >= _PARKED:
            # Those that ended while nobody came for them make room.
            self.parked = {mark: kept for mark, kept in self.parked.items() if not kept.done}
        if len(self.parked) >= _PARKED:
            return ""
        mark = secrets.token_urlsafe(24)
        self.parked[mark] = call
        return mark

    def take(self, params: CallToolRequestParams | GetPromptRequestParams) -> Call | None:
        """The parked call that a mark stands for, once, and only for the very same request."""
        call = self.parked.get(params.request_state or "")
        if call is None or call.kind is not type(params):
            return None
        if (call.name, call.arguments) != (params.name, params.arguments):
            return None
        return self.parked.pop(params.request_state or "")

    def watch(self, uri: str) -> bool:
        """Subscribe a client to a resource; False above the limit."""
        if len(self.watched) >= _WATCHED and uri not in self.watched:
            return False
        self.watched[uri] = self._read_with(uri)
        return True

    def updated(self) -> list[str]:
        """The subscribed resources that changed since the last call."""
        now = {uri: self._read_with(uri) for uri in self.watched}
        changed = [uri for uri, entry in now.items() if entry is not self.watched[uri]]
        self.watched = now
        return changed

    def _read_with(self, uri: str) -> ToolEntry | None:
        match = offered_tools.resource_tool(self.offering.resources(), uri)
        return None if match is None else match[0]

    def notify_changes(self) -> None:
        """Notify the client of changed lists; a client that does not read blocks no other."""
        if self._telling is None or self._telling.done():
            self._telling = asyncio.create_task(self._tell_changes())
            self._telling.add_done_callback(_looked_at)

    def stop_notifications(self) -> None:
        """Drop pending notifications."""
        if self._telling is not None:
            self._telling.cancel()

    async def _tell_changes(self) -> None:
        await notify_changed_lists(self)
        for uri in self.updated():
            await resource_updated(self, uri)

    @property
    def busy(self) -> bool:
        """Whether calls are under way."""
        return bool(self._calls)

    @property
    def full(self) -> bool:
        """Whether no more calls can be begun now."""
        return len(self._calls) >= _CALLS

    def cancel(self, reason: str) -> None:
        """Tell every call to stop."""
        for call in tuple(self._calls):
            call.cancellation.cancel(reason)

    def close(self) -> None:
        """End everything that belongs to the session. May block; not for the loop's thread."""
        self.cancel("the client went away")
        end_session(self.runtime, self.id)
        self.runtime.close_task(self.id)


class Sessions:
    """All sessions by key."""

    def __init__(
        self,
        app: App,
        *,
        toolsets: Sequence[str] | None = None,
        defer: bool = True,
        services: Mapping[str, Any] | None = None,
    ) -> None:
        self.app = app
        self._toolsets = toolsets
        self._defer = defer
        self._services = dict(services or {})
        self._open: dict[str, Session] = {}
        # How many streams each client listens on; no longer any, for one that has stopped.
        self._streams: dict[str, int] = {}
        self._making = asyncio.Lock()

    async def of(self, ctx: Context) -> Session:
        """The session that a request belongs to, begun when it is new."""
        key = key_of(ctx)
        session = self._open.get(key)
        if session is None:
            async with self._making:
                session = self._open.get(key)
                if session is None:
                    await self._make_room()
                    try:
                        session = await anyio.to_thread.run_sync(self._make)
                    except HermesError as error:
                        raise MCPError(INTERNAL_ERROR, str(error)) from None
                    self._open[key] = session
        session.used = time.monotonic()
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            session.link = ctx.session
        return session

    def _make(self) -> Session:
        return Session(
            self.app, toolsets=self._toolsets, defer=self._defer, services=self._services
        )

    async def _make_room(self) -> None:
        if len(self._open) < MOST:
            return
        idle = [
            key for key in self._open if not self._open[key].busy and not self._streams.get(key)
        ]
        if not idle:
            raise MCPError(INTERNAL_ERROR, "too many clients are being served; try again later")
        await self.close(min(idle, key=lambda key: self._open[key].used))

    @contextmanager
    def listening(self, key: str) -> Iterator[None]:
        """While a client keeps a stream open, it is there."""
        self._streams[key] = self._streams.get(key, 0) + 1
        try:
            yield
        finally:
            self._streams[key] -= 1
            session = self._open.get(key)
            if session is not None:
                session.used = time.monotonic()
            elif not self._streams[key]:
                del self._streams[key]

    async def close(self, key: str) -> None:
        """End one session, if it is open."""
        session = self._open.pop(key, None)
        if not self._streams.get(key):
            self._streams.pop(key, None)
        if session is not None:
            await _closed(session)

    async def close_all(self) -> None:
        """End every session."""
        sessions, self._open = list(self._open.values()), {}
        for session in sessions:
            session.cancel("the server ends")
        for session in sessions:
            await _closed(session)

    async def watch(self) -> None:
        """Subscribe a client to a resource; False above the limit."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            for key, session in list(self._open.items()):
                if self._over(key, session):
                    await self.close(key)
                else:
                    session.notify_changes()

    def _over(self, key: str, session: Session) -> bool:
        """Whether the session is idle for too long."""
        streams = self._streams.get(key)
        if key == STDIO or streams or session.busy:
            return False
        limit = IDLE_SECONDS if streams is None else GONE_SECONDS
        return time.monotonic() - session.used > limit


def key_of(ctx: Context) -> str:
    """The key that all requests of one session share."""
    request = ctx.request
    if request is None:
        return STDIO
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return key_of_id(request.headers.get("mcp-session-id", ""))
    told = ctx.session.client_params
    name = (told.client_info.name, told.client_info.version) if told is not None else ()
    host = request.client.host if request.client else ""
    return f"client {(host, *name, request.headers.get(SESSION_HEADER, ''))!r}"


def key_of_id(session_id: str) -> str:
    """The key of a session that the protocol has an id for."""
    return f"session {session_id}"


def _looked_at(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.warning("a client could not be told of changes: %r", error)


async def _closed(session: Session) -> None:
    session.stop_notifications()
    with anyio.CancelScope(shield=True):
        await anyio.to_thread.run_sync(session.close)
