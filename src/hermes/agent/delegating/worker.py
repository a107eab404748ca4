"""One child at work: begun, watched, steered, ended, and begun again where it left off."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import Future
from typing import TYPE_CHECKING

import hermes.agent.delegating.record as record
import hermes.agent.delegating.reporting as reporting
from hermes.agent.delegating.making import conversation_for, task_id
from hermes.agent.delegating.purse import Purse
from hermes.agent.delegating.reporting import LIMITS, UNFINISHED, Child
from hermes.agent.delegating.signs import Signs
from hermes.core.context import Cancellation
from hermes.core.errors import HermesError
from hermes.core.log import Log
from hermes.core.messages import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from hermes.agent.delegating.delegation import Delegation
    from hermes.agent.loop import Conversation, Journal, Result
    from hermes.core.context import ToolContext
    from hermes.runtime.deferral import Offer

log = Log("hermes.agent")

# How long one that was told to stop may take before it is left behind.
GRACE_SECONDS = 3.0


class Worker:
    """One agent with one task, and what is known of it. Its methods may be called from anywhere."""

    def __init__(self, parent: Delegation, handle: str, task: Mapping[str, Any]) -> None:
        self.handle = handle
        self.task = dict(task)
        self.state = "waiting"
        self.report: dict[str, Any] = {}
        self.done: Future[dict[str, Any]] = Future()
        self.background = False
        self.journal: Journal | None = None
        self.turns: list[str] = []
        self.inner: Delegation | None = None
        self.app = parent.app
        self._parent = parent
        self._signs = Signs()
        self._purse = Purse(parent.budget, self._signs.beat)
        self._conversation: Conversation | None = None

    # -- from any thread ----------------------------------------------------------------------

    def begin(
        self, around: ToolContext, text: str, offer: Offer, *, background: bool, left_out: list[str]
    ) -> None:
        """Have it work at a request, in the crew's thread, as soon as there is room."""
        parent = self._parent
        self.background = background
        self.done = Future()
        self.state = "waiting"
        self._around = around
        self._text = text
        self._offer = offer
        self._left_out = left_out
        self._why = ""
        self._ending = False
        self._signs.progress = None if background else self._show
        if around.turn not in self.turns:
            self.turns.append(around.turn)
        # One that works beside its parent does not stop with the call that began it.
        self._stop = Cancellation(None if background else around.cancellation)
        if self.journal is None:
            self.journal = record.new_journal(
                parent.journal,
                name=task_id(around, self.handle),
                workspace=around.workspace,
                model=parent.provider.model,
                title=str(self.task["goal"]),
            )
        record.begun(
            parent.journal, self.handle, self.task, session=self.journal.id, turns=self.turns
        )
        parent.crew.loop.call_soon_threadsafe(self._start)

    def cancel(self, reason: str) -> None:
        """Have it stop; the report says why."""
        self._parent.crew.loop.call_soon_threadsafe(self._end, reason)

    def steer(self, text: str) -> None:
        """Tell it something; it reads that at its next step."""
        self._parent.crew.loop.call_soon_threadsafe(self._steer, text)

    def extend(self, seconds: float) -> None:
        """Let it work for so long from now on."""
        self.task["timeout_seconds"] = round(self._signs.seconds + seconds, 1)
        self._parent.crew.loop.call_soon_threadsafe(self._wake)

    def settle(self, report: dict[str, Any]) -> None:
        """Take a report that somebody else made: it ended before this program began."""
        tokens = report["tokens"]
        self._purse.usage = Usage(tokens["input"], tokens["output"])
        self._purse.used_steps = report["steps"]
        self._told(report)

    @property
    def unfinished(self) -> bool:
        """Whether it works, or is about to."""
        return self.state in UNFINISHED and not self.done.done()

    def seen(self) -> Child:
        """The child at a glance."""
        signs, usage = self._signs, self._purse.usage
        working = self.unfinished
        return Child(
            self.handle,
            str(self.task["goal"]),
            self.state,
            round(signs.seconds, 1) if working else self.report["seconds"],
            self._purse.used_steps,
            usage.input + usage.output,
            reporting.one_line(signs.text if working else self.report["text"]),
            self.background,
            signs.last_tool,
        )

    # -- in the crew's thread -----------------------------------------------------------------

    def _start(self) -> None:
        loop = asyncio.get_running_loop()
        self._changed = loop.create_future()
        self._signs.began = time.monotonic()
        self._task = loop.create_task(self._live())
        self._task.add_done_callback(self._gone)

    def _end(self, reason: str) -> None:
        if not self._ending and not self.done.done():
            self._why, self._ending = reason, True
            self._task.cancel()

    def _steer(self, text: str) -> None:
        if self._conversation is not None:
            self._conversation.steer(text)
        else:
            self._text += f"\n\n{text}"

    def _wake(self) -> None:
        if not self._changed.done():
            self._changed.set_result(None)

    def _show(self, tools: str) -> None:
        self._around.progress(f"{self.handle}: {tools}")

    async def _live(self) -> None:
        """Wait for room, work, end; the report is there whatever happens on the way."""
        status, working = "cancelled", None
        try:
            async with self._parent.room:
                self.state = "running"
                working = self._at_work()
                unsubscribe = self.app.runtime.events.subscribe(self._signs.heard)
                try:
                    status = await self._watched(working)
                finally:
                    unsubscribe()
                    self._ending = True
                    await self._stopped(working, status)
        except asyncio.CancelledError:
            # It ends here and now: nobody waits for this task but through the report.
            pass
        except Exception as error:  # noqa: BLE001 - whatever it is, the parent is told
            status, self._why = reporting.failure(error, self.handle)
        self._finish(working, status)

    def _at_work(self) -> asyncio.Task[Result]:
        assert self.journal is not None
        made, self.inner = conversation_for(
            self._parent,
            self.handle,
            self._around,
            offer=self._offer,
            budget=self._purse,
            journal=self.journal,
            signs=self._signs,
            stop=self._stop,
        )
        self._conversation = made
        self._signs.begin(made)
        return asyncio.ensure_future(made.turn(self._text))

    async def _watched(self, working: asyncio.Task[Result]) -> str:
        """Wait for the end of the work, or for the limit that it runs into; which one."""
        while not working.done():
            wall, idle = (self.task.get(limit) or float("inf") for limit in LIMITS.values())
            left = {
                "timeout": wall - self._signs.seconds,
                "idle_timeout": idle - self._signs.silent,
            }
            limit = min(left, key=lambda name: left[name])
            if left[limit] <= 0:
                return limit
            # A silence that has not begun yet is looked for again when one may have.
            wait = min(left[limit], idle)
            await asyncio.wait(
                [working, self._changed],
                timeout=None if wait == float("inf") else wait,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if self._changed.done():
                self._changed = asyncio.get_running_loop().create_future()
        return "ended"

    async def _stopped(self, working: asyncio.Task[Result], status: str) -> None:
        """End the work and all that belongs to it; one that does not stop is left behind."""
        if not working.done():
            self._stop.cancel(f"{self.handle}: {self._why or status}")
            working.cancel()
            await asyncio.wait([working], timeout=GRACE_SECONDS)
        self._stop.close()
        if self.inner is not None:
            await self.inner.ended(f"{self.handle} has ended")
        await asyncio.to_thread(self.app.runtime.close_task, task_id(self._around, self.handle))

    # -- the end ------------------------------------------------------------------------------

    def _finish(self, working: asyncio.Task[Result] | None, status: str) -> None:
        """Make the report, keep it, and tell whoever waits or has to hear of it."""
        changed = reporting.files_changed(self, self._around, self._signs.tools)
        report = reporting.outcome(working, status, self._why, self.task, self.handle)
        self._complete(report, [*self.report.get("files_changed", ()), *changed])
        self._keep(report)
        self._told(report)

    def _keep(self, report: dict[str, Any]) -> None:
        journal = self.journal
        assert journal is not None
        own = getattr(journal, "store", None) is not None
        try:
            record.ended(
                self._parent.journal,
                report,
                self.task,
                session=journal.id,
                turns=self.turns,
                cost=None if own else (self._purse.usage, self._parent.provider.model),
            )
        except HermesError as error:
            log.warning("%s: its end can't be kept: %s", self.handle, error)

    def _complete(self, report: dict[str, Any], changed: list[str]) -> None:
        usage = self._purse.usage
        report["text"] = report["text"] or self._signs.text
        if self._left_out:
            report["tools_not_given"] = self._left_out
        # With those from before it was resumed.
        report["files_changed"] = list(dict.fromkeys(changed))
        report["tokens"] = {"input": usage.input, "output": usage.output}
        report["steps"] = self._purse.used_steps
        report["seconds"] = round(self._signs.seconds, 1)

    def _told(self, report: dict[str, Any]) -> None:
        self.report, self.state = report, report["status"]
        self._conversation = None
        if self.background:
            self._parent.tell(self)
        self.done.set_result(report)

    def _gone(self, task: asyncio.Task[None]) -> None:
        """See to it that nobody waits for one that ended before it had begun, or by a bug."""
        if self.done.done():
            return
        report = {"agent": self.handle, "status": "cancelled", "text": "", "reason": self._why}
        if not task.cancelled() and (error := task.exception()) is not None:
            report["status"], report["reason"] = reporting.failure(error, self.handle)
        self._complete(report, self.report.get("files_changed", []))
        self._keep(report)
        self._told(report)
