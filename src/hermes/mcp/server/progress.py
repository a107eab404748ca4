"""How far a call is, told to a client that asked to be told.

Handlers report from whichever thread they run in; what they say is passed on in the loop, the
newest of several at once. A call that says nothing is mentioned now and then all the same, since
clients give up on requests that they hear nothing of.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING

import anyio

from hermes.mcp.texts import whole

if TYPE_CHECKING:
    from mcp.server.session import ServerSession

    from hermes.runtime.events import Event, EventBus

# At most one notification in this time, and one at least in the other.
_APART_SECONDS = 0.02
_SILENT_SECONDS = 10.0
_LINE = 500


class Progress:
    """Watches one call, and tells its client until it is closed."""

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
        self._unsubscribe = events.subscribe(self._heard)
        self._telling = asyncio.ensure_future(self._tell())

    def attend(self, session: ServerSession) -> None:
        """Tell another request from now on: the one that the call goes on with."""
        self._session = session

    async def told(self) -> None:
        """Until the client is told of all that was reported so far."""
        # What was reported just now is not noted yet.
        await asyncio.sleep(0)
        async with self._saying:
            if self._news.is_set():
                await self._say()

    async def close(self) -> None:
        """Say what is still unsaid, and no more."""
        self._unsubscribe()
        await self.told()
        self._telling.cancel()

    def _heard(self, event: Event) -> None:
        """In the thread of whoever reports."""
        if event.call_id != self._call_id:
            return
        if event.kind == "progress":
            said, fraction = str(event.data["message"]), event.data["fraction"]
        elif event.kind == "output":
            said, fraction = str(event.data["text"]).rstrip().rpartition("\n")[2], None
        else:
            return
        try:
            self._loop.call_soon_threadsafe(self._note, said, fraction)
        except RuntimeError:
            # The loop is closed, and nobody is there to be told.
            return

    def _note(self, said: str, fraction: float | None) -> None:
        self._message = whole(said[:_LINE])
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
