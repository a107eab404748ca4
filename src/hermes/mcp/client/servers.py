"""Server pool: the tools of all configured servers in the registry, their connections on an event
loop of their own.
"""

from __future__ import annotations

import threading
import time

from hermes.core.availability import require
from hermes.core.errors import ConfigError, HermesError, UnavailableError
from hermes.core.log import Log
from hermes.core.wire_names import toolset_name
from hermes.mcp.client.listing import remembered
from hermes.mcp.client.pins import Pins
from hermes.mcp.client.registration import Offering, offering, register
from hermes.mcp.client.resource_tools import with_reach
from hermes.mcp.client.server_log import Journal
from hermes.mcp.client.settings import Settings, servers

TYPE_CHECKING = False

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine, Sequence
    from concurrent.futures import Future
    from typing import Any

    from hermes.core.context import ToolContext
    from hermes.core.entry import ToolEntry
    from hermes.mcp.client.connection import Link
    from hermes.mcp.client.listing import Listing
    from hermes.mcp.client.registration import Invoke
    from hermes.mcp.client.settings import Server
    from hermes.runtime.app import App
    from hermes.runtime.events import Kind


log = Log("hermes.mcp")

# How long the program has for itself before the SDK is imported beside it.
QUIET_SECONDS = 1.0
# How often approvals given elsewhere are looked for while a tool waits for one.
_LOOK_SECONDS = 0.5
CLOSE_SECONDS = 12.0
# Nothing more will come of a server in one of these.
OVER = ("failed", "needs_reauth", "unusable", "disabled")


class Known:
    """What is known of one server here and now."""

    __slots__ = ("link", "listing", "offering", "server")

    def __init__(self, server: Server) -> None:
        self.server = server
        self.listing: Listing | None = None
        self.offering: Offering | None = None
        self.link: Link | None = None

    @property
    def state(self) -> str:
        """One word; `link.py` has the list."""
        if self.server.problem:
            return "unusable"
        if not self.server.enabled:
            return "disabled"
        return "idle" if self.link is None else self.link.state

    @property
    def reason(self) -> str:
        """Why it is in this state, where there is something to say."""
        return self.server.problem or ("" if self.link is None else self.link.reason)


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
        self._hurry = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stirred: asyncio.Event | None = None
        self._thread: threading.Thread | None = None
        self._started = threading.Event()
        self._trouble: HermesError | None = None
        self._closed = False
        self._pins_stamp = self.pins.stamp()
        self.known = {one.name: Known(one) for one in servers(app.config, app.project)}
        for known in self.known.values():
            if not known.server.problem and known.server.enabled:
                self._name_toolset(known.server.name)
                listing = remembered(known.server)
                if listing is not None:
                    self._offer(known, listing, judged=True)

    # -- what is offered ----------------------------------------------------------------------

    def _name_toolset(self, server: str) -> None:
        """Let a server's toolset be asked for before the server has said what is in it."""
        name, toolsets = toolset_name(server), self._app.toolsets
        if name not in toolsets:
            toolsets.create(name, f"Tools of the MCP server {server}")

    def _offer(self, known: Known, listing: Listing, *, judged: bool = False) -> None:
        """Register what a server lists; the first listing of a server is taken as approved."""
        server = known.server
        try:
            pin = self.pins.of(server.name)
            if pin is None:
                self.pins.approve(server, listing.tools)
                pin = self.pins.of(server.name)
        except (ConfigError, OSError) as error:
            server.problem = str(error)
            return

        def invoke(tool: str, schema: Any) -> Invoke:
            return lambda arguments, context: self._call(known, tool, schema, arguments, context)

        with self._lock:
            now = offering(server, listing, pin, invoke, known=judged)
            with_reach(now, server, listing, self)
            changed = register(self._registry, known.offering, now)
            known.listing, known.offering = listing, now
            self._changed.notify_all()
        self._stir()
        if changed:
            self._emit("tools_changed", server=server.name, tools=len(now.entries))

    def _emit(self, kind: Kind, **data: Any) -> None:
        # Only where there is a runtime already: making one is not for us to do.
        if "runtime" in vars(self._app):
            self._app.runtime.events.emit(kind, **data)

    def entries(self, name: str) -> list[ToolEntry]:
        """The tools of one server that are registered now."""
        found = self.known[name].offering
        return list(found.entries.values()) if found is not None else []

    def refresh(self) -> None:
        """Take in approvals that were given meanwhile."""
        stamp = self.pins.stamp()
        if stamp == self._pins_stamp:
            return
        self._pins_stamp = stamp
        for known in self.known.values():
            if known.listing is not None:
                self._offer(known, known.listing)

    # -- connections --------------------------------------------------------------------------

    def connect(self, *, now: bool = False) -> None:
        """Have servers connected in the background, those marked lazy at their first use."""
        with self._lock:
            if self._closed:
                raise UnavailableError("the connections to servers are closed")
            if self._thread is None:
                import atexit

                self._thread = threading.Thread(target=self._run, name="hermes-mcp", daemon=True)
                self._thread.start()
                atexit.register(self.close)
        if now:
            self._hurry.set()

    def wait(self, seconds: float | None = None, names: Sequence[str] | None = None) -> list[str]:
        """Wait until servers have said what they have; a line for each that has not.

        A server that is remembered is not waited for.
        """
        limit = self.settings.wait_seconds if seconds is None else seconds
        wanted = [self.known[name] for name in names or self.known if name in self.known]
        wanted = [one for one in wanted if names or not (one.server.lazy or one.listing)]
        if any(one.listing is None and one.state not in OVER for one in wanted):
            self.connect(now=True)
            for one in wanted:
                self._want(one)
        until = time.monotonic() + limit
        with self._changed:
            while (left := until - time.monotonic()) > 0 and self._trouble is None:
                if all(one.listing is not None or one.state in OVER for one in wanted):
                    break
                self._changed.wait(left)
        if self._trouble is not None:
            raise self._trouble
        return [
            f"{one.server.name}: {one.reason or 'still ' + one.state}"
            for one in wanted
            if one.listing is None and one.state != "disabled"
        ]

    def renew(self, name: str) -> None:
        """Believe nothing that is remembered of a server: it is to be asked again."""
        self.known[name].listing = None

    def reconnect(self, name: str) -> None:
        """End a server's connection and make it anew."""
        known = self.known[name]
        self._in_loop(lambda: known.link.drop() if known.link is not None else None)

    def ask(self, name: str, work: Callable[[Any], Any], what: str, seconds: float = 60.0) -> Any:
        """What the SDK's client of a server gives for some work, from code that can't await."""
        known = self.known[name]
        future = self._submit(self._link(known).use(work, what, None))
        return future.result(seconds)

    def close(self) -> None:
        """End every connection, and every process that was started for one."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._hurry.set()
        self._stir()
        thread = self._thread
        if thread is None:
            return
        import atexit

        atexit.unregister(self.close)
        if thread is not threading.current_thread():
            thread.join(CLOSE_SECONDS)

    def _want(self, known: Known) -> None:
        if known.server.problem or not known.server.enabled:
            return
        self._in_loop(lambda: known.link.want() if known.link is not None else None)

    def _in_loop(self, work: Callable[[], Any]) -> None:
        self.connect(now=True)
        self._started.wait()
        if self._trouble is not None:
            raise self._trouble
        assert self._loop is not None
        self._loop.call_soon_threadsafe(work)

    def _link(self, known: Known) -> Link:
        """The connection of a server, its loop running."""
        if known.link is None:
            if known.server.problem:
                raise ConfigError(known.server.problem)
            self.connect(now=True)
            self._started.wait()
            if self._trouble is not None:
                raise self._trouble
        if known.link is None:
            raise UnavailableError(f"the server {known.server.name} is {known.state}")
        return known.link

    def _submit(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        import asyncio

        assert self._loop is not None
        try:
            if self._closed:
                # The loop may still be there, and nobody in it to go on with new work.
                raise RuntimeError
            return asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError:
            work.close()
            raise UnavailableError("the connections to servers are closed") from None

    # -- calls --------------------------------------------------------------------------------

    async def _call(
        self,
        known: Known,
        tool: str,
        schema: Any,
        arguments: dict[str, Any],
        context: ToolContext,
    ) -> Any:
        from hermes.mcp.client.results import result_of
        from hermes.mcp.client.server_requests import Behalf

        behalf = Behalf(context)
        name = known.server.name
        answer = await self.through(name, lambda link: link.call(tool, arguments, behalf))
        return result_of(answer, schema)

    async def through(self, name: str, work: Callable[[Link], Coroutine[Any, Any, Any]]) -> Any:
        """What a connection gives for some work, awaited in the caller's own loop."""
        import asyncio

        known = self.known[name]
        if known.link is None:
            # The thread is only just begun: waiting for it must not hold the caller's loop.
            link = await asyncio.to_thread(self._link, known)
        else:
            link = known.link
        future = self._submit(work(link))
        return await asyncio.wrap_future(future)

    # -- the thread ---------------------------------------------------------------------------

    def _run(self) -> None:
        self._hurry.wait(QUIET_SECONDS)
        if self._closed:
            self._started.set()
            return
        import asyncio

        try:
            asyncio.run(self._serve())
        except HermesError as error:
            self._trouble = error
        finally:
            self._started.set()
            with self._changed:
                self._changed.notify_all()

    async def _serve(self) -> None:
        import asyncio

        self._loop = asyncio.get_running_loop()
        self._stirred = stirred = asyncio.Event()
        made = links(self)
        tasks = [self._kept_going(link) for link in made]
        self._started.set()
        for link in made:
            if not link.server.lazy:
                link.want()
        try:
            while not self._closed:
                held = any(one.offering and one.offering.suspended for one in self.known.values())
                try:
                    async with asyncio.timeout(_LOOK_SECONDS if held else None):
                        await stirred.wait()
                    stirred.clear()
                except TimeoutError:
                    self.refresh()
        finally:
            for link, task in zip(made, tasks, strict=True):
                link.stop()
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            with self._changed:
                self._changed.notify_all()

    def _kept_going(self, link: Link) -> asyncio.Task[None]:
        import asyncio

        def ended(task: asyncio.Task[None]) -> None:
            error = None if task.cancelled() else task.exception()
            if error is not None:
                # A bug of ours: whoever waits for this server must not wait for ever.
                log.warning("the connection to %s broke: %r", link.server.name, error)
                link.give_up(f"unexpected {type(error).__name__}: {error}")

        task = asyncio.create_task(link.run())
        task.add_done_callback(ended)
        return task

    def _stir(self) -> None:
        """Have the loop look again at what there is to do; from any thread."""
        if self._loop is not None and self._stirred is not None:
            try:
                self._loop.call_soon_threadsafe(self._stirred.set)
            except RuntimeError:
                # It has ended already.
                return

    def note_state(self, link: Link) -> None:
        """Tell whoever waits or watches that a server's state changed."""
        with self._changed:
            self._changed.notify_all()
        if link.reason and link.state != "waiting":
            self._emit("trouble", message=f"MCP server {link.server.name}: {link.reason}")

    def note_listing(self, link: Link, listing: Listing) -> None:
        """Take in what a server lists, and remember it."""
        try:
            listing.keep(link.server.name)
        except OSError as error:
            link.journal.note(f"what it has can't be remembered: {error}")
        self._offer(self.known[link.server.name], listing)


def links(servers: Servers) -> list[Link]:
    """A connection for each server that can be used; raises when the SDK is not installed."""
    require("mcp", extra="mcp")
    import logging

    from hermes.mcp.client.connection import Link

    for name in ("mcp", "client"):
        # What the SDK has to say of a server's mistakes would be printed into whatever is on the
        # screen; it is told with the call, or in the server's log.
        if not logging.getLogger(name).handlers:
            logging.getLogger(name).addHandler(logging.NullHandler())

    made = []
    for known in servers.known.values():
        if known.server.problem or not known.server.enabled:
            continue
        known.link = Link(
            known.server,
            Journal(known.server.name),
            project=servers.project,
            settings=servers.settings,
            legacy=known.listing is not None and known.listing.legacy,
            on_state=servers.note_state,
            on_listing=servers.note_listing,
        )
        made.append(known.link)
    return made
