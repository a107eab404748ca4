"""The call that a server works for: who is asked on its behalf, and in which loop."""

from __future__ import annotations

import asyncio
import contextvars
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from concurrent.futures import Future
    from typing import Any

    from hermes.core.context import ToolContext


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
        self._asked: set[Future[Any]] = set()

    async def ask(self, question: Coroutine[Any, Any, Any]) -> Any:
        """What comes of a question, put from any loop; None when the call ends before that."""
        try:
            asked = self._around.copy().run(asyncio.run_coroutine_threadsafe, question, self._loop)
        except RuntimeError:
            # Its loop is closed.
            question.close()
            return None
        self._asked.add(asked)
        try:
            return await asyncio.wrap_future(asked)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return None
        finally:
            self._asked.discard(asked)

    def end(self) -> None:
        """The call is over: nobody waits for its questions any more."""
        for asked in tuple(self._asked):
            asked.cancel()
