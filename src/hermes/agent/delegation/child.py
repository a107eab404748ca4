"""One child agent: its tools, its conversation, its run, and its restoration after a restart."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import Future
from typing import TYPE_CHECKING

import hermes.agent.delegation.child_journal as child_journal
import hermes.agent.delegation.child_report as child_report
from hermes.agent.budget import Purse
from hermes.agent.compaction import Compaction
from hermes.agent.delegation.child_report import LIMITS, UNFINISHED, Child, Signs
from hermes.agent.journal import resumed
from hermes.agent.loop import Conversation
from hermes.agent.system_prompt import system_text
from hermes.core.context import Cancellation
from hermes.core.errors import HermesError, ToolError
from hermes.core.log import Log
from hermes.core.messages import Usage
from hermes.runtime.tool_offer import Offer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from hermes.agent.budget import Budget
    from hermes.agent.delegation.supervisor import Delegation
    from hermes.agent.loop import Journal, Result
    from hermes.core.context import ToolContext
    from hermes.runtime.app import App


BLOCKED = frozenset({"delegate_task", "clarify", "memory", "send_message", "execute_code"})


def offered(
    app: App, parents: Offer, toolsets: Sequence[str] | None, *, hands_on: bool
) -> tuple[Offer, list[str]]:
    """What a child may use, and what was asked for and is not given.

    Args:
        app: The tools there are.
        parents: Those of its parent.
        toolsets: Those it was meant to have; all of its parent's if None.
        hands_on: Whether it may hand tasks on in turn.
    """
    names = parents.reachable - (BLOCKED - {"delegate_task"} if hands_on else BLOCKED)
    registry = app.registry
    left_out: list[str] = []
    if toolsets:
        asked = frozenset(app.toolsets.resolve(toolsets))
        left_out = sorted(asked.intersection(registry.names()) - names)
        names &= asked
        if not names:
            raise ToolError(
                f"you have no tools of {', '.join(toolsets)} to hand on",
                hint="Leave toolsets out, or name others.",
            )
    offer = Offer(
        registry,
        [entry for entry in registry.entries() if entry.name in names],
        index=app.index,
        defer_above=app.config.get("tools.defer_above"),
    )
    return offer, left_out


_CHILD = """\
Another agent handed you this one task. You see nothing of its conversation, and nobody can answer \
questions: where something is unclear, take the likeliest reading and say so. Your last answer is \
all that it gets to see: say what you found and did, with exact names, and what is left open."""


def conversation_for(
    parent: Delegation,
    handle: str,
    around: ToolContext,
    *,
    offer: Offer,
    budget: Budget,
    journal: Journal,
    signs: Signs,
    stop: Cancellation,
) -> tuple[Conversation, Delegation | None]:
    """A child's conversation, from its beginning or where it left off; and its own children.

    Args:
        parent: Who hands the task on.
        handle: The child's path.
        around: The surroundings of the call that hands it on.
        offer: The tools it may use.
        budget: What it may cost.
        journal: Where it is kept.
        signs: Told of whatever happens.
        stop: What stops all of its calls.
    """
    runtime = parent.app.runtime
    task = runtime.task(task_id(around, handle), workspace=around.workspace)
    task.env = dict(around.task.env)
    inner = parent.below(offer, budget, journal)
    services = around.services.replace(offer=offer, delegate=inner, journal=None, ask_person=None)

    def context(_: str) -> ToolContext:
        signs.beat()
        return runtime.context(
            task.id,
            session_id=around.session_id,
            turn=around.turn,
            front_door=around.front_door,
            agent_path=handle,
            approver=around.approver,
            cancellation=Cancellation(stop),
            services=services,
            profiles=around.profiles,
        )

    kind: type[Conversation] = getattr(parent.provider, "conversation", Conversation)
    made = kind(
        parent.provider,
        runtime,
        system=system_text(around.workspace, context=parent.project, more=[_CHILD]),
        offer=offer,
        context=context,
        journal=journal,
        budget=budget,
        compact=Compaction(),
        on_event=signs.said,
        messages=resumed(journal),
        at_once=parent.app.config.get("tools.parallel"),
    )
    if inner is not None:
        made.news = inner.news
        if made.messages:
            inner.recall(context(""))
    return made, inner


def task_id(around: ToolContext, handle: str) -> str:
    """The task that a child's processes and files belong to."""
    return f"{around.task_id}-{handle.replace('/', '-')}"


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
            self.journal = child_journal.new_journal(
                parent.journal,
                name=task_id(around, self.handle),
                workspace=around.workspace,
                model=parent.provider.model,
                title=str(self.task["goal"]),
            )
        child_journal.begun(
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
            child_report.one_line(signs.text if working else self.report["text"]),
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
            status, self._why = child_report.failure(error, self.handle)
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
        changed = child_report.files_changed(self, self._around, self._signs.tools)
        report = child_report.outcome(working, status, self._why, self.task, self.handle)
        self._complete(report, [*self.report.get("files_changed", ()), *changed])
        self._keep(report)
        self._told(report)

    def _keep(self, report: dict[str, Any]) -> None:
        journal = self.journal
        assert journal is not None
        own = getattr(journal, "store", None) is not None
        try:
            child_journal.ended(
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
            report["status"], report["reason"] = child_report.failure(error, self.handle)
        self._complete(report, self.report.get("files_changed", []))
        self._keep(report)
        self._told(report)


# Another program has it: it is neither ours to end nor to go on with.
ELSEWHERE = "running elsewhere"
_REPORTED = (
    "agent", "status", "reason", "text", "refused", "tools_not_given", "files_changed", "tokens",
    "steps", "seconds",
)  # fmt: skip


def recalled(
    parent: Delegation, handle: str, data: Mapping[str, Any], context: ToolContext
) -> Worker:
    """The child as it was left; one that was cut off has ended now, and the journal says so."""
    worker = Worker(parent, handle, {"goal": "", **data})
    above: Any = parent.journal
    worker.journal = journal = above.store.open(data["session"])
    worker.turns = list(data["turns"])
    report = {key: data[key] for key in _REPORTED if key in data}
    if data["status"] in UNFINISHED:
        report |= _pieced(worker, journal, context)
        if child_journal.cut_off(data):
            child_journal.ended(
                above, report, worker.task, session=journal.id, turns=worker.turns, cost=None
            )
        else:
            report["status"], report["reason"] = ELSEWHERE, "another program runs it"
    worker.settle(report)
    return worker


def _pieced(worker: Worker, journal: Any, context: ToolContext) -> dict[str, Any]:
    messages = journal.messages()
    usage = journal.totals().usage
    info = journal.store.info(journal.id)
    tools = {intent.tool for intent in journal.intents()}
    return {
        "status": "crashed",
        "reason": "the program that it ran in ended while it was at work",
        "text": child_report.last_text(messages),
        "files_changed": child_report.files_changed(worker, context, tools),
        "tokens": {"input": usage.input, "output": usage.output},
        "steps": sum(message.role == "assistant" for message in messages),
        "seconds": round(info.touched - info.began, 1),
    }
