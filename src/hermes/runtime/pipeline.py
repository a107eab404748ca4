"""One call, from the model to the model: the twelve stages every call goes through.

`Runtime._stages` is the pipeline, written once as a generator. Where a stage may have to wait (ask
a human, run a hook, run the handler) it yields what it needs, and one of two drivers supplies it:
`call` for code that awaits, `call_sync` for code that can't. Neither driver decides anything.

No handler is reached by another way. Front doors add who is asking and how to ask a human.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from copy import deepcopy
from typing import TYPE_CHECKING

from hermes.core.context import Cancellation, CancelledError, Task, ToolContext
from hermes.core.entry import ToolCall, ToolOutcome
from hermes.core.errors import ArgumentError, HermesError, ToolError, UnavailableError
from hermes.core.jsontext import to_json
from hermes.core.log import Log
from hermes.core.registry import registry as shared_registry
from hermes.core.result import ToolResult
from hermes.runtime import answers, needs
from hermes.runtime.approving import approve
from hermes.runtime.ending import end
from hermes.runtime.events import EventBus
from hermes.runtime.flight import Flight
from hermes.runtime.hooking import after_call, before_call, transformed
from hermes.runtime.hooks import Hooks
from hermes.runtime.secrets import Secrets
from hermes.runtime.workers import StoppedLateError, StuckError, Workers
from hermes.safety.policy import EffectPolicy, Ruling
from hermes.safety.provenance import Heard, conversation_of, source_of
from hermes.safety.redaction import Redactor
from hermes.safety.sanitise import sanitise_error

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from typing import Any

    from hermes.core.context import Approver
    from hermes.core.entry import Lifecycle, ToolEntry
    from hermes.core.registry import ToolRegistry
    from hermes.runtime.artifacts import ArtifactStore
    from hermes.runtime.audit import AuditLog
    from hermes.runtime.parallel import Watcher
    from hermes.runtime.reviews import Reviews
    from hermes.runtime.tracing import Tracer
    from hermes.safety.policy import Policy

    Stages = Generator[needs.Need, Any, ToolOutcome]

log = Log("hermes.runtime")

_ids = itertools.count(1)
_clock = time.perf_counter


class Runtime:
    """Carries out tool calls. One per program is usual; tests and embedders make their own.

    Without an `approver`, whatever the policy wants a human to see is refused at once.
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
        self.heard = Heard()
        self.reviews = reviews
        self.workers = workers or Workers()
        self.grace_seconds = grace_seconds
        # What handlers reach through `context.service(name)`; outer layers add theirs.
        self.services: dict[str, Any] = {"runtime": self, "place": self._place}
        if artifacts is not None:
            self.services["artifacts"] = artifacts
        # Run before a name is looked up; sources of tools that change on disk hook in here.
        self.before_resolve: Callable[[], object] | None = None
        self._tasks: dict[str, Task] = {}
        # By flight and not by id: models give the same id twice.
        self._running: dict[Flight, Cancellation] = {}
        self._lifecycles: dict[Lifecycle, str] = {}
        self._lock = threading.Lock()
        self._context = self.context()
        registry.attach(self)

    # -- the front doors' side ----------------------------------------------------------------

    def call_sync(self, call: ToolCall, context: ToolContext | None = None) -> ToolOutcome:
        """Carry out one call from code that can't await."""
        stages = self._stages(call, context or self._context)
        try:
            need = next(stages)
            while True:
                try:
                    answer = need.sync(self)
                except BaseException as error:  # noqa: BLE001 - the stages decide what it means
                    need = stages.throw(error)
                else:
                    need = stages.send(answer)
        except StopIteration as done:
            outcome: ToolOutcome = done.value
            return outcome

    async def call(self, call: ToolCall, context: ToolContext | None = None) -> ToolOutcome:
        """Carry out one call from code that awaits."""
        stages = self._stages(call, context or self._context)
        try:
            need = next(stages)
            while True:
                try:
                    answer = await need.wait(self)
                except BaseException as error:  # noqa: BLE001 - the stages decide what it means
                    need = stages.throw(error)
                else:
                    need = stages.send(answer)
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
        from hermes.runtime import bridge

        outcomes: list[ToolOutcome] = bridge.run(self.call_many(calls, context, at_once=at_once))
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
            found = self._tasks.get(task_id)
            if found is None:
                found = self._tasks[task_id] = Task(task_id, workspace=workspace)
            return found

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
        found = [stop for flight, stop in self._under_way() if flight.call_id == call_id]
        for cancellation in found:
            cancellation.cancel(reason)
        return bool(found)

    def running(self) -> list[str]:
        """The ids of the calls under way."""
        return [flight.call_id for flight, _ in self._under_way()]

    def _under_way(self) -> list[tuple[Flight, Cancellation]]:
        # One step for the interpreter, whatever other threads begin and end meanwhile.
        return list(self._running.items())

    def close(self) -> None:
        """End every task, take down every tool that was set up, put the audit log on disk."""
        for task_id in list(self._tasks):
            self.close_task(task_id)
        used, self._lifecycles = self._lifecycles, {}
        # Those that were replaced or taken away while in use, and those that are there now.
        lives = {e.lifecycle: e.name for e in self.registry.entries() if e.lifecycle is not None}
        for lifecycle, name in {**used, **lives}.items():
            try:
                rest = lifecycle.close()
                if hasattr(rest, "__await__"):
                    from hermes.runtime import bridge

                    bridge.run(needs.settle(rest))
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

    # -- the pipeline -------------------------------------------------------------------------

    def _stages(self, call: ToolCall, context: ToolContext) -> Stages:
        started = _clock()
        call_id = call.id or f"call_{next(_ids)}"
        cancellation = Cancellation(context.cancellation)
        flight = Flight(call_id, call.name, context, cancellation, started)
        self._running[flight] = cancellation
        if self.tracer is not None:
            flight.span = self.tracer.call_begins(flight)
        try:
            if self.before_resolve is not None:
                self._before_resolve(flight)
            entry = self.registry.resolve(call.name)  # 1 resolve
            offer = context.services.get("offer")
            if entry is None or (offer is not None and entry.name not in offer.reachable):
                offered = None if offer is None else offer.reachable
                return end(self, flight, answers.unknown_tool(self.registry, call.name, offered))
            flight.entry = entry
            # Hooks, approvals and the log know a tool by one name, whichever it was called by.
            flight.tool = entry.name
            if entry.check_fn is not None or entry.requires_env:
                self._require(entry)
            arguments = entry.arguments.read(call.arguments)  # 2 read, 3 coerce, 4 validate
            flight.arguments = arguments
            if self.audit is not None or self.tracer is not None:
                # Now, for a handler may change what it was given.
                flight.noted = to_json(arguments)
                if flight.span is not None:
                    flight.span.attributes["gen_ai.tool.call.arguments"] = flight.noted

            ruling = self.judge(entry, arguments, context)  # 5 permit
            flight.places = ruling.places
            if ruling.by:
                flight.ruling, flight.approver = ruling, ruling.by
            if ruling.action != "allow":
                refusal = yield from approve(self, flight, ruling)  # 6 approve
                if refusal is not None:
                    return end(self, flight, refusal)

            hooks = self.hooks
            if hooks.pre_tool_call:  # 7 pre hooks
                refusal = yield from before_call(self, flight)
                if refusal is not None:
                    return end(self, flight, refusal)

            arguments = self.secrets.filled(flight, self.policy)
            value = yield self._started(flight, entry, arguments)  # 8 run
            if isinstance(value, ToolResult) and value.source:
                self._hear(flight, value.source)
            if hooks.transform_tool_result:  # 9 transform
                value = yield from transformed(self, flight, value)
            answer = answers.from_value(value)
        except ArgumentError as error:
            answer = answers.from_error(error)
        except HermesError as error:
            answer = self._from_hermes_error(error, flight)
        except StoppedLateError as error:
            if error.stuck:
                self.report_trouble(f"{call.name} {error}", flight)
            answer = answers.timed_out(call.name, str(error))
        except Exception as error:
            # Anything else a handler raises is a bug in it: the log has the traceback.
            log.info("%s failed", call.name, exc_info=True)
            answer = answers.from_bug(error)
        except BaseException as error:
            # Ctrl-C, or the caller's own cancellation: noted, and passed on.
            reason = cancellation.reason or type(error).__name__
            end(self, flight, answers.cancelled(call.name, reason))
            raise
        finally:
            del self._running[flight]
            cancellation.close()
        outcome = end(self, flight, answer)  # 10 redact, 11 fit, 12 record
        if self.hooks.post_tool_call:
            # After redaction on purpose: what a plugin logs or sends holds no secrets.
            yield from after_call(self, flight, outcome)
        return outcome

    def _require(self, entry: ToolEntry) -> None:
        reason = self.registry.availability.missing([entry]).get(entry.name)
        if reason is not None:
            raise UnavailableError(f"{entry.name} can't work here: {reason}")

    def judge(self, entry: ToolEntry, arguments: dict[str, Any], context: ToolContext) -> Ruling:
        """What the policy says to a call, and what the words of strangers make of that."""
        try:
            ruling = self.policy.judge(entry, arguments, context)
            if ruling.action == "allow" or ruling.action in ("ask", "refuse"):
                sources = self.heard.sources(context)
                if not sources:
                    return ruling
                from hermes.safety.lasting import reviewed

                return reviewed(ruling, entry, arguments, context, sources)
            raise ValueError(f"it ruled {ruling.action!r}")
        except Exception as error:
            # The gate fails closed.
            log.exception("the policy failed on %s", entry.name)
            return Ruling("refuse", reason=f"the policy failed: {error}", rule="policy:failed")

    def _place(self, context: ToolContext, kind: str, path: str) -> str:
        """Where a path leads that a handler comes upon; the policy may refuse it."""
        judge = getattr(self.policy, "place", None)
        if judge is not None:
            place = str(judge(context, kind, path))
        else:
            place = os.path.realpath(os.path.join(context.workspace, os.path.expanduser(path)))
        if kind != "read" and self.heard.sources(context):
            from hermes.safety.lasting import check_unasked

            check_unasked(path, place)
        return place

    def _started(self, flight: Flight, entry: ToolEntry, arguments: dict[str, Any]) -> needs.Run:
        """The handler's turn, announced to who watches; secrets go to the handler alone."""
        report = None
        if self.events.listeners:
            emit, call_id, tool = self.events.emit, flight.call_id, entry.name

            masked = self.redactor.redact_value

            def report(kind: Any, data: dict[str, Any]) -> None:
                emit(kind, call_id, tool, **masked(data))

            # A copy, for who only watches must not change what runs; and without secrets.
            shown = masked(deepcopy(flight.arguments))
            emit("started", call_id, tool, arguments=shown, emoji=entry.emoji)
        source = source_of(entry, flight.arguments, flight.places, flight.context)
        if source:
            # From here on whatever it brings in may be read.
            self._hear(flight, source)
        if entry.lifecycle is not None:
            self._lifecycles[entry.lifecycle] = entry.name
        cancellation = flight.cancellation
        if cancellation.reason:
            cancellation.check()
        context = flight.context
        if entry.takes_context:
            context = context.for_call(
                flight.call_id, entry.name, cancellation, report, flight.places, source
            )
        return needs.Run(entry, arguments, context, cancellation)

    def _hear(self, flight: Flight, source: str) -> None:
        """A call brings in the words of a stranger."""
        flight.source = source
        self.heard.note(conversation_of(flight.context), source)

    # -- what goes wrong ----------------------------------------------------------------------

    def _before_resolve(self, flight: Flight) -> None:
        assert self.before_resolve is not None
        try:
            self.before_resolve()
        except Exception as error:  # noqa: BLE001 - one broken source must not stop all calls
            self.report_trouble(f"looking for new tools: {type(error).__name__}: {error}", flight)

    def _from_hermes_error(self, error: HermesError, flight: Flight) -> answers.Answer:
        if isinstance(error, CancelledError):
            if isinstance(error, StuckError):
                self.report_trouble(f"{flight.tool}: {error}", flight)
            return answers.cancelled(flight.tool, str(error))
        if not isinstance(error, ToolError):
            log.info("%s: %s", flight.tool, error)
        return answers.from_error(error)

    def report_trouble(self, message: str, flight: Flight | None = None) -> None:
        """Log something that went wrong beside a call, and tell who watches."""
        message = sanitise_error(self.redactor.redact(message))
        log.warning("%s", message)
        call_id, tool = (flight.call_id, flight.tool) if flight else ("", "")
        self.events.emit("trouble", call_id, tool, message=message)
