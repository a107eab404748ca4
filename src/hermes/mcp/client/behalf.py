"""The call that a server works for: who is asked on its behalf, and in which loop.

Over HTTP, and wherever the server answers a call with its question, it is known which call a
question belongs to: `working_for` goes with the call to the wire and comes back with what the
server says there. A program at the end of a pipe can't say it; then the question may belong to any
call under way.
"""

from __future__ import annotations

import asyncio
import contextvars
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence
    from concurrent.futures import Future
    from typing import Any

    from hermes.core.context import ToolContext

    Work = tuple["Behalf | None"]

# What is being done now, and for whom; None where that is not known.
working_for: contextvars.ContextVar[Work | None] = contextvars.ContextVar(
    "hermes_mcp_working_for", default=None
)


class Behalf:
    """Made in the loop that a call is awaited in.

    Front doors and providers belong to that loop and are no good in the thread of the connections.
    """

    __slots__ = ("_around", "_asked", "_loop", "context")

    def __init__(self, context: ToolContext) -> None:
        self.context = context
        self._loop = asyncio.get_running_loop()
        # What is traced in a question is part of the call.
        self._around = contextvars.copy_context()
        self._asked: set[_Question] = set()

    def same_person(self, other: Behalf) -> bool:
        """Whether whoever sits at this call's front door also sits at the other's."""
        one, two = self.context, other.context
        if one.session_id or two.session_id:
            return (one.session_id, one.front_door) == (two.session_id, two.front_door)
        return one.task is two.task and one.approver == two.approver

    def same_model(self, other: Behalf) -> bool:
        """Whether both calls' questions to a model would be asked, and counted, at one place."""
        return bool(self.context.services.get("sample") == other.context.services.get("sample"))

    async def ask(self, question: Coroutine[Any, Any, Any], calls: Sequence[Behalf]) -> Any:
        """What comes of a question, put from any loop; None when the calls end before that.

        Args:
            question: What is done in this call's loop.
            calls: Those that it may belong to, this one among them.
        """
        try:
            asked = self._around.copy().run(asyncio.run_coroutine_threadsafe, question, self._loop)
        except RuntimeError:
            # Its loop is closed.
            question.close()
            return None
        kept = _Question(asked, calls)
        try:
            return await asyncio.wrap_future(asked)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return None
        finally:
            kept.forget()

    def end(self) -> None:
        """The call is over: nobody waits for its questions any more."""
        for question in tuple(self._asked):
            question.without(self)


class _Question:
    """One that is open, and the calls that it may belong to; it ends with the last of them."""

    __slots__ = ("_asked", "_calls")

    def __init__(self, asked: Future[Any], calls: Sequence[Behalf]) -> None:
        self._asked = asked
        self._calls = set(calls)
        for call in calls:
            call._asked.add(self)  # noqa: SLF001 - the other half of this

    def without(self, call: Behalf) -> None:
        self._calls.discard(call)
        if not self._calls:
            self._asked.cancel()

    def forget(self) -> None:
        for call in self._calls:
            call._asked.discard(self)  # noqa: SLF001


class Whom:
    """Who is asked: the front door of a call, and whether the question is that call's own."""

    __slots__ = ("call", "calls", "sure")

    def __init__(self, calls: Sequence[Behalf], *, sure: bool) -> None:
        self.call = calls[-1]
        self.calls = calls
        self.sure = sure

    @property
    def context(self) -> ToolContext:
        """The surroundings of the call whose front door asks."""
        return self.call.context

    @property
    def call_id(self) -> str:
        """The call that the question belongs to; empty where that is not known."""
        return self.context.call_id if self.sure else ""

    async def ask(self, question: Coroutine[Any, Any, Any]) -> Any:
        """What comes of a question; None when nobody waits for the answer any more."""
        return await self.call.ask(question, self.calls)
