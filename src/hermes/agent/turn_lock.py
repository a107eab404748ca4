"""Turn lock: one turn at a time per conversation, first come, first served, across threads and
event loops.
"""

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

# The turns that this code was begun inside of.
_inside: ContextVar[tuple[object, ...]] = ContextVar("inside", default=())


class Turnstile:
    """Lets one through after the other, in the order they came."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken = False
        self._under_way: object = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """The block is nobody else's; raises `HermesError` in a turn that would wait for itself."""
        around = _inside.get()
        if self._under_way in around:
            raise HermesError(
                "this conversation is in the middle of a turn, and that is what asks",
                hint="Use another Agent, or steer().",
            )
        await self._enter()
        self._under_way = mark = object()
        self._loop = asyncio.get_running_loop()
        token = _inside.set((*around, mark))
        try:
            yield
        finally:
            _inside.reset(token)
            self._under_way = self._loop = None
            self._leave()

    def needs(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Whether a turn is under way or waits in a loop: who stops that would wait for ever."""
        with self._lock:
            return self._loop is loop or any(one.get_loop() is loop for one in self._waiting)

    async def _enter(self) -> None:
        with self._lock:
            if not self._taken:
                self._taken = True
                return
            mine = asyncio.get_running_loop().create_future()
            self._waiting.append(mine)
        try:
            await mine
        except asyncio.CancelledError:
            with self._lock:
                let_in = mine not in self._waiting
                if not let_in:
                    self._waiting.remove(mine)
            if let_in:
                # At the same moment: somebody else's, then.
                self._leave()
            raise

    def _leave(self) -> None:
        with self._lock:
            while self._waiting:
                following = self._waiting.popleft()
                try:
                    following.get_loop().call_soon_threadsafe(_let_in, following)
                except RuntimeError:
                    # Its loop has ended, and whoever waited in it.
                    continue
                return
            self._taken = False


def _let_in(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
