"""Supervisor of child agents: starts them, limits them, finds them by handle."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from typing import TYPE_CHECKING

from hermes.core.errors import HermesError, ToolError
from hermes.core.log import Log

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from hermes.agent.budget import Budget
    from hermes.agent.delegation.child import Worker
    from hermes.agent.delegation.child_report import Child
    from hermes.agent.loop import Journal
    from hermes.core.context import ToolContext
    from hermes.core.model_protocol import Provider
    from hermes.runtime.app import App
    from hermes.runtime.tool_offer import Offer


_LEAVE_SECONDS = 2.0


class Crew:
    """One event loop in a thread of its own, begun when the first child is."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """Where children work."""
        with self._lock:
            if self._loop is None:
                import asyncio

                self._loop = asyncio.new_event_loop()
                # No program is kept from ending by its children.
                self._thread = threading.Thread(
                    target=self._loop.run_forever, name="hermes-children", daemon=True
                )
                self._thread.start()
            return self._loop

    def close(self) -> None:
        """End the thread; what is still at work in it is cancelled and let go."""
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is None or self._thread is None:
            return
        _cancel_rest(loop)
        loop.call_soon_threadsafe(loop.stop)
        self._thread.join(_LEAVE_SECONDS)
        if not self._thread.is_alive():
            loop.close()


def _cancel_rest(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel every task of the loop and give them a moment."""
    import asyncio

    async def cancelled() -> None:
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        if rest:
            await asyncio.wait(rest, timeout=_LEAVE_SECONDS)
        await loop.shutdown_asyncgens()
        await loop.shutdown_default_executor()

    future = asyncio.run_coroutine_threadsafe(cancelled(), loop)
    try:
        future.result(2 * _LEAVE_SECONDS)
    except TimeoutError:
        future.cancel()


log = Log("hermes.agent")

ROOT = "root"
# So many may be at work or wait for room.
MOST = 20
# Everything that works for an agent ends within this time when it does.
_END_SECONDS = 4.5


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
        level: int = 1,
        crew: Crew | None = None,
    ) -> None:
        """Nothing is begun yet.

        Args:
            provider: The model that children ask.
            app: The tools and settings they work with.
            offer: The tools of the agent that hands tasks on.
            budget: Its budget, which pays for all.
            journal: Where its conversation is kept.
            project: The project's words to agents, by file.
            level: How many agents there are from the first one down to this.
            crew: Where the children of the agent above work, if there is one.
        """
        self.provider = provider
        self.app = app
        self.offer = offer
        self.budget = budget
        self.journal = journal
        self.project = project or {}
        self.level = level
        self.crew = crew or Crew()
        self._own_crew = crew is None
        self._room: asyncio.Semaphore | None = None
        self._workers: dict[str, Worker] = {}
        self._number = 0
        self._recalled = False
        self._untold: deque[str] = deque()
        self._lock = threading.Lock()
        self._over = ""

    @property
    def room(self) -> asyncio.Semaphore:
        """What a child holds while it works; in the crew's thread only."""
        if self._room is None:
            import asyncio

            self._room = asyncio.Semaphore(self.app.config.get("delegation.max_children"))
        return self._room

    async def __call__(
        self, tasks: Sequence[Mapping[str, Any]], context: ToolContext
    ) -> list[dict[str, Any]]:
        """Carry out the tasks, some at once; a report on each, in their order."""
        return await self.finished(self._begun(tasks, context, background=False))

    def start(self, tasks: Sequence[Mapping[str, Any]], context: ToolContext) -> list[Child]:
        """Have the tasks carried out beside whatever their parent does; the children."""
        return [worker.seen() for worker in self._begun(tasks, context, background=True)]

    async def finished(self, workers: Sequence[Worker]) -> list[dict[str, Any]]:
        """Wait for children that the caller can't do without; they end when it is stopped."""
        import asyncio

        waits = [asyncio.wrap_future(worker.done) for worker in workers]
        try:
            return [await asyncio.shield(wait) for wait in waits]
        finally:
            for worker in workers:
                if worker.unfinished:
                    worker.cancel("the call that it worked for was stopped")
            if any(not wait.done() for wait in waits):
                await asyncio.wait(waits, timeout=_END_SECONDS)

    def resume(
        self,
        handle: str,
        text: str,
        context: ToolContext,
        *,
        background: bool,
        seconds: float | None = None,
    ) -> Worker:
        """Let a child that has ended go on where it left off, for so long from now on."""
        worker = self.worker(handle, context)
        if worker.unfinished or worker.state == "running elsewhere":
            raise ToolError(f"{worker.handle} is still at work", hint="Steer it, or wait for it.")
        self._check_room(1)
        offer, left_out = self.offered(worker.task.get("toolsets"))
        said = text.strip() or f"You were interrupted ({worker.state}). Go on with your task."
        worker.task |= self._limits({"timeout_seconds": seconds})
        worker.begin(context, said, offer, background=background, left_out=left_out)
        return worker

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
        """Do something with children that are there already; see `told.act`."""

        return await act(
            self, action, handle, context,
            message=message, seconds=seconds, background=background,
        )  # fmt: skip

    def worker(self, handle: str, context: ToolContext) -> Worker:
        """The child of that handle, also one of a child's; raises where there is none."""
        self.recall(context)
        base = context.agent_path or ROOT
        wanted = handle.strip().strip("/")
        known = {worker.handle: worker for worker in self.workers()}
        found = known.get(wanted) or known.get(f"{base}/{wanted}")
        if found is None:
            names = ", ".join(known) or "none yet"
            raise ToolError(f"no agent has the handle {handle!r:.80}", hint=f"There are: {names}.")
        return found

    def workers(self, context: ToolContext | None = None) -> list[Worker]:
        """Every child, and theirs, in the order in which they began."""
        if context is not None:
            self.recall(context)
        found: list[Worker] = []
        for worker in list(self._workers.values()):
            found.append(worker)
            if worker.inner is not None:
                found += worker.inner.workers()
        return found

    # -- news ---------------------------------------------------------------------------------

    def tell(self, worker: Worker) -> None:
        """Note that a child has ended which nobody waits for."""
        from hermes.agent.delegation.child_report import news

        self._untold.append(news(worker.report, str(worker.task["goal"])))

    def news(self) -> list[str]:
        """What the agent has not been told yet of its children."""
        # One by one, for children end in another thread.
        said = []
        while self._untold:
            said.append(self._untold.popleft())
        return said

    # -- tools and tasks ----------------------------------------------------------------------

    def offered(self, toolsets: Sequence[str] | None) -> tuple[Offer, list[str]]:
        """The tools of a child, and those that were asked for and are not given."""
        from hermes.agent.delegation.child import offered

        hands_on = self.level + 1 < self._depth()
        return offered(self.app, self.offer, toolsets, hands_on=hands_on)

    def below(self, offer: Offer, budget: Budget, journal: Journal) -> Delegation | None:
        """What a child hands tasks on with; None where it may not."""
        if self.level + 1 >= self._depth():
            return None
        return Delegation(
            self.provider, self.app, offer=offer, budget=budget, journal=journal,
            project=self.project, level=self.level + 1, crew=self.crew,
        )  # fmt: skip

    def _depth(self) -> int:
        depth: int = self.app.config.get("delegation.max_depth")
        return depth

    def _limits(self, task: Mapping[str, Any]) -> dict[str, float]:
        names = ("timeout_seconds", "idle_timeout_seconds")
        return {name: task.get(name) or self.app.config.get(f"delegation.{name}") for name in names}

    def _begun(
        self, tasks: Sequence[Mapping[str, Any]], context: ToolContext, *, background: bool
    ) -> list[Worker]:
        from hermes.agent.delegation.child import Worker

        base = context.agent_path or ROOT
        if self.level >= self._depth():
            raise ToolError("an agent that was handed a task can't hand it on", hint="Do it.")
        self.recall(context)
        self._check_room(len(tasks))
        # Before any begins: a toolset that does not exist is said at once.
        offers = [self.offered(task.get("toolsets")) for task in tasks]
        begun: list[Worker] = []
        try:
            with self._lock:
                for task, (offer, left_out) in zip(tasks, offers, strict=True):
                    worker = Worker(self, self._next(base), {**task, **self._limits(task)})
                    worker.begin(
                        context, _request(task), offer, background=background, left_out=left_out
                    )
                    self._workers[worker.handle] = worker
                    begun.append(worker)
        except HermesError:
            for worker in begun:
                worker.cancel("another one could not be begun")
            raise
        return begun

    def _next(self, base: str) -> str:
        self._number += 1
        return f"{base}/{self._number}"

    def _check_room(self, more: int) -> None:
        if self._over:
            raise ToolError(f"no more tasks are handed on: {self._over}")
        busy = sum(worker.unfinished for worker in self._workers.values())
        if busy + more > MOST:
            raise ToolError(
                f"{busy} agents work for you already, and at most {MOST} may",
                hint="Wait for some, or cancel them.",
            )

    def recall(self, context: ToolContext) -> None:
        """Find the children of an earlier run; the agent hears of those that were cut off."""
        if self._recalled:
            return
        self._recalled = True
        import hermes.agent.delegation.child_journal as child_journal

        found = child_journal.known(self.journal)
        if not found:
            return
        from hermes.agent.delegation.child import recalled

        for handle, data in found.items():
            # Whether or not it can be read, its name is taken.
            self._number = max(self._number, int(handle.rpartition("/")[2]))
            try:
                worker = recalled(self, handle, data, context)
            except HermesError as error:
                log.warning("%s: its session can't be read: %s", handle, error)
                continue
            self._workers[handle] = worker
            if child_journal.cut_off(data):
                self.tell(worker)

    # -- the end ------------------------------------------------------------------------------

    async def ended(self, reason: str) -> None:
        """End every child, in the crew's thread."""
        import asyncio

        rest = self._stop_all(reason)
        if rest:
            waits = [asyncio.wrap_future(worker.done) for worker in rest]
            await asyncio.wait(waits, timeout=_END_SECONDS)

    def close(self, reason: str = "the agent that it worked for has ended") -> None:
        """End every child, from any other thread."""
        from concurrent.futures import wait

        rest = self._stop_all(reason)
        if rest:
            wait([worker.done for worker in rest], timeout=_END_SECONDS)

    def _stop_all(self, reason: str) -> list[Worker]:
        self._over = reason
        rest = [worker for worker in self._workers.values() if worker.unfinished]
        for worker in rest:
            worker.cancel(reason)
        return rest


def _request(task: Mapping[str, Any]) -> str:
    context = str(task.get("context") or "").strip()
    goal = str(task["goal"]).strip()
    return f"{goal}\n\nWhat you have to know:\n{context}" if context else goal


async def act(
    delegation: Delegation,
    action: str,
    handle: str,
    context: ToolContext,
    *,
    message: str = "",
    seconds: float | None = None,
    background: bool = False,
) -> dict[str, Any]:
    """Carry out one action; what the model is told.

    Args:
        delegation: Whose children they are.
        action: list, status, wait, cancel, steer, extend or resume.
        handle: Which child; for list and wait it may be left out and means all.
        context: Of the call.
        message: What to tell it, for steer and resume.
        seconds: How long to wait, or how much longer it may work.
        background: Whether one that is resumed is not waited for.
    """
    if action == "list" or (action == "wait" and not handle.strip()):
        workers = delegation.workers(context)
        if action == "wait":
            await _waited(workers, seconds)
            return {"results": [_still(worker) for worker in workers]}
        return {"agents": [shown(worker.seen()) for worker in workers]}
    if not handle.strip():
        raise ToolError(f"{action} needs a handle", hint="action=list shows them.")
    if action == "resume":
        worker = delegation.resume(handle, message, context, background=background, seconds=seconds)
        if background:
            return shown(worker.seen())
        return (await delegation.finished([worker]))[0]
    worker = delegation.worker(handle, context)
    if action == "status":
        return _known(worker)
    if action == "wait":
        await _waited([worker], seconds)
        return _still(worker)
    if action == "cancel":
        if worker.unfinished:
            worker.cancel("cancelled by the agent that it worked for")
            await _waited([worker], None)
        return _known(worker)
    if not worker.unfinished:
        raise ToolError(f"{worker.handle} has ended ({worker.state})", hint="Resume it.")
    if action == "extend":
        if seconds is None:
            raise ToolError("extend needs timeout_seconds, counted from now")
        worker.extend(seconds)
        return shown(worker.seen())
    if not message.strip():
        raise ToolError("steer needs a message")
    worker.steer(message)
    return {**shown(worker.seen()), "told": "it reads that at its next step"}


def shown(child: Child) -> dict[str, Any]:
    """A child at a glance, as the model reads it."""
    found = child._asdict()
    return {key: value for key, value in found.items() if value not in ("", False)}


def _known(worker: Worker) -> dict[str, Any]:
    return shown(worker.seen()) if worker.unfinished else worker.report


def _still(worker: Worker) -> dict[str, Any]:
    known = _known(worker)
    # Whoever waits does not go round in circles: something has changed, if only the time.
    return {**known, "at_work_for": known["seconds"]} if worker.unfinished else known


async def _waited(workers: list[Worker], seconds: float | None) -> None:
    """Wait for the end of children, who go on when the wait is over or given up."""
    waits = [asyncio.wrap_future(worker.done) for worker in workers if worker.unfinished]
    if waits:
        # Not cancelled with us: the future is the child's, too.
        await asyncio.wait([asyncio.shield(wait) for wait in waits], timeout=seconds)
