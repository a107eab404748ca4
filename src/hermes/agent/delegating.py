"""Work handed to fresh agents: each with a conversation and a task of its own, one purse for all.

A child has at most the tools and rights of its parent, and some less: it can't hand work on, ask
or write to people, remember, or run code that calls tools. What it wants approved is asked of the
same person, with its path. Its changes belong to the parent's turn, and are undone with it. It ends
with an answer, at a limit or with its parent; whatever happened, there is a report.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import TYPE_CHECKING

from hermes.agent.budget import Budget
from hermes.agent.compaction import Compaction
from hermes.agent.loop import Conversation
from hermes.agent.prompt import system_text
from hermes.agent.providers.protocol import Discarded, Done, TextDelta
from hermes.core.context import Cancellation
from hermes.core.errors import HermesError, ToolError
from hermes.core.log import Log

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from hermes.agent.loop import Journal, Result
    from hermes.agent.providers.protocol import Event, Provider
    from hermes.core.context import ToolContext
    from hermes.core.messages import Usage
    from hermes.runtime.app import App
    from hermes.runtime.deferral import Offer
    from hermes.runtime.events import Event as CallEvent

log = Log("hermes.agent")

ROOT = "root"
AT_ONCE = 3
# Levels of agents: one, and those that work for it.
DEPTH = 2
BLOCKED = frozenset({"delegate_task", "clarify", "memory", "send_message", "execute_code"})

# How a child ends that ran into a limit, and which one that is.
_LIMITS = {"timed_out": "timeout_seconds", "idle": "idle_timeout_seconds"}

_CHILD = """\
Another agent handed you this one task. You see nothing of its conversation, and nobody can answer \
questions: where something is unclear, take the likeliest reading and say so. Your last answer is \
all that it gets to see: say what you found and did, with exact names, and what is left open."""


class Delegation:
    """Carries out tasks with children of one agent; a `Delegate` for its tools."""

    def __init__(
        self,
        provider: Provider,
        app: App,
        *,
        offer: Offer,
        budget: Budget,
        journal: Journal | None = None,
        project: Mapping[str, str] | None = None,
        at_once: int = AT_ONCE,
    ) -> None:
        self.provider = provider
        self.app = app
        self.offer = offer
        self.budget = budget
        self.journal = journal
        self.project = project or {}
        self.at_once = at_once
        self._numbers = itertools.count(1)

    async def __call__(
        self, tasks: Sequence[Mapping[str, Any]], context: ToolContext
    ) -> list[dict[str, Any]]:
        """Carry out the tasks, some at once; a report on each, in their order."""
        if (context.agent_path or ROOT).count("/") + 2 > DEPTH:
            raise ToolError("an agent that was handed a task can't hand it on", hint="Do it.")
        # Made before any begins: a toolset that does not exist is said at once.
        children = [Child(self, task, context, next(self._numbers)) for task in tasks]
        room = asyncio.Semaphore(max(self.at_once, 1))

        async def one(child: Child) -> dict[str, Any]:
            async with room:
                return await child.run()

        running = [asyncio.ensure_future(one(child)) for child in children]
        try:
            return list(await asyncio.gather(*running))
        finally:
            # With the parent's call its children end, and are waited for.
            for task in running:
                task.cancel()
            await asyncio.wait(running)

    def offered(self, toolsets: Sequence[str] | None) -> Offer:
        """What a child may use: of the parent's tools those asked for, without the blocked."""
        from hermes.runtime.deferral import Offer

        names = self.offer.reachable - BLOCKED
        if toolsets:
            names &= frozenset(self.app.toolsets.resolve(toolsets))
            if not names:
                raise ToolError(
                    f"you have no tools of {', '.join(toolsets)} to hand on",
                    hint="Leave toolsets out, or name others.",
                )
        registry = self.app.registry
        return Offer(
            registry,
            [entry for entry in registry.entries() if entry.name in names],
            index=self.app.index,
            defer_above=self.app.config.get("tools.defer_above"),
        )


class Child:
    """One agent with one task, and what is known of it while it works."""

    def __init__(
        self, parent: Delegation, task: Mapping[str, Any], context: ToolContext, number: int
    ) -> None:
        self.path = f"{context.agent_path or ROOT}/{number}"
        self.id = f"{context.task_id}-{number}"
        self._parent = parent
        self._task = task
        self._around = context
        self._offer = parent.offered(task.get("toolsets"))
        self._purse = _Purse(parent.budget, self._beat)
        self._beaten = self._began = time.monotonic()
        self._partial: list[str] = []

    async def run(self) -> dict[str, Any]:
        """Carry out the task; the report, however it ended."""
        runtime = self._parent.app.runtime
        self._began = time.monotonic()
        self._beat()
        # Everything below hangs on this one: the calls of a child that is stopped stop, too.
        stop = Cancellation(self._around.cancellation)
        conversation = self._conversation(stop)
        working = asyncio.ensure_future(conversation.turn(self._request()))
        unsubscribe = runtime.events.subscribe(lambda event: self._heard(conversation, event))
        status = "cancelled"
        try:
            status = await self._watched(working)
        finally:
            unsubscribe()
            if not working.done():
                stop.cancel(f"{self.path}: {status}")
                working.cancel()
                await asyncio.wait([working])
            stop.close()
            await asyncio.to_thread(runtime.close_task, self.id)
            report = self._report(conversation, working, status)
            self._keep(report)
        return report

    async def _watched(self, working: asyncio.Task[Result]) -> str:
        """Wait for the end of the work, or for the limit that it runs into; which one."""
        wall, idle = (self._task.get(limit) for limit in _LIMITS.values())
        while not working.done():
            now = time.monotonic()
            left = {
                "timed_out": (wall or float("inf")) - (now - self._began),
                "idle": (idle or float("inf")) - (now - self._beaten),
            }
            limit = min(left, key=lambda name: left[name])
            if left[limit] <= 0:
                return limit
            wait = None if left[limit] == float("inf") else left[limit]
            await asyncio.wait([working], timeout=wait)
        return "ended"

    # -- what it works with -------------------------------------------------------------------

    def _conversation(self, stop: Cancellation) -> Conversation:
        parent, around = self._parent, self._around
        runtime = parent.app.runtime
        task = runtime.task(self.id, workspace=around.workspace)
        task.env = dict(around.task.env)
        services = {**around.services, "offer": self._offer}
        for theirs in ("agent", "delegate"):
            services.pop(theirs, None)

        def context(_: str) -> ToolContext:
            self._beat()
            return runtime.context(
                task.id,
                session_id=around.session_id,
                turn=around.turn,
                front_door=around.front_door,
                agent_path=self.path,
                approver=around.approver,
                cancellation=Cancellation(stop),
                services=services,
                profiles=around.profiles,
            )

        return Conversation(
            parent.provider,
            runtime,
            system=system_text(around.workspace, context=parent.project, more=[_CHILD]),
            offer=self._offer,
            context=context,
            budget=self._purse,
            compact=Compaction(),
            on_event=self._said,
            at_once=parent.app.config.get("tools.parallel"),
        )

    def _request(self) -> str:
        context = str(self._task.get("context") or "").strip()
        goal = str(self._task["goal"]).strip()
        return f"{goal}\n\nWhat you have to know:\n{context}" if context else goal

    # -- signs of life ------------------------------------------------------------------------

    def _beat(self) -> None:
        self._beaten = time.monotonic()

    def _said(self, event: Event) -> None:
        self._beat()
        if isinstance(event, TextDelta):
            self._partial.append(event.text)
        elif isinstance(event, Done | Discarded):
            self._partial.clear()
        if isinstance(event, Done) and event.message.calls:
            names = ", ".join(use.name for use in event.message.calls)
            self._around.progress(f"{self.path}: {names}")

    def _heard(self, conversation: Conversation, event: CallEvent) -> None:
        # Ids of two conversations may be alike: at worst another child's life is taken for ours.
        if any(use.id == event.call_id for use in conversation.messages[-1].calls):
            self._beat()

    # -- the report ---------------------------------------------------------------------------

    def _report(
        self, conversation: Conversation, working: asyncio.Task[Result], status: str
    ) -> dict[str, Any]:
        usage = self._purse.usage
        report: dict[str, Any] = {"agent": self.path, "status": status, "text": ""}
        if working.cancelled():
            limit = _LIMITS.get(status, "")
            report["status"] = status if limit else "cancelled"
            report["reason"] = f"stopped: {limit} {self._task[limit]:g}" if limit else "stopped"
        elif (error := working.exception()) is not None:
            report |= {"status": "failed", "reason": _reason(error, self.path)}
        else:
            result = working.result()
            report["status"] = "completed" if result.ended == "answered" else result.ended
            report["text"] = result.text
            if result.refused:
                report["refused"] = list(result.refused)
        if not report["text"]:
            report["text"] = self._last_text(conversation)
        report["files_changed"] = self._files(conversation)
        report["tokens"] = {"input": usage.input, "output": usage.output}
        report["steps"] = self._purse.used_steps
        report["seconds"] = round(time.monotonic() - self._began, 1)
        return report

    def _last_text(self, conversation: Conversation) -> str:
        """What it said last, be it half of an answer."""
        partial = "".join(self._partial).strip()
        said = (m.text for m in reversed(conversation.messages) if m.role == "assistant")
        return partial or next(filter(None, said), "")

    def _files(self, conversation: Conversation) -> list[str]:
        """The files it changed, as the checkpoint store knows them."""
        resolve = self._parent.app.runtime.registry.resolve
        used = {use.name for message in conversation.messages for use in message.calls}
        if all(entry.effect == "read" for entry in map(resolve, used) if entry is not None):
            return []
        from hermes.stores.checkpoints.shared import checkpoints
        from hermes.stores.checkpoints.values import CheckpointError

        try:
            changes = checkpoints(self._around).show(
                f"{self._around.session_id}/{self._around.turn}"
            )
        except CheckpointError:
            # Nothing was changed in this turn.
            return []
        mine = (change.place for change in changes if change.author.agent == self.path)
        return list(dict.fromkeys(mine))

    def _keep(self, report: dict[str, Any]) -> None:
        """What the child cost belongs to the parent's session."""
        journal: Any = self._parent.journal
        if journal is not None:
            kept = {key: report[key] for key in ("agent", "status", "files_changed", "steps")}
            kept["goal"] = str(self._task["goal"])
            model = self._parent.provider.model
            journal.note("delegated", kept, usage=self._purse.usage, model=model)


class _Purse(Budget):
    """A child's view of the parent's budget: what it spends is the parent's, and counted here."""

    def __init__(self, whole: Budget, on_step: Any) -> None:
        super().__init__(steps=None)
        self._whole = whole
        self._on_step = on_step

    def renew(self) -> None:
        """Nothing: a child's turn is part of its parent's."""

    def step(self) -> None:
        self._whole.step()
        self.used_steps += 1
        self._on_step()

    def spend(self, usage: Usage, cost: float = 0.0) -> None:
        super().spend(usage, cost)
        self._whole.spend(usage, cost)

    def left(self) -> dict[str, float]:
        return self._whole.left()


def _reason(error: BaseException, path: str) -> str:
    if isinstance(error, HermesError):
        return f"{error} {error.hint or ''}".strip()
    import traceback

    log.warning("%s failed:\n%s", path, "".join(traceback.format_exception(error)))
    return f"a bug of ours: {type(error).__name__}; the log has more"
