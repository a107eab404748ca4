"""One child agent: its tools, its conversation, its run, and its restoration after a restart."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import Future
from typing import TYPE_CHECKING

from hermes.agent.budget import ChildBudget
from hermes.agent.compaction import Compaction
from hermes.agent.delegation.child_report import (
    LIMITS,
    UNFINISHED,
    Activity,
    ChildStatus,
    cut_off,
    failure,
    files_changed,
    last_text,
    new_journal,
    note_begin,
    note_end,
    one_line,
    report_of,
)
from hermes.agent.journal import resumed_messages
from hermes.agent.loop import Conversation
from hermes.agent.system_prompt import system_prompt
from hermes.core.context import Cancellation
from hermes.core.errors import HermesError, ToolError
from hermes.core.log import Log
from hermes.core.model_protocol import Usage
from hermes.runtime.tool_offer import Offer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from hermes.agent.delegation.supervisor import Delegation
    from hermes.agent.loop import Journal, Result
    from hermes.core.context import ToolContext
    from hermes.runtime.app import App

log = Log("hermes.agent")

# Tools that no child gets; `delegate_task` is allowed where it may have children of its own.
BLOCKED = frozenset({"delegate_task", "clarify", "memory", "send_message", "execute_code"})
# Time for a cancelled child to stop before it is abandoned.
GRACE_SECONDS = 3.0
# State of a child that another process runs: it can be neither ended nor resumed here.
ELSEWHERE = "running elsewhere"
_REPORT_FIELDS = (
    "agent", "status", "reason", "text", "refused", "tools_not_given", "files_changed", "tokens",
    "steps", "seconds",
)  # fmt: skip

_CHILD_PROMPT = """\
Another agent handed you this one task. You see nothing of its conversation, and nobody can answer \
questions: where something is unclear, take the likeliest reading and say so. Your last answer is \
all that it gets to see: say what you found and did, with exact names, and what is left open."""


def child_tools(
    app: App, parent: Offer, toolsets: Sequence[str] | None, *, delegates: bool
) -> tuple[Offer, list[str]]:
    """The tools of a child, and the requested tools that it does not get.

    Args:
        app: All tools.
        parent: The tools of its parent.
        toolsets: The requested toolsets; all of its parent's tools if None.
        delegates: Whether it may have children of its own.
    """
    names = parent.reachable - (BLOCKED - {"delegate_task"} if delegates else BLOCKED)
    registry = app.registry
    left_out: list[str] = []
    if toolsets:
        requested = frozenset(app.toolsets.resolve(toolsets))
        left_out = sorted(requested.intersection(registry.names()) - names)
        names &= requested
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


def task_id(context: ToolContext, handle: str) -> str:
    """The id of the task that owns a child's processes and files."""
    return f"{context.task_id}-{handle.replace('/', '-')}"


class ChildAgent:
    """A child agent and its state. Public methods may be called from any thread."""

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
        self._activity = Activity()
        self._budget = ChildBudget(parent.budget, self._activity.touch)
        self._conversation: Conversation | None = None

    # -- from any thread ----------------------------------------------------------------------

    def begin(
        self,
        context: ToolContext,
        text: str,
        offer: Offer,
        *,
        background: bool,
        left_out: list[str],
    ) -> None:
        """Start work on a request in the children's event loop, as soon as a slot is free."""
        parent = self._parent
        self.background = background
        self.done = Future()
        self.state = "waiting"
        self._context = context
        self._text = text
        self._offer = offer
        self._left_out = left_out
        self._reason = ""
        self._ending = False
        self._activity.progress = None if background else self._show_progress
        if context.turn not in self.turns:
            self.turns.append(context.turn)
        # A background child outlives the call that started it.
        self._stop = Cancellation(None if background else context.cancellation)
        if self.journal is None:
            self.journal = new_journal(
                parent.journal,
                name=task_id(context, self.handle),
                workspace=context.workspace,
                model=parent.provider.model,
                title=str(self.task["goal"]),
            )
        session = self.journal.id
        note_begin(parent.journal, self.handle, self.task, session=session, turns=self.turns)
        parent.loop_thread.loop.call_soon_threadsafe(self._start)

    def cancel(self, reason: str) -> None:
        """Cancel it; the report has the reason."""
        self._parent.loop_thread.loop.call_soon_threadsafe(self._cancel, reason)

    def steer(self, text: str) -> None:
        """Send it a message, which it reads at its next step."""
        self._parent.loop_thread.loop.call_soon_threadsafe(self._steer, text)

    def extend(self, seconds: float) -> None:
        """Set its time limit to `seconds` from now."""
        self.task["timeout_seconds"] = round(self._activity.seconds + seconds, 1)
        self._parent.loop_thread.loop.call_soon_threadsafe(self._wake)

    def settle(self, report: dict[str, Any]) -> None:
        """Take the report of an earlier run."""
        tokens = report["tokens"]
        self._budget.usage = Usage(tokens["input"], tokens["output"])
        self._budget.used_steps = report["steps"]
        self._publish(report)

    @property
    def unfinished(self) -> bool:
        """Whether it runs or waits for a slot."""
        return self.state in UNFINISHED and not self.done.done()

    def status(self) -> ChildStatus:
        """A snapshot of its state."""
        activity, usage = self._activity, self._budget.usage
        running = self.unfinished
        return ChildStatus(
            self.handle,
            str(self.task["goal"]),
            self.state,
            round(activity.seconds, 1) if running else self.report["seconds"],
            self._budget.used_steps,
            usage.input + usage.output,
            one_line(activity.text if running else self.report["text"]),
            self.background,
            activity.last_tool,
        )

    # -- in the children's event loop ---------------------------------------------------------

    def _start(self) -> None:
        loop = asyncio.get_running_loop()
        self._changed = loop.create_future()
        self._activity.began = time.monotonic()
        self._task = loop.create_task(self._live())
        self._task.add_done_callback(self._ended)

    def _cancel(self, reason: str) -> None:
        if not self._ending and not self.done.done():
            self._reason, self._ending = reason, True
            self._task.cancel()

    def _steer(self, text: str) -> None:
        if self._conversation is not None:
            self._conversation.steer(text)
        else:
            self._text += f"\n\n{text}"

    def _wake(self) -> None:
        if not self._changed.done():
            self._changed.set_result(None)

    def _show_progress(self, tools: str) -> None:
        self._context.progress(f"{self.handle}: {tools}")

    async def _live(self) -> None:
        """Wait for a slot, run, end; there is a report in every case."""
        status, turn = "cancelled", None
        try:
            async with self._parent.slots:
                self.state = "running"
                self._conversation = self._new_conversation()
                self._activity.begin(self._conversation)
                turn = asyncio.ensure_future(self._conversation.turn(self._text))
                unsubscribe = self.app.runtime.events.subscribe(self._activity.on_call_event)
                try:
                    status = await self._watch(turn)
                finally:
                    unsubscribe()
                    self._ending = True
                    await self._shut_down(turn, status)
        except asyncio.CancelledError:
            # The report says so; nothing awaits this task.
            pass
        except Exception as error:  # noqa: BLE001 - reported to the parent
            status, self._reason = failure(error, self.handle)
        changed = files_changed(self, self._context, self._activity.tools)
        report = report_of(turn, status, self._reason, self.task, self.handle)
        self._finish(report, [*self.report.get("files_changed", ()), *changed])

    def _new_conversation(self) -> Conversation:
        """Its conversation, new or resumed from its journal; sets `inner` where it may delegate."""
        parent, around, journal = self._parent, self._context, self.journal
        assert journal is not None
        runtime = self.app.runtime
        task = runtime.task(task_id(around, self.handle), workspace=around.workspace)
        task.env = dict(around.task.env)
        self.inner = inner = parent.nested(self._offer, self._budget, journal)
        # The journal and the person are the parent's.
        services = around.services.replace(
            offer=self._offer, delegate=inner, journal=None, ask_person=None
        )

        def context(_: str) -> ToolContext:
            self._activity.touch()
            return runtime.context(
                task.id,
                session_id=around.session_id,
                turn=around.turn,
                front_door=around.front_door,
                agent_path=self.handle,
                approver=around.approver,
                cancellation=Cancellation(self._stop),
                services=services,
                profiles=around.profiles,
            )

        conversation = Conversation(
            parent.provider,
            runtime,
            system=system_prompt(around.workspace, context=parent.project, more=[_CHILD_PROMPT]),
            offer=self._offer,
            context=context,
            journal=journal,
            budget=self._budget,
            compact=Compaction(),
            on_event=self._activity.on_model_event,
            messages=resumed_messages(journal),
            at_once=self.app.config.get("tools.parallel"),
        )
        if inner is not None:
            conversation.notices = inner.notices
            if conversation.messages:
                inner.restore(context(""))
        return conversation

    async def _watch(self, turn: asyncio.Task[Result]) -> str:
        """Wait for the end of the turn or for a limit; `ended`, or the limit's status."""
        while not turn.done():
            wall, idle = (self.task.get(limit) or float("inf") for limit in LIMITS.values())
            left = {
                "timeout": wall - self._activity.seconds,
                "idle_timeout": idle - self._activity.idle,
            }
            limit = min(left, key=lambda name: left[name])
            if left[limit] <= 0:
                return limit
            # While it waits for a person the idle timer stands still: look again later.
            wait = min(left[limit], idle)
            await asyncio.wait(
                [turn, self._changed],
                timeout=None if wait == float("inf") else wait,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if self._changed.done():
                self._changed = asyncio.get_running_loop().create_future()
        return "ended"

    async def _shut_down(self, turn: asyncio.Task[Result], status: str) -> None:
        """Cancel the turn, and end its children and processes; abandon it if it does not stop."""
        if not turn.done():
            self._stop.cancel(f"{self.handle}: {self._reason or status}")
            turn.cancel()
            await asyncio.wait([turn], timeout=GRACE_SECONDS)
        self._stop.close()
        if self.inner is not None:
            await self.inner.end_children(f"{self.handle} has ended")
        await asyncio.to_thread(self.app.runtime.close_task, task_id(self._context, self.handle))

    # -- the end ------------------------------------------------------------------------------

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Make a report where `_live` made none: cancelled before it began, or a bug."""
        if self.done.done():
            return
        report = {"agent": self.handle, "status": "cancelled", "text": "", "reason": self._reason}
        if not task.cancelled() and (error := task.exception()) is not None:
            report["status"], report["reason"] = failure(error, self.handle)
        self._finish(report, self.report.get("files_changed", []))

    def _finish(self, report: dict[str, Any], changed: list[str]) -> None:
        """Complete the report, write it to the parent's journal, and publish it."""
        usage = self._budget.usage
        report["text"] = report["text"] or self._activity.text
        if self._left_out:
            report["tools_not_given"] = self._left_out
        # Including those from before it was resumed.
        report["files_changed"] = list(dict.fromkeys(changed))
        report["tokens"] = {"input": usage.input, "output": usage.output}
        report["steps"] = self._budget.used_steps
        report["seconds"] = round(self._activity.seconds, 1)
        journal = self.journal
        assert journal is not None
        stored = getattr(journal, "store", None) is not None
        try:
            note_end(
                self._parent.journal,
                report,
                self.task,
                session=journal.id,
                turns=self.turns,
                cost=None if stored else (usage, self._parent.provider.model),
            )
        except HermesError as error:
            log.warning("%s: its end can't be recorded: %s", self.handle, error)
        self._publish(report)

    def _publish(self, report: dict[str, Any]) -> None:
        self.report, self.state = report, report["status"]
        self._conversation = None
        if self.background:
            self._parent.add_notice(self)
        self.done.set_result(report)


# -- restoring --------------------------------------------------------------------------------


def restored_child(
    parent: Delegation, handle: str, data: Mapping[str, Any], context: ToolContext
) -> ChildAgent:
    """A child of an earlier run; if it was cut off, the journal now records its end."""
    child = ChildAgent(parent, handle, {"goal": "", **data})
    above: Any = parent.journal
    child.journal = journal = above.store.open(data["session"])
    child.turns = list(data["turns"])
    report = {key: data[key] for key in _REPORT_FIELDS if key in data}
    if data["status"] in UNFINISHED:
        report |= _crash_report(child, journal, context)
        if cut_off(data):
            note_end(above, report, child.task, session=journal.id, turns=child.turns, cost=None)
        else:
            report["status"], report["reason"] = ELSEWHERE, "another program runs it"
    child.settle(report)
    return child


def _crash_report(child: ChildAgent, journal: Any, context: ToolContext) -> dict[str, Any]:
    messages = journal.messages()
    usage = journal.totals().usage
    info = journal.store.info(journal.id)
    tools = {intent.tool for intent in journal.intents()}
    return {
        "status": "crashed",
        "reason": "the program that it ran in ended while it was at work",
        "text": last_text(messages),
        "files_changed": files_changed(child, context, tools),
        "tokens": {"input": usage.input, "output": usage.output},
        "steps": sum(message.role == "assistant" for message in messages),
        "seconds": round(info.touched - info.began, 1),
    }
