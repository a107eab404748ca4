"""Supervisor of child agents: starts them, limits them, finds them by handle."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

from hermes.core.errors import HermesError, ToolError
from hermes.core.log import Log
from hermes.runtime.loop_thread import LoopThread

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping, Sequence
    from typing import Any

    from hermes.agent.budget import Budget
    from hermes.agent.delegation.child import ChildAgent
    from hermes.agent.delegation.child_report import ChildStatus
    from hermes.agent.loop import Journal
    from hermes.core.context import ToolContext
    from hermes.core.model_protocol import Provider
    from hermes.runtime.app import App
    from hermes.runtime.tool_offer import Offer

log = Log("hermes.agent")

ROOT = "root"
# Children that may run or wait for a slot.
MAX_CHILDREN = 20
# Time for all children to end when their parent does.
_END_SECONDS = 4.5


class Delegation:
    """Runs tasks in child agents of one agent; the `Delegate` service for its tools."""

    def __init__(
        self,
        provider: Provider,
        app: App,
        *,
        offer: Offer,
        budget: Budget,
        journal: Journal | None = None,
        project: Mapping[str, str] | None = None,
        level: int = 1,
        loop_thread: LoopThread | None = None,
    ) -> None:
        """Wire it; nothing is started.

        Args:
            provider: The children's model.
            app: Their tools and settings.
            offer: The tools of the parent.
            budget: The parent's budget, charged for all children.
            journal: The parent's journal.
            project: Instruction files of the project by name.
            level: Depth in the tree of agents; the first agent has 1.
            loop_thread: The event loop of the children; that of the level above, if there is one.
        """
        self.provider = provider
        self.app = app
        self.offer = offer
        self.budget = budget
        self.journal = journal
        self.project = project or {}
        self.level = level
        self.loop_thread = loop_thread or LoopThread("hermes-children")
        self._slots: asyncio.Semaphore | None = None
        self._children: dict[str, ChildAgent] = {}
        self._number = 0
        self._restored = False
        self._notices: deque[str] = deque()
        self._lock = threading.Lock()
        self._closed = ""

    @property
    def slots(self) -> asyncio.Semaphore:
        """Limits the children that run at once; for the children's event loop only."""
        if self._slots is None:
            import asyncio

            self._slots = asyncio.Semaphore(self.app.config.get("delegation.max_children"))
        return self._slots

    # -- starting and waiting -------------------------------------------------------------------

    async def __call__(
        self, tasks: Sequence[Mapping[str, Any]], context: ToolContext
    ) -> list[dict[str, Any]]:
        """Run the tasks, some of them concurrently; their reports in order."""
        return await self._reports(self._begin(tasks, context, background=False))

    def start(self, tasks: Sequence[Mapping[str, Any]], context: ToolContext) -> list[ChildStatus]:
        """Start the tasks in the background; the status of each child."""
        return [child.status() for child in self._begin(tasks, context, background=True)]

    def _begin(
        self, tasks: Sequence[Mapping[str, Any]], context: ToolContext, *, background: bool
    ) -> list[ChildAgent]:
        from hermes.agent.delegation.child import ChildAgent

        base = context.agent_path or ROOT
        if self.level >= self._max_depth():
            raise ToolError("an agent that was handed a task can't hand it on", hint="Do it.")
        self.restore(context)
        self._check_limit(len(tasks))
        # First, so that an unknown toolset is reported before any child starts.
        offers = [self._tools_for(task.get("toolsets")) for task in tasks]
        begun: list[ChildAgent] = []
        try:
            with self._lock:
                for task, (offer, left_out) in zip(tasks, offers, strict=True):
                    self._number += 1
                    child = ChildAgent(
                        self, f"{base}/{self._number}", {**task, **self._limits(task)}
                    )
                    child.begin(
                        context, _request(task), offer, background=background, left_out=left_out
                    )
                    self._children[child.handle] = child
                    begun.append(child)
        except HermesError:
            for child in begun:
                child.cancel("another one could not be begun")
            raise
        return begun

    async def _reports(self, children: Sequence[ChildAgent]) -> list[dict[str, Any]]:
        """Wait for children; cancel them when the wait itself is cancelled."""
        import asyncio

        waits = [asyncio.wrap_future(child.done) for child in children]
        try:
            return [await asyncio.shield(wait) for wait in waits]
        finally:
            for child in children:
                if child.unfinished:
                    child.cancel("the call that it worked for was stopped")
            if any(not wait.done() for wait in waits):
                await asyncio.wait(waits, timeout=_END_SECONDS)

    def _resume(
        self,
        handle: str,
        text: str,
        context: ToolContext,
        *,
        background: bool,
        seconds: float | None = None,
    ) -> ChildAgent:
        """Continue an ended child, with a new time limit."""
        child = self.child(handle, context)
        if child.unfinished or child.state == "running elsewhere":
            raise ToolError(f"{child.handle} is still at work", hint="Steer it, or wait for it.")
        self._check_limit(1)
        offer, left_out = self._tools_for(child.task.get("toolsets"))
        request = text.strip() or f"You were interrupted ({child.state}). Go on with your task."
        child.task |= self._limits({"timeout_seconds": seconds})
        child.begin(context, request, offer, background=background, left_out=left_out)
        return child

    def _tools_for(self, toolsets: Sequence[str] | None) -> tuple[Offer, list[str]]:
        from hermes.agent.delegation.child import child_tools

        delegates = self.level + 1 < self._max_depth()
        return child_tools(self.app, self.offer, toolsets, delegates=delegates)

    def nested(self, offer: Offer, budget: Budget, journal: Journal) -> Delegation | None:
        """The supervisor for a child's own children; None at the maximum depth."""
        if self.level + 1 >= self._max_depth():
            return None
        return Delegation(
            self.provider, self.app, offer=offer, budget=budget, journal=journal,
            project=self.project, level=self.level + 1, loop_thread=self.loop_thread,
        )  # fmt: skip

    def _max_depth(self) -> int:
        depth: int = self.app.config.get("delegation.max_depth")
        return depth

    def _limits(self, task: Mapping[str, Any]) -> dict[str, float]:
        names = ("timeout_seconds", "idle_timeout_seconds")
        return {name: task.get(name) or self.app.config.get(f"delegation.{name}") for name in names}

    def _check_limit(self, more: int) -> None:
        if self._closed:
            raise ToolError(f"no more tasks are handed on: {self._closed}")
        busy = sum(child.unfinished for child in self._children.values())
        if busy + more > MAX_CHILDREN:
            raise ToolError(
                f"{busy} agents work for you already, and at most {MAX_CHILDREN} may",
                hint="Wait for some, or cancel them.",
            )

    # -- finding ------------------------------------------------------------------------------

    def child(self, handle: str, context: ToolContext) -> ChildAgent:
        """The child with this handle, at any level; raises `ToolError` if there is none."""
        self.restore(context)
        base = context.agent_path or ROOT
        path = handle.strip().strip("/")
        children = {child.handle: child for child in self.children()}
        child = children.get(path) or children.get(f"{base}/{path}")
        if child is None:
            names = ", ".join(children) or "none yet"
            raise ToolError(f"no agent has the handle {handle!r:.80}", hint=f"There are: {names}.")
        return child

    def children(self, context: ToolContext | None = None) -> list[ChildAgent]:
        """Every child and its children, in the order of their start."""
        if context is not None:
            self.restore(context)
        children: list[ChildAgent] = []
        for child in list(self._children.values()):
            children.append(child)
            if child.inner is not None:
                children += child.inner.children()
        return children

    def restore(self, context: ToolContext) -> None:
        """Load the children of an earlier run, once; those that were cut off give a notice."""
        if self._restored:
            return
        self._restored = True
        from hermes.agent.delegation.child_report import cut_off, last_notes

        notes = last_notes(self.journal)
        if not notes:
            return
        from hermes.agent.delegation.child import restored_child

        for handle, data in notes.items():
            # The number is taken, even if the session can't be read.
            self._number = max(self._number, int(handle.rpartition("/")[2]))
            try:
                child = restored_child(self, handle, data, context)
            except HermesError as error:
                log.warning("%s: its session can't be read: %s", handle, error)
                continue
            self._children[handle] = child
            if cut_off(data):
                self.add_notice(child)

    # -- notices --------------------------------------------------------------------------------

    def add_notice(self, child: ChildAgent) -> None:
        """Queue a notice about the end of a background child."""
        from hermes.agent.delegation.child_report import end_notice

        self._notices.append(end_notice(child.report, str(child.task["goal"])))

    def notices(self) -> list[str]:
        """Take the queued notices; children append to the queue from another thread."""
        taken = []
        while self._notices:
            taken.append(self._notices.popleft())
        return taken

    # -- actions of delegate_task ---------------------------------------------------------------

    async def act(
        self,
        action: str,
        handle: str,
        context: ToolContext,
        *,
        message: str = "",
        seconds: float | None = None,
        background: bool = False,
    ) -> dict[str, Any]:
        """Carry out an action on started children; its result for the model.

        Args:
            action: list, status, wait, cancel, steer, extend or resume.
            handle: The child; empty means all, for list and wait.
            context: Of the call.
            message: The text, for steer and resume.
            seconds: Time to wait, or the new time limit.
            background: Whether a resumed child runs in the background.
        """
        if action == "list" or (action == "wait" and not handle.strip()):
            children = self.children(context)
            if action == "wait":
                await _wait(children, seconds)
                return {"results": [_report_or_time(child) for child in children]}
            return {"agents": [_status(child) for child in children]}
        if not handle.strip():
            raise ToolError(f"{action} needs a handle", hint="action=list shows them.")
        if action == "resume":
            child = self._resume(handle, message, context, background=background, seconds=seconds)
            if background:
                return _status(child)
            return (await self._reports([child]))[0]
        child = self.child(handle, context)
        if action == "status":
            return _report_or_status(child)
        if action == "wait":
            await _wait([child], seconds)
            return _report_or_time(child)
        if action == "cancel":
            if child.unfinished:
                child.cancel("cancelled by the agent that it worked for")
                await _wait([child], None)
            return _report_or_status(child)
        if not child.unfinished:
            raise ToolError(f"{child.handle} has ended ({child.state})", hint="Resume it.")
        if action == "extend":
            if seconds is None:
                raise ToolError("extend needs timeout_seconds, counted from now")
            child.extend(seconds)
            return _status(child)
        if not message.strip():
            raise ToolError("steer needs a message")
        child.steer(message)
        return {**_status(child), "told": "it reads that at its next step"}

    # -- the end ------------------------------------------------------------------------------

    async def end_children(self, reason: str) -> None:
        """End every child; for the children's event loop."""
        import asyncio

        rest = self._cancel_all(reason)
        if rest:
            waits = [asyncio.wrap_future(child.done) for child in rest]
            await asyncio.wait(waits, timeout=_END_SECONDS)

    def close(self, reason: str = "the agent that it worked for has ended") -> None:
        """End every child; for any other thread."""
        from concurrent.futures import wait

        rest = self._cancel_all(reason)
        if rest:
            wait([child.done for child in rest], timeout=_END_SECONDS)

    def _cancel_all(self, reason: str) -> list[ChildAgent]:
        self._closed = reason
        rest = [child for child in self._children.values() if child.unfinished]
        for child in rest:
            child.cancel(reason)
        return rest


def _request(task: Mapping[str, Any]) -> str:
    context = str(task.get("context") or "").strip()
    goal = str(task["goal"]).strip()
    return f"{goal}\n\nWhat you have to know:\n{context}" if context else goal


def _status(child: ChildAgent) -> dict[str, Any]:
    fields = child.status()._asdict()
    return {key: value for key, value in fields.items() if value not in ("", False)}


def _report_or_status(child: ChildAgent) -> dict[str, Any]:
    return _status(child) if child.unfinished else child.report


def _report_or_time(child: ChildAgent) -> dict[str, Any]:
    result = _report_or_status(child)
    # The time differs from wait to wait, so that the repeat detector sees no repetition.
    return {**result, "at_work_for": result["seconds"]} if child.unfinished else result


async def _wait(children: Sequence[ChildAgent], seconds: float | None) -> None:
    """Wait for the end of children; they go on when the wait times out or is cancelled."""
    import asyncio

    waits = [asyncio.wrap_future(child.done) for child in children if child.unfinished]
    if waits:
        # Shielded: cancelling the wait must not cancel the child's future.
        await asyncio.wait([asyncio.shield(wait) for wait in waits], timeout=seconds)
