"""Connection to one server: connect, call, reconnect with back-off, close.

Everything here runs on the event loop of `Servers`. `Connection.run` is one task that enters and
exits the SDK's client, as anyio requires; calls come from other tasks.

    idle          not needed yet
    connecting    the process is starting, or the address is being reached
    connected     calls go through
    ending        lost, and its process is being ended; a call waits for the next connection
    waiting       lost; the next attempt comes after a pause, or with the next call
    failed        given up, with the reason; a call makes one more attempt
    needs_reauth  a person has to log in again: `hermes mcp login`
    unusable      the definition has a problem
"""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, cast

import anyio
import httpx2
import mcp_types as types
from mcp_types import REQUEST_TIMEOUT
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from hermes import __version__
from hermes.core.errors import ConfigError, HermesError, ToolError
from hermes.mcp.client.packages import check_package
from hermes.mcp.client.results import (
    NeedsLoginError,
    call_error,
    connect_error,
    innermost,
    is_connection_lost,
)
from hermes.mcp.client.sdk_compat import CompatClient, CompatDispatcher
from hermes.mcp.client.server_log import RateLimit
from hermes.mcp.client.server_process import resolve_launch
from hermes.mcp.client.server_requests import ServerRequests
from hermes.mcp.client.stdio_client import open_pipes
from hermes.mcp.client.tool_list import SETTLE_SECONDS, ChangeWatch, fetch_listing
from hermes.mcp.untrusted_text import clean
from mcp import MCPError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from typing import Any

    from mcp.shared.dispatcher import ProgressFnT

    from hermes.core.context import ToolContext
    from hermes.mcp.client.listing import Listing
    from hermes.mcp.client.server_log import ServerLog
    from hermes.mcp.client.server_requests import Caller
    from hermes.mcp.client.settings import Server, Settings
    from hermes.mcp.client.stdio_client import Pipes

MAX_ATTEMPTS = 5
PAUSE_SECONDS = 0.5
# A connection that lasted this long resets the count of attempts.
STABLE_SECONDS = 10.0
# For this long after it was given up, a server is not tried again by calls.
REST_SECONDS = 5.0
_PROGRESS_LIMIT = (20, 20.0)  # notifications at once, and per second
_PROGRESS_TEXT = 300
# Exceptions of a connection or a request, also inside exception groups.
_FAILURES = (
    HermesError,
    MCPError,
    ValidationError,
    OSError,
    RuntimeError,
    httpx2.HTTPError,
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
)


class Connection:
    """The connection to one server."""

    def __init__(
        self,
        server: Server,
        log: ServerLog,
        *,
        project: str,
        settings: Settings,
        legacy: bool,
        on_state: Callable[[Connection], None],
        on_listing: Callable[[Connection, Listing], None],
    ) -> None:
        self.server = server
        self.log = log
        self.state = "idle"
        self.reason = ""
        self.since = time.monotonic()
        self.notes: list[str] = []
        self.attempts = 0
        self.connects = 0
        self.lost_reason = ""
        self.listing: Listing | None = None
        self.pid = 0
        self._project = project
        self._settings = settings
        self._legacy = legacy
        self._on_state = on_state
        self._on_listing = on_listing
        self._requests = ServerRequests(server, log, project)
        self._client: CompatClient | None = None
        self._pipes: Pipes | None = None
        self._dispatcher: CompatDispatcher | None = None
        self._wanted = asyncio.Event()
        self._retry_now = asyncio.Event()
        self._watch = ChangeWatch(server, log)
        self._dropped = False
        self._drop_reason = ""
        self._stopped = asyncio.Event()
        self._waiters: list[asyncio.Future[None]] = []
        # Tools that answer with a question first; the SDK drives that exchange.
        self._interactive: set[str] = set()

    # -- life cycle ---------------------------------------------------------------------------

    def want(self) -> None:
        """Connect now, and stay connected."""
        self._wanted.set()
        self._retry_now.set()

    def drop(self, reason: str = "") -> None:
        """End this connection and make a new one at once."""
        self._dropped, self._drop_reason = True, reason
        self._watch.end()
        self.want()

    def stop(self) -> None:
        """End the connection for good.

        Call this as well before cancelling `run`: while connecting, code of the SDK may swallow a
        cancellation.
        """
        self._stopped.set()
        self._watch.end()

    def give_up(self, reason: str) -> None:
        """Fail, and release the calls that wait."""
        self._client = None
        self._set_state("failed", reason)
        self._release_waiters()

    async def run(self) -> None:
        """Keep the server connected while it is wanted, until stopped."""
        while not self._stopped.is_set():
            await self._wanted.wait()
            self._retry_now.clear()
            start = time.monotonic()
            connects = self.connects
            reason, final_state = await self._connect_once()
            if self._stopped.is_set():
                return
            never_connected = connects == self.connects
            self.lost_reason = reason
            if self._dropped or time.monotonic() - start > STABLE_SECONDS:
                self.attempts = 0
            self._dropped = False
            self.attempts += 1
            if final_state or self.attempts >= MAX_ATTEMPTS:
                self.attempts = 0
                self._wanted.clear()
                self._set_state(final_state or "failed", reason)
                self._release_waiters()
                continue
            self._set_state("waiting", reason)
            if never_connected:
                self._release_waiters()
            elif self._waiters:
                # A call came while the old connection was being ended.
                continue
            pause = PAUSE_SECONDS * 2 ** (self.attempts - 1) * random.uniform(0.8, 1.2)
            try:
                async with asyncio.timeout(pause):
                    await self._retry_now.wait()
            except TimeoutError:
                continue

    async def _connect_once(self) -> tuple[str, str]:
        """One connection to its end: the reason, and the state if another attempt is no use."""
        self._set_state("connecting")
        self._reset()
        connected = False
        try:
            async with asyncio.timeout(self.server.connect_seconds) as limit:
                await check_package(self.server, self._settings, self.notes)
                async with self._new_client() as _client:
                    client = cast("CompatClient", _client)
                    assert self._dispatcher is not None
                    listing = await fetch_listing(client, self._dispatcher, self.server)
                    limit.reschedule(None)
                    connected = True
                    self._open(client)
                    self._take_listing(listing)
                    try:
                        await self._watch.run(
                            client, self._dispatcher, self._take_listing, listen=not self._legacy
                        )
                    finally:
                        self._client, self.state = None, "ending"
        except TimeoutError:
            return f"it did not answer within {self.server.connect_seconds:g} s", ""
        except NeedsLoginError as error:
            return str(error), "needs_reauth"
        except ConfigError as error:
            return _with_hint(error), "failed"
        except _FAILURES as error:
            return self._exit_text() or connect_error(error), ""
        except BaseExceptionGroup as group:
            cause = innermost(group)
            if isinstance(cause, NeedsLoginError):
                return connect_error(group), "needs_reauth"
            if isinstance(cause, ConfigError):
                return _with_hint(cause), "failed"
            return self._exit_text() or connect_error(group), ""
        finally:
            self._client = None
            self.pid = 0
            if not connected and self._pipes is not None and self._pipes.lost:
                # It may have crashed at the protocol probe: the other handshake is next.
                self._legacy = not self._legacy
        return self._exit_text() or self._drop_reason or "the connection was ended", ""

    def _reset(self) -> None:
        self._dispatcher, self._pipes, self._dropped = None, None, False
        self._drop_reason = ""
        if not self._stopped.is_set():
            self._watch.begin()

    def _exit_text(self) -> str:
        """How the process ended, with the last line of its log; empty if we ended it."""
        if self._pipes is None or not self._pipes.exited_first:
            return ""
        text = self._pipes.process.exit_text()
        last = self.log.last(1) if text and not self._pipes.process.failure else []
        return f"it {text}" + (f": {last[0]}" if last else "") if text else ""

    def _open(self, client: CompatClient) -> None:
        self._client = client
        self.connects += 1
        self.pid = self._pipes.process.pid if self._pipes is not None else 0
        self._legacy = client.protocol_version not in MODERN_PROTOCOL_VERSIONS
        self._retry_now.clear()
        self._set_state("connected")
        self._release_waiters()

    def _set_state(self, state: str, reason: str = "") -> None:
        self.state, self.reason = state, reason
        self.since = time.monotonic()
        if reason:
            self.log.note(f"{state}: {reason}")
        self._on_state(self)

    def _release_waiters(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _new_client(self) -> CompatClient:
        requests = self._requests
        return CompatClient(
            self._transport(),  # type: ignore[arg-type] # of a dispatcher, see `CompatClient`
            cache=None,
            mode="legacy" if self._legacy else "auto",
            client_info=types.Implementation(name="hermes", version=__version__),
            message_handler=self._on_message,
            logging_callback=requests.log_message,
            elicitation_callback=requests.elicit,
            list_roots_callback=requests.roots,
            sampling_callback=requests.sample if self.server.sampling else None,
        )

    @asynccontextmanager
    async def _transport(self) -> AsyncIterator[CompatDispatcher]:
        if self.server.remote:
            from hermes.mcp.client.http_client import http_streams

            async with http_streams(self.server) as (read, write):
                self._dispatcher = CompatDispatcher(read, write)
                yield self._dispatcher
            return
        launch = resolve_launch(self.server, self._project)
        async with open_pipes(launch, self.server.name, self.log, self._watch.end) as pipes:
            self._pipes, self._dispatcher = pipes, pipes.dispatcher
            yield pipes.dispatcher

    async def _on_message(self, message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._watch.changed()

    def _take_listing(self, listing: Listing) -> None:
        self.listing = listing
        self._on_listing(self, listing)

    # -- requests -----------------------------------------------------------------------------

    async def ready(self) -> CompatClient:
        """The connected client, after one attempt if needed; raises `ToolError`."""
        if self._client is None:
            resting = self.state in ("failed", "needs_reauth") and not self._wanted.is_set()
            if not resting or time.monotonic() - self.since >= REST_SECONDS:
                self.want()
                waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._waiters.append(waiter)
                await waiter
        if self._client is None:
            raise ToolError(
                f"the server {self.server.name} can't be reached: {self.reason}",
                hint=f"hermes mcp test {self.server.name}",
            )
        return self._client

    async def call(self, tool: str, arguments: dict[str, Any], caller: Caller) -> dict[str, Any]:
        """Call a tool; the result as the protocol writes it."""
        on_progress = None if caller.context.report is None else _progress_reporter(caller.context)
        seconds = self.server.call_seconds

        async def call(client: CompatClient) -> dict[str, Any]:
            if self._pipes is not None and tool not in self._interactive:
                result = await client.session.call_raw(
                    tool, arguments, seconds=seconds, on_progress=on_progress
                )
                if result.get("resultType", "complete") == "complete":
                    return result
                self._interactive.add(tool)
            answer = await client.call_tool(
                tool, arguments, read_timeout_seconds=seconds, progress_callback=on_progress
            )
            return answer.model_dump(by_alias=True, mode="json", exclude_none=True)

        result: dict[str, Any] = await self.use(call, tool, caller, limited=True)
        return result

    async def use(
        self,
        work: Callable[[CompatClient], Awaitable[Any]],
        label: str,
        caller: Caller | None,
        *,
        limited: bool = False,
    ) -> Any:
        """Run requests with the client for a call; errors become `ToolError`.

        Args:
            label: The tool or request, for error texts.
            limited: `work` has a time limit of its own.
        """
        client = await self.ready()
        start = time.monotonic()
        with self._requests.for_call(caller):
            try:
                async with asyncio.timeout(None if limited else self.server.call_seconds):
                    answer = await work(client)
            except TimeoutError:
                failure: BaseException = MCPError(REQUEST_TIMEOUT, "no answer in time")
            except (*_FAILURES, BaseExceptionGroup) as error:
                failure = error
            else:
                self.attempts = 0
                return answer
        seconds = time.monotonic() - start
        if is_connection_lost(failure, self.server):
            if self.server.remote and self._client is client:
                # Over HTTP nothing else notices the loss.
                self.drop(connect_error(failure))
            await self._wait_for_loss(client)
        raise call_error(failure, self, label, seconds)

    async def _wait_for_loss(self, client: CompatClient) -> None:
        """Wait until `run` knows the reason of a lost connection; drop it if it never learns."""
        for _ in range(60):
            if self._client is not client and self.state != "ending":
                return
            await asyncio.sleep(SETTLE_SECONDS)
        if self._client is client:
            self.drop()


def _progress_reporter(context: ToolContext) -> ProgressFnT:
    limit = RateLimit(*_PROGRESS_LIMIT)

    async def report(progress: float, total: float | None, message: str | None) -> None:
        if limit.allows():
            fraction = progress / total if total and 0 <= progress <= total else None
            text = clean(message, _PROGRESS_TEXT) or f"{progress:g}"
            context.progress(text, fraction=fraction)

    return report


def _with_hint(error: HermesError) -> str:
    return f"{error} ({error.hint})" if error.hint else str(error)
