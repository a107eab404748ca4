"""Approvals that are asked elsewhere: in a chat, on a web page, by another program.

A front door says that somebody listens, shows what is pending, and hands over the answer. Nobody
listening means no, at once. A front door that goes away and comes back within the limit finds the
same requests pending; past the limit the answer is no.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.core.context import ApprovalRequest

ANSWERS = ("once", "session", "always", "deny")


class Pending:
    """One request that waits for its answer."""

    __slots__ = ("_done", "_loop", "answer", "id", "request")

    def __init__(self, number: int, request: ApprovalRequest) -> None:
        self.id = number
        self.request = request
        self.answer = ""
        self._loop = asyncio.get_running_loop()
        self._done = asyncio.Event()

    def settle(self, answer: str) -> None:
        """Let whoever waits go on."""
        self.answer = answer
        self._loop.call_soon_threadsafe(self._done.set)

    async def wait(self, seconds: float) -> str:
        """The answer; "deny" when none comes."""
        try:
            async with asyncio.timeout(seconds):
                await self._done.wait()
        except TimeoutError:
            return "deny"
        return self.answer


class PendingApprovals:
    """An approver whose questions are answered through `answer`, from any thread."""

    def __init__(self, *, seconds: float = 300.0) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._pending: dict[int, Pending] = {}
        self._listeners: list[Callable[[Pending], None]] = []

    def listen(self, show: Callable[[Pending], None]) -> Callable[[], None]:
        """Say that somebody can answer; `show` gets what is pending, now and later.

        Gives the function that says they went away.
        """
        with self._lock:
            self._listeners.append(show)
            waiting = list(self._pending.values())
        for pending in waiting:
            show(pending)

        def leave() -> None:
            with self._lock:
                if show in self._listeners:
                    self._listeners.remove(show)

        return leave

    def pending(self) -> list[Pending]:
        """What waits for an answer, oldest first."""
        with self._lock:
            return list(self._pending.values())

    def answer(self, number: int, answer: str) -> bool:
        """Answer one request; whether it was still waiting. Anything unclear is a no."""
        with self._lock:
            pending = self._pending.pop(number, None)
        if pending is None:
            return False
        pending.settle(answer if answer in ANSWERS else "deny")
        return True

    async def __call__(self, request: ApprovalRequest) -> str:
        """Ask, and wait for the answer."""
        with self._lock:
            listeners = list(self._listeners)
            if not listeners:
                return "deny"
            pending = Pending(next(self._numbers), request)
            self._pending[pending.id] = pending
        try:
            for show in listeners:
                show(pending)
            return await pending.wait(self._seconds)
        finally:
            with self._lock:
                self._pending.pop(pending.id, None)
