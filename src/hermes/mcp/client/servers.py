"""Server pool: the tools of all servers in the registry, their connections in one thread.

Making it reads the cached listings and registers their tools; that needs neither the SDK nor a
server. Connections live on an event loop in a thread of its own. It starts a moment after the
program, so that importing the SDK does not slow the start, or at once when a tool is called.
"""

from __future__ import annotations

import threading
import time

from hermes.core.availability import require
from hermes.core.errors import ConfigError, HermesError, UnavailableError
from hermes.core.log import Log
from hermes.core.wire_names import toolset_name
from hermes.mcp.client.listing import cached_listing
from hermes.mcp.client.pins import Pins
from hermes.mcp.client.registration import CheckedTools, add_resource_tools, check_listing, register
from hermes.mcp.client.server_log import ServerLog
from hermes.mcp.client.settings import Settings, servers
from hermes.runtime.loop_thread import LoopThread

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine, Sequence
    from concurrent.futures import Future
    from typing import Any

    from hermes.core.context import ToolContext
    from hermes.core.entry import ToolEntry
    from hermes.mcp.client.connection import Connection
    from hermes.mcp.client.listing import Listing
    from hermes.mcp.client.registration import Invoke
    from hermes.mcp.client.settings import Server
    from hermes.runtime.app import App
    from hermes.runtime.hooks import Kind

log = Log("hermes.mcp")

START_DELAY_SECONDS = 1.0  # before the SDK is imported in the background
# How often the approvals file is checked while a tool waits for an approval.
_APPROVAL_CHECK_SECONDS = 0.5
CLOSE_SECONDS = 12.0
FINAL_STATES = ("failed", "needs_reauth", "unusable", "disabled")


class ServerState:
    """One server: its definition, listing, registered tools and connection."""

    __slots__ = ("connection", "listing", "server", "tools")

    def __init__(self, server: Server) -> None:
        self.server = server
        self.listing: Listing | None = None
        self.tools: CheckedTools | None = None
        self.connection: Connection | None = None

    @property
    def state(self) -> str:
        """One word; `connection.py` has the list."""
        if self.server.problem:
            return "unusable"
        if not self.server.enabled:
            return "disabled"
        return "idle" if self.connection is None else self.connection.state

    @property
    def reason(self) -> str:
        """The reason of the state, if there is one."""
        return self.server.problem or ("" if self.connection is None else self.connection.reason)


class Servers:
    """The servers of one `App`."""

    def __init__(self, app: App) -> None:
        self._registry = app.registry
        self.project = app.project
        self._app = app
        self.settings = Settings(app.config.values)
        self.pins = Pins()
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._start_now = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake: asyncio.Event | None = None
        self._thread = LoopThread("hermes-mcp", main=self._run, before=self._quiet)
        self._started = threading.Event()
        self._error: HermesError | None = None
        self._closed = False
        self._pins_stamp = self.pins.stamp()
        self.states = {
            server.name: ServerState(server) for server in servers(app.config, app.project)
        }
        for state in self.states.values():
            if not state.server.problem and state.server.enabled:
                self._create_toolset(state.server.name)
                listing = cached_listing(state.server)
                if listing is not None:
                    self._register(state, listing, checked_before=True)

    # -- tools --------------------------------------------------------------------------------

    def _create_toolset(self, server: str) -> None:
        """The toolset of a server exists before its tools are known."""
        name, toolsets = toolset_name(server), self._app.toolsets
        if name not in toolsets:
            toolsets.create(name, f"Tools of the MCP server {server}")

    def _register(
        self, state: ServerState, listing: Listing, *, checked_before: bool = False
    ) -> None:
        """Register the tools of a listing; the first listing of a server counts as approved."""
        server = state.server
        try:
            pin = self.pins.of(server.name)
            if pin is None:
                self.pins.approve(server, listing.tools)
                pin = self.pins.of(server.name)
        except (ConfigError, OSError) as error:
            server.problem = str(error)
            return

        def invoke(tool: str, schema: Any) -> Invoke:
            return lambda arguments, context: self._call(state, tool, schema, arguments, context)

        with self._lock:
            tools = check_listing(server, listing, pin, invoke, checked_before=checked_before)
            add_resource_tools(tools, server, listing, self)
            changed = register(self._registry, state.tools, tools)
            state.listing, state.tools = listing, tools
            self._changed.notify_all()
        self._wake_loop()
        if changed:
            self._emit("tools_changed", server=server.name, tools=len(tools.entries))

    def _emit(self, kind: Kind, **data: Any) -> None:
        # Only if there is a runtime: this must not create one.
        if "runtime" in vars(self._app):
            self._app.runtime.events.emit(kind, **data)

    def entries(self, name: str) -> list[ToolEntry]:
        """The registered tools of one server."""
        tools = self.states[name].tools
        return list(tools.entries.values()) if tools is not None else []

    def refresh(self) -> None:
        """Apply approvals that another process gave."""
        stamp = self.pins.stamp()
        if stamp == self._pins_stamp:
            return
        self._pins_stamp = stamp
        for state in self.states.values():
            if state.listing is not None:
                self._register(state, state.listing)

    # -- connections --------------------------------------------------------------------------

    def connect(self, *, now: bool = False) -> None:
        """Connect in the background; servers marked lazy connect at their first use."""
        with self._lock:
            if self._closed:
                raise UnavailableError("the connections to servers are closed")
            if not self._thread.started:
                import atexit

                self._thread.start()
                atexit.register(self.close)
        if now:
            self._start_now.set()

    def wait(self, seconds: float | None = None, names: Sequence[str] | None = None) -> list[str]:
        """Wait for the listings of servers; one line for each that has none.

        A server with a cached listing is not waited for.
        """
        limit = self.settings.wait_seconds if seconds is None else seconds
        states = [self.states[name] for name in names or self.states if name in self.states]
        states = [s for s in states if names or not (s.server.lazy or s.listing)]
        if any(s.listing is None and s.state not in FINAL_STATES for s in states):
            self.connect(now=True)
            for state in states:
                self._want(state)
        deadline = time.monotonic() + limit
        with self._changed:
            while (left := deadline - time.monotonic()) > 0 and self._error is None:
                if all(s.listing is not None or s.state in FINAL_STATES for s in states):
                    break
                self._changed.wait(left)
        if self._error is not None:
            raise self._error
        return [
            f"{s.server.name}: {s.reason or 'still ' + s.state}"
            for s in states
            if s.listing is None and s.state != "disabled"
        ]

    def discard_listing(self, name: str) -> None:
        """Ignore the cached listing of a server: `wait` fetches a new one."""
        self.states[name].listing = None

    def reconnect(self, name: str) -> None:
        """Drop the connection of a server and make a new one."""
        state = self.states[name]
        self._in_loop(lambda: state.connection.drop() if state.connection is not None else None)

    def close(self) -> None:
        """Close every connection and end the processes of all servers."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._start_now.set()
        self._wake_loop()
        if self._thread.started:
            import atexit

            atexit.unregister(self.close)
            self._thread.join(CLOSE_SECONDS)

    def _want(self, state: ServerState) -> None:
        if state.server.problem or not state.server.enabled:
            return
        self._in_loop(lambda: state.connection.want() if state.connection is not None else None)

    def _in_loop(self, work: Callable[[], Any]) -> None:
        self._start_loop()
        assert self._loop is not None
        self._loop.call_soon_threadsafe(work)

    def _start_loop(self) -> None:
        self.connect(now=True)
        self._started.wait()
        if self._error is not None:
            raise self._error

    def _connection(self, state: ServerState) -> Connection:
        """The connection of a server, with its loop running."""
        if state.connection is None:
            if state.server.problem:
                raise ConfigError(state.server.problem)
            self._start_loop()
        if state.connection is None:
            raise UnavailableError(f"the server {state.server.name} is {state.state}")
        return state.connection

    # -- calls --------------------------------------------------------------------------------

    async def _call(
        self,
        state: ServerState,
        tool: str,
        schema: Any,
        arguments: dict[str, Any],
        context: ToolContext,
    ) -> Any:
        from hermes.mcp.client.results import tool_result
        from hermes.mcp.client.server_requests import Caller

        caller = Caller(context)
        answer = await self.submit(
            state.server.name, lambda connection: connection.call(tool, arguments, caller)
        )
        return tool_result(answer, schema)

    async def submit(
        self, name: str, work: Callable[[Connection], Coroutine[Any, Any, Any]]
    ) -> Any:
        """Run `work` on the loop of the connections; await it on the caller's loop."""
        import asyncio

        state = self.states[name]
        connection = state.connection
        if connection is None:
            # The thread may be starting: that wait must not block the caller's loop.
            connection = await asyncio.to_thread(self._connection, state)
        return await asyncio.wrap_future(self._submit(work(connection)))

    def _submit(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        import asyncio

        assert self._loop is not None
        try:
            if self._closed:
                raise RuntimeError
            return asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError:
            work.close()
            raise UnavailableError("the connections to servers are closed") from None

    # -- thread -------------------------------------------------------------------------------

    def _quiet(self) -> bool:
        """Wait until the program is past its start; whether connections are still wanted."""
        self._start_now.wait(START_DELAY_SECONDS)
        if self._closed:
            self._started.set()
        return not self._closed

    async def _run(self) -> None:
        try:
            await self._serve()
        except HermesError as error:
            self._error = error
        finally:
            self._started.set()
            with self._changed:
                self._changed.notify_all()

    async def _serve(self) -> None:
        import asyncio

        self._loop = asyncio.get_running_loop()
        self._wake = wake = asyncio.Event()
        connections = self._new_connections()
        tasks = [self._start(connection) for connection in connections]
        self._started.set()
        for connection in connections:
            if not connection.server.lazy:
                connection.want()
        try:
            while not self._closed:
                suspended = any(s.tools and s.tools.suspended for s in self.states.values())
                try:
                    async with asyncio.timeout(_APPROVAL_CHECK_SECONDS if suspended else None):
                        await wake.wait()
                    wake.clear()
                except TimeoutError:
                    self.refresh()
        finally:
            for connection, task in zip(connections, tasks, strict=True):
                connection.stop()
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            with self._changed:
                self._changed.notify_all()

    def _new_connections(self) -> list[Connection]:
        """A connection for each usable server; raises when the SDK is not installed."""
        require("mcp", extra="mcp")
        import logging

        from hermes.mcp.client.connection import Connection

        for name in ("mcp", "client"):
            # The SDK logs mistakes of servers, which would be printed over the chat. They are in
            # the error of the call and in the server's log.
            if not logging.getLogger(name).handlers:
                logging.getLogger(name).addHandler(logging.NullHandler())
        connections = []
        for state in self.states.values():
            if state.server.problem or not state.server.enabled:
                continue
            state.connection = Connection(
                state.server,
                ServerLog(state.server.name),
                project=self.project,
                settings=self.settings,
                legacy=state.listing is not None and state.listing.legacy,
                on_state=self._on_state,
                on_listing=self._on_listing,
            )
            connections.append(state.connection)
        return connections

    def _start(self, connection: Connection) -> asyncio.Task[None]:
        import asyncio

        def ended(task: asyncio.Task[None]) -> None:
            error = None if task.cancelled() else task.exception()
            if error is not None:
                # A bug: calls that wait for this server must not wait for ever.
                log.warning("the connection to %s broke: %r", connection.server.name, error)
                connection.give_up(f"unexpected {type(error).__name__}: {error}")

        task = asyncio.create_task(connection.run())
        task.add_done_callback(ended)
        return task

    def _wake_loop(self) -> None:
        """Wake `_serve`, from any thread."""
        if self._loop is not None and self._wake is not None:
            try:
                self._loop.call_soon_threadsafe(self._wake.set)
            except RuntimeError:
                # The loop is closed.
                return

    def _on_state(self, connection: Connection) -> None:
        with self._changed:
            self._changed.notify_all()
        if connection.reason and connection.state != "waiting":
            text = f"MCP server {connection.server.name}: {connection.reason}"
            self._emit("trouble", message=text)

    def _on_listing(self, connection: Connection, listing: Listing) -> None:
        try:
            listing.save(connection.server.name)
        except OSError as error:
            connection.log.note(f"its listing can't be cached: {error}")
        self._register(self.states[connection.server.name], listing)
