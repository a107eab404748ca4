"""Turn lock: one turn at a time per conversation, in order, across threads and event loops."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from hermes.core.errors import HermesError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

# The turns that the current code runs in, outermost first.
_enclosing: ContextVar[tuple[object, ...]] = ContextVar("enclosing_turns", default=())


class TurnLock:
    """A FIFO lock that event loops of several threads share."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held = False
        self._turn: object = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiters: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Hold the lock for a block.

        Raises `HermesError` inside a turn of the same conversation: it would wait for itself.
        """
        enclosing = _enclosing.get()
        if self._turn in enclosing:
            raise HermesError(
                "this conversation is in the middle of a turn, and that is what asks",
                hint="Use another Agent, or steer().",
            )
        await self._acquire()
        self._turn = turn = object()
        self._loop = asyncio.get_running_loop()
        token = _enclosing.set((*enclosing, turn))
        try:
            yield
        finally:
            _enclosing.reset(token)
            self._turn = self._loop = None
            self._release()

    def used_by(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Whether a turn runs or waits in this event loop; blocking it would be a deadlock."""
        with self._lock:
            return self._loop is loop or any(w.get_loop() is loop for w in self._waiters)

    async def _acquire(self) -> None:
        with self._lock:
            if not self._held:
                self._held = True
                return
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            with self._lock:
                acquired = waiter not in self._waiters
                if not acquired:
                    self._waiters.remove(waiter)
            if acquired:
                # Cancelled at the moment of acquisition: pass the lock on.
                self._release()
            raise

    def _release(self) -> None:
        with self._lock:
            while self._waiters:
                waiter = self._waiters.popleft()
                try:
                    waiter.get_loop().call_soon_threadsafe(_wake, waiter)
                except RuntimeError:
                    # The loop of this waiter is closed.
                    continue
                return
            self._held = False


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
