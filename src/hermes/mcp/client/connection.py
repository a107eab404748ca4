"""Connection to one server: connect, call, reconnect with back-off, close."""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import httpx2
import mcp_types as types
from mcp_types import METHOD_NOT_FOUND, REQUEST_TIMEOUT
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from hermes import __version__
from hermes.core.errors import ConfigError, HermesError, ToolError
from hermes.mcp.client.errors import (
    NeedsLoginError,
    call_trouble,
    connect_trouble,
    innermost,
    is_lost,
)
from hermes.mcp.client.packages import check_package
from hermes.mcp.client.rate_limit import Pace
from hermes.mcp.client.sdk_compat import Reading, Wire, Writing, mend_result
from hermes.mcp.client.server_process import launch_of
from hermes.mcp.client.server_requests import Bridging
from hermes.mcp.client.stdio_client import pipes
from hermes.mcp.client.tool_list import SETTLE_SECONDS, Staying, listing_of
from hermes.mcp.untrusted_text import plain
from mcp import Client, MCPError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
    from contextlib import AsyncExitStack
    from typing import Any

    from hermes.mcp.client.listing import Listing
    from hermes.mcp.client.server_log import Journal
    from hermes.mcp.client.server_requests import Behalf
    from hermes.mcp.client.settings import Server, Settings
    from hermes.mcp.client.stdio_client import Pipes
    from mcp import ClientSession


if TYPE_CHECKING:
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


MOST_TRIES = 5
PAUSE_SECONDS = 0.5
# A connection that held so long was no failed try.
STEADY_SECONDS = 10.0
# A server that was just given up on is not tried again for every call.
REST_SECONDS = 5.0
# How often a call may say how far it is: at once, and in a second; and with how many characters.
_PROGRESS_PACE = (20, 20.0)
_PROGRESS_TEXT = 300
# What a connection can fail with, besides groups of these.
_TROUBLE = (
    HermesError,
    MCPError,
    ValidationError,
    OSError,
    RuntimeError,
    httpx2.HTTPError,
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
)


class Link:
    """The connection to one server."""

    def __init__(
        self,
        server: Server,
        journal: Journal,
        *,
        project: str,
        settings: Settings,
        legacy: bool,
        on_state: Callable[[Link], None],
        on_listing: Callable[[Link, Listing], None],
    ) -> None:
        self.server = server
        self.journal = journal
        self.state = "idle"
        self.reason = ""
        self.since = time.monotonic()
        self.notes: list[str] = []
        self.tries = 0
        self.connects = 0
        # Why the last connection ended.
        self.lost = ""
        self.listing: Listing | None = None
        self.pid = 0
        self._project = project
        self._settings = settings
        self._legacy = legacy
        self._on_state = on_state
        self._on_listing = on_listing
        self._bridging = Bridging(server, journal, project)
        self._client: Client | None = None
        self._pipes: Pipes | None = None
        self._wire = Wire()
        self._wanted = asyncio.Event()
        self._hurry = asyncio.Event()
        self._staying = Staying(server, journal)
        self._dropped = False
        self._stopped = asyncio.Event()
        self._why = ""
        self._waiting: list[asyncio.Future[None]] = []
        # Tools that want to know more before they answer.
        self._asking: set[str] = set()

    # -- keeping it ---------------------------------------------------------------------------

    def want(self) -> None:
        """Have it connected, now and from now on."""
        self._wanted.set()
        self._hurry.set()

    def drop(self, why: str = "") -> None:
        """End this connection; the next one is made at once."""
        self._dropped, self._why = True, why
        self._staying.end()
        self.want()

    def stop(self) -> None:
        """End the connection, and make no other.

        Whoever cancels `run` says so here as well: in the middle of connecting, what others wrote
        may take a cancellation for its own and go on.
        """
        self._stopped.set()
        self._staying.end()

    def give_up(self, reason: str) -> None:
        """Say to everybody that nothing will come of this server any more."""
        self._client = None
        self._set("failed", reason)
        self._answer_waiting()

    async def run(self) -> None:
        """Keep the server connected while it is wanted, until stopped."""
        while not self._stopped.is_set():
            await self._wanted.wait()
            self._hurry.clear()
            begun = time.monotonic()
            connects = self.connects
            reason, final = await self._once()
            if self._stopped.is_set():
                return
            tried_in_vain = connects == self.connects
            self.lost = reason
            if self._dropped or time.monotonic() - begun > STEADY_SECONDS:
                self.tries = 0
            self._dropped = False
            self.tries += 1
            if final or self.tries >= MOST_TRIES:
                self.tries = 0
                self._wanted.clear()
                self._set(final or "failed", reason)
                self._answer_waiting()
                continue
            self._set("waiting", reason)
            if tried_in_vain:
                self._answer_waiting()
            elif self._waiting:
                # Somebody called while the old connection was being ended.
                continue
            pause = PAUSE_SECONDS * 2 ** (self.tries - 1) * random.uniform(0.8, 1.2)
            try:
                async with asyncio.timeout(pause):
                    await self._hurry.wait()
            except TimeoutError:
                continue

    async def _once(self) -> tuple[str, str]:
        """One connection, to its end: why it ended, and the state when trying again is no use."""
        self._set("connecting")
        self._forget()
        connected = False
        try:
            async with asyncio.timeout(self.server.connect_seconds) as limit:
                await check_package(self.server, self._settings, self.notes)
                async with self._new_client() as client:
                    listing = await listing_of(client, self._wire, self.server)
                    limit.reschedule(None)
                    connected = True
                    self._open(client)
                    self._take(listing)
                    try:
                        await self._staying.stay(
                            client, self._wire, self._take, listen=not self._legacy
                        )
                    finally:
                        self._client, self.state = None, "ending"
        except TimeoutError:
            return f"it did not answer within {self.server.connect_seconds:g} s", ""
        except NeedsLoginError as error:
            return str(error), "needs_reauth"
        except ConfigError as error:
            return _sentence(error), "failed"
        except _TROUBLE as error:
            return self._ended() or connect_trouble(error), ""
        except BaseExceptionGroup as group:
            if isinstance(innermost(group), NeedsLoginError):
                return connect_trouble(group), "needs_reauth"
            if isinstance(first := innermost(group), ConfigError):
                return _sentence(first), "failed"
            return self._ended() or connect_trouble(group), ""
        finally:
            self._client = None
            self.pid = 0
            if not connected and self._pipes is not None and self._pipes.lost:
                # It may have died of how it was asked which protocol it speaks.
                self._legacy = not self._legacy
        return self._ended() or self._why or "the connection was ended", ""

    def _forget(self) -> None:
        """Let go of the connection before."""
        self._wire, self._pipes, self._dropped = Wire(), None, False
        self._why = ""
        if not self._stopped.is_set():
            self._staying.begin()

    def _ended(self) -> str:
        """How the program ended, with its last words; nothing where it was we who ended it."""
        if self._pipes is None or not self._pipes.left or not (how := self._pipes.program.how()):
            return ""
        last = self.journal.last(1) if not self._pipes.program.failure else []
        return f"it {how}" + (f": {last[0]}" if last else "")

    def _open(self, client: Client) -> None:
        self._client = client
        self.connects += 1
        self.pid = self._pipes.program.pid if self._pipes is not None else 0
        self._legacy = client.protocol_version not in MODERN_PROTOCOL_VERSIONS
        self._hurry.clear()
        self._set("connected")
        self._answer_waiting()

    def _set(self, state: str, reason: str = "") -> None:
        self.state, self.reason = state, reason
        self.since = time.monotonic()
        if reason:
            self.journal.note(f"{state}: {reason}")
        self._on_state(self)

    def _answer_waiting(self) -> None:
        """Let those go on who waited for how this try would end."""
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            if not one.done():
                one.set_result(None)

    def _new_client(self) -> Client:
        bridging = self._bridging
        return GreetingClient(
            self._transport(),
            cache=None,
            mode="legacy" if self._legacy else "auto",
            client_info=types.Implementation(name="hermes", version=__version__),
            message_handler=self._heard,
            logging_callback=bridging.log,
            elicitation_callback=bridging.elicit,
            list_roots_callback=bridging.roots,
            sampling_callback=bridging.sample if self.server.sampling else None,
        )

    @asynccontextmanager
    async def _transport(self) -> AsyncIterator[tuple[Reading, Writing]]:
        if self.server.remote:
            from hermes.mcp.client.http_client import http_streams

            async with http_streams(self.server) as (read, write):
                yield Reading(read, self._wire), Writing(write, self._wire)
            return
        launch = launch_of(self.server, self._project)
        async with pipes(launch, self.server.name, self.journal, self._staying.end) as found:
            self._pipes = found
            yield Reading(found, self._wire), Writing(found, self._wire)

    async def _heard(self, message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._staying.changed()

    def _take(self, listing: Listing) -> None:
        self.listing = listing
        self._on_listing(self, listing)

    # -- using it -----------------------------------------------------------------------------

    async def ready(self) -> Client:
        """The client, connected now if need be; raises `ToolError` with the reason."""
        if self._client is not None:
            return self._client
        resting = self.state in ("failed", "needs_reauth") and not self._wanted.is_set()
        if not resting or time.monotonic() - self.since >= REST_SECONDS:
            self.want()
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            await waiter
        return self._reached()

    def _reached(self) -> Client:
        if self._client is None:
            raise ToolError(
                f"the server {self.server.name} can't be reached: {self.reason}",
                hint=f"hermes mcp test {self.server.name}",
            )
        return self._client

    async def call(self, tool: str, arguments: dict[str, Any], behalf: Behalf) -> dict[str, Any]:
        """Call a tool; what the server answered, as the protocol writes it."""
        context = behalf.context

        pace = Pace(*_PROGRESS_PACE)

        def report(progress: float, total: float | None, message: str | None) -> None:
            if not pace.allows():
                return
            fraction = progress / total if total and 0 <= progress <= total else None
            context.progress(plain(message, _PROGRESS_TEXT) or f"{progress:g}", fraction=fraction)

        async def told(progress: float, total: float | None, message: str | None) -> None:
            report(progress, total, message)

        watched = context.report is not None
        seconds = self.server.call_seconds

        async def call(client: Client) -> dict[str, Any]:
            found = self._pipes
            if found is not None and tool not in self._asking:
                answer = await found.direct.call(
                    tool,
                    arguments,
                    seconds=seconds,
                    meta=self._wire.meta,
                    report=report if watched else None,
                )
                if answer.get("resultType", "complete") == "complete":
                    mend_result(answer)
                    return answer
                # It wants to know something first: the SDK knows how to go on from there.
                self._asking.add(tool)
            said = await client.call_tool(
                tool,
                arguments,
                read_timeout_seconds=seconds,
                progress_callback=told if watched else None,
            )
            whole: dict[str, Any] = said.model_dump(by_alias=True, mode="json", exclude_none=True)
            return whole

        result: dict[str, Any] = await self.use(call, tool, behalf, limited=True)
        return result

    async def use(
        self,
        work: Callable[[Client], Awaitable[Any]],
        what: str,
        behalf: Behalf | None,
        *,
        limited: bool = False,
    ) -> Any:
        """Do something with the client for somebody; trouble comes as a `ToolError`.

        Args:
            limited: The work knows itself how long it may take.
        """
        client = await self.ready()
        begun = time.monotonic()
        with self._bridging.on_behalf_of(behalf):
            try:
                async with asyncio.timeout(None if limited else self.server.call_seconds):
                    answer = await work(client)
            except TimeoutError:
                failure: BaseException = MCPError(REQUEST_TIMEOUT, "no answer in time")
            except (*_TROUBLE, BaseExceptionGroup) as error:
                failure = error
            else:
                # Whatever happened before: it works.
                self.tries = 0
                return answer
        seconds = time.monotonic() - begun
        if is_lost(failure, self.server):
            if self.server.remote and self._client is client:
                # Nobody else would notice.
                self.drop(connect_trouble(failure))
            # Why it was lost is known in a moment.
            await self._parted(client)
        raise call_trouble(failure, self, what, seconds)

    async def _parted(self, client: Client) -> None:
        """Wait until a lost connection is known to be so; one that only we lost is dropped."""
        for _ in range(60):
            if self._client is not client and self.state != "ending":
                return
            await asyncio.sleep(SETTLE_SECONDS)
        if self._client is client:
            self.drop()


def _sentence(error: HermesError) -> str:
    return f"{error} ({error.hint})" if error.hint else str(error)
