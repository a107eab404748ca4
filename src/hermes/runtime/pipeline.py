"""Runtime: runs tool calls, and owns the state between calls: tasks, running calls, services.

A call passes the twelve stages of `stages.py`. Two drivers carry it from stage to stage: `call` for
async code, `call_sync` for sync code. Handlers are reached in no other way. CLI, chat and MCP
server add the caller's identity and an approver.
"""

from __future__ import annotations

import threading
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING

from hermes.core.context import Ruling, Services, Task, ToolContext
from hermes.core.entry import ToolCall
from hermes.core.errors import ToolError
from hermes.core.log import Log
from hermes.core.registry import registry as shared_registry
from hermes.runtime import waits
from hermes.runtime.hooks import EventBus, Hooks
from hermes.runtime.stages import Secrets, stages
from hermes.runtime.workers import Workers
from hermes.safety.call_effects import effects_of
from hermes.safety.policy import EffectPolicy
from hermes.safety.redaction import Redactor
from hermes.safety.sanitise import sanitise_error
from hermes.safety.taint import TaintLog, refuse_tainted_write, review_tainted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from hermes.core.context import Cancellation
    from hermes.core.entry import Lifecycle, ToolEntry, ToolOutcome
    from hermes.core.protocols import Approver
    from hermes.core.registry import ToolRegistry
    from hermes.runtime.artifacts import ArtifactStore
    from hermes.runtime.audit import AuditLog
    from hermes.runtime.parallel import Watcher
    from hermes.runtime.reviews import Reviews
    from hermes.runtime.stages import CallState
    from hermes.runtime.tracing import Tracer
    from hermes.safety.file_guard import HomeGuard
    from hermes.safety.policy import Policy


log = Log("hermes.runtime")


class Runtime:
    """Carries out tool calls. One per program is usual; tests and embedders make their own.

    Without an `approver`, calls that need approval are refused.
    """

    def __init__(
        self,
        registry: ToolRegistry = shared_registry,
        *,
        policy: Policy | None = None,
        approver: Approver | None = None,
        hooks: Hooks | None = None,
        events: EventBus | None = None,
        artifacts: ArtifactStore | None = None,
        audit: AuditLog | None = None,
        tracer: Tracer | None = None,
        redactor: Redactor | None = None,
        reviews: Reviews | None = None,
        workers: Workers | None = None,
        grace_seconds: float = 2.0,
    ) -> None:
        self.registry = registry
        self.policy: Policy = EffectPolicy() if policy is None else policy
        self.approver = approver
        self.hooks = hooks or Hooks()
        self.events = events or EventBus()
        self.artifacts = artifacts
        self.audit = audit
        self.redactor = redactor or Redactor()
        if audit is not None:
            audit.redact = self.redactor.redact
        self.tracer = tracer
        if tracer is not None:
            tracer.redact = self.redactor.redact
        self.secrets = Secrets(self.redactor)
        # Whose words each conversation has read, and where writes wait that this makes doubtful.
        self.heard = TaintLog()
        self.reviews = reviews
        self.workers = workers or Workers()
        self.grace_seconds = grace_seconds
        # Shared by all contexts; interfaces add theirs.
        self.services = Services(
            runtime=self,
            resolve_path=self._resolve_path,
            artifacts=artifacts,
        )
        # Run before a name is looked up; sources of tools that change on disk hook in here.
        self.before_resolve: Callable[[], object] | None = None
        self._tasks: dict[str, Task] = {}
        # The calls under way, by state and not by id: models give the same id twice.
        self.under_way: dict[CallState, Cancellation] = {}
        # Tools with an end of their own that were used, and their names.
        self.lifecycles: dict[Lifecycle, str] = {}
        self._lock = threading.Lock()
        self._context = self.context()
        registry.attach(self)

    @cached_property
    def home_guard(self) -> HomeGuard:
        """Guard of the files that decide what may happen, made for the first unconfined command."""
        from hermes.safety.file_guard import HomeGuard

        return HomeGuard(self._context.workspace)

    # -- rulings ----------------------------------------------------------------------------------

    def judge(self, entry: ToolEntry, arguments: dict[str, Any], context: ToolContext) -> Ruling:
        """The policy's ruling on a call, stricter where the conversation has read untrusted text.

        The policy fails closed: its exception refuses the call. A `ToolError` of the tool's own
        look at the arguments is passed on: nothing runs then either.
        """
        try:
            ruling = self.policy.judge(entry, arguments, context)
            if ruling.action != "allow" and ruling.action not in ("ask", "refuse"):
                raise ValueError(f"it ruled {ruling.action!r}")
            if entry.acts and ruling.effects is None:
                # A policy may rule without the effects; taint tracking and undo need them.
                ruling = copy(ruling)
                ruling.effects = effects_of(entry, arguments, context)
            sources = self.heard.sources(context)
            return review_tainted(ruling, entry, arguments, context, sources) if sources else ruling
        except ToolError:
            raise
        except Exception as error:
            log.exception("the policy failed on %s", entry.name)
            return Ruling("refuse", reason=f"the policy failed: {error}", rule="policy:failed")

    def _resolve_path(self, context: ToolContext, kind: str, path: str) -> str:
        """Resolve a path that a handler meets; the policy may refuse it."""
        resolved = self.policy.resolve_path(context, kind, path)
        if kind != "read" and self.heard.sources(context):
            refuse_tainted_write(path, resolved)
        return resolved

    # -- the front doors' side ----------------------------------------------------------------

    def call_sync(self, call: ToolCall, context: ToolContext | None = None) -> ToolOutcome:
        """Carry out one call from code that can't await."""
        on_its_way = stages(self, call, context or self._context)
        try:
            need = next(on_its_way)
            while True:
                try:
                    answer = need.sync(self)
                except BaseException as error:  # noqa: BLE001 - the stages decide what it means
                    need = on_its_way.throw(error)
                else:
                    need = on_its_way.send(answer)
        except StopIteration as done:
            outcome: ToolOutcome = done.value
            return outcome

    async def call(self, call: ToolCall, context: ToolContext | None = None) -> ToolOutcome:
        """Carry out one call from code that awaits."""
        on_its_way = stages(self, call, context or self._context)
        try:
            need = next(on_its_way)
            while True:
                try:
                    answer = await need.wait(self)
                except BaseException as error:  # noqa: BLE001 - the stages decide what it means
                    need = on_its_way.throw(error)
                else:
                    need = on_its_way.send(answer)
        except StopIteration as done:
            outcome: ToolOutcome = done.value
            return outcome

    async def call_many(
        self,
        calls: Sequence[ToolCall],
        context: ToolContext | None = None,
        *,
        at_once: int = 16,
        watcher: Watcher | None = None,
    ) -> list[ToolOutcome]:
        """Carry out the calls of one turn, side by side where they may; outcomes in their order."""
        from hermes.runtime.parallel import run_all

        around = context or self._context
        return await run_all(self, calls, around, at_once=at_once, watcher=watcher)

    def call_many_sync(
        self,
        calls: Sequence[ToolCall],
        context: ToolContext | None = None,
        *,
        at_once: int = 16,
    ) -> list[ToolOutcome]:
        """`call_many` from code that can't await."""
        outcomes: list[ToolOutcome] = waits.run(self.call_many(calls, context, at_once=at_once))
        return outcomes

    def dispatch(
        self,
        name: str,
        arguments: dict[str, Any] | str | None,
        context: ToolContext | None = None,
    ) -> str:
        """One call by name, as `ToolRegistry.dispatch` wants it: JSON text out."""
        return self.call_sync(ToolCall(name, arguments), context).content

    def context(self, task_id: str = "main", **fields: Any) -> ToolContext:
        """The surroundings for calls of one task; front doors add who asks and how to ask."""
        fields.setdefault("approver", self.approver)
        fields.setdefault("services", self.services)
        return ToolContext(task=self.task(task_id), **fields)

    def task(self, task_id: str, *, workspace: str = "") -> Task:
        """The task of that id, begun when it is new."""
        with self._lock:
            task = self._tasks.get(task_id)
            if task is None:
                task = self._tasks[task_id] = Task(task_id, workspace=workspace)
            return task

    def close_task(self, task_id: str) -> None:
        """End a task and everything that belongs to it."""
        with self._lock:
            task = self._tasks.pop(task_id, None)
        if task is None:
            return
        for failure in task.close():
            self.report_trouble(f"closing task {task_id}: {type(failure).__name__}: {failure}")
        if task is self._context.task:
            self._context = self.context(task_id)

    def cancel(self, call_id: str, reason: str = "cancelled") -> bool:
        """Ask a running call to stop; whether there is one of that id."""
        # One step for the interpreter, whatever other threads begin and end meanwhile.
        under_way = list(self.under_way.items())
        matches = [stop for state, stop in under_way if state.call_id == call_id]
        for cancellation in matches:
            cancellation.cancel(reason)
        return bool(matches)

    def running(self) -> list[str]:
        """The ids of the calls under way."""
        return [state.call_id for state in list(self.under_way)]

    def close(self) -> None:
        """End every task, take down every tool that was set up, put the audit log on disk."""
        for task_id in list(self._tasks):
            self.close_task(task_id)
        used, self.lifecycles = self.lifecycles, {}
        # Those that were replaced or taken away while in use, and those that are there now.
        lives = {e.lifecycle: e.name for e in self.registry.entries() if e.lifecycle is not None}
        for lifecycle, name in {**used, **lives}.items():
            try:
                rest = lifecycle.close()
                if hasattr(rest, "__await__"):
                    waits.run(waits.settle(rest))
            except Exception as error:  # noqa: BLE001 - the others are to be taken down all the same
                self.report_trouble(f"teardown of {name}: {type(error).__name__}: {error}")
        if self.audit is not None:
            self.audit.flush()
        if self.tracer is not None:
            self.tracer.flush()

    def __enter__(self) -> Runtime:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def report_trouble(self, message: str, state: CallState | None = None) -> None:
        """Log something that went wrong beside a call, and tell who watches."""
        message = sanitise_error(self.redactor.redact(message))
        log.warning("%s", message)
        call_id, tool = (state.call_id, state.tool) if state else ("", "")
        self.events.emit("trouble", call_id, tool, message=message)


def begin_session(runtime: Runtime, session_id: str) -> None:
    """Tell the hooks that a conversation begins."""
    if runtime.tracer is not None:
        runtime.tracer.session_begins(session_id)
    _tell(runtime, runtime.hooks.session_start, session_id)


def end_session(runtime: Runtime, session_id: str) -> None:
    """Tell the hooks that a conversation ended; approvals that were for it alone end with it."""
    _tell(runtime, runtime.hooks.session_end, session_id)
    runtime.secrets.end_session(session_id)
    runtime.heard.end(session_id)
    runtime.policy.session_ended(session_id)
    if runtime.tracer is not None:
        runtime.tracer.session_ends(session_id)


def _tell(runtime: Runtime, hooks: tuple[Callable[..., Any], ...], session_id: str) -> None:
    for hook in hooks:
        try:
            waits.Hook(hook, (session_id,)).sync(runtime)
        except Exception as error:  # noqa: BLE001 - a hook must not stop a conversation
            name = getattr(hook, "__qualname__", None) or repr(hook)
            runtime.report_trouble(f"hook {name}: {type(error).__name__}: {error}")
