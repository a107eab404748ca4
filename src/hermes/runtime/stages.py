"""The twelve stages that every call goes through, in their order.

`stages` is written once, as a generator. Where a stage may have to wait (ask a human, run a hook,
run the handler) it yields what it needs, and one of the two drivers of `Runtime` supplies it.
"""

from __future__ import annotations

import itertools
import time
from copy import deepcopy
from typing import TYPE_CHECKING

from hermes.core.cancellation import Cancellation, CancelledError
from hermes.core.errors import ArgumentError, HermesError, ToolError, UnavailableError
from hermes.core.jsontext import to_json
from hermes.core.log import Log
from hermes.core.result import ToolResult
from hermes.runtime import answers, needs
from hermes.runtime.approving import approve
from hermes.runtime.ending import end
from hermes.runtime.flight import Flight
from hermes.runtime.hooking import after_call, before_call, transformed
from hermes.runtime.judging import judge
from hermes.runtime.workers import StoppedLateError, StuckError
from hermes.safety.provenance import conversation_of, source_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any

    from hermes.core.context import ToolContext
    from hermes.core.entry import ToolCall, ToolEntry, ToolOutcome
    from hermes.runtime.pipeline import Runtime

    Stages = Generator[needs.Need, Any, ToolOutcome]

log = Log("hermes.runtime")

_ids = itertools.count(1)
_clock = time.perf_counter


def stages(runtime: Runtime, call: ToolCall, context: ToolContext) -> Stages:
    """One call, from what the model asked for to what it is told."""
    cancellation = Cancellation(context.cancellation)
    call_id = call.id or f"call_{next(_ids)}"
    flight = Flight(call_id, call.name, context, cancellation, _clock())
    runtime.under_way[flight] = cancellation
    if runtime.tracer is not None:
        flight.span = runtime.tracer.call_begins(flight)
    hooks = runtime.hooks
    try:
        if runtime.before_resolve is not None:
            _look_for_new_tools(runtime, flight)
        entry = runtime.registry.resolve(call.name)  # 1 resolve
        offer = context.services.get("offer")
        if entry is None or (offer is not None and entry.name not in offer.reachable):
            offered = None if offer is None else offer.reachable
            return end(runtime, flight, answers.unknown_tool(runtime.registry, call.name, offered))
        flight.entry = entry
        # Hooks, approvals and the log know a tool by one name, whichever it was called by.
        flight.tool = entry.name
        if entry.check_fn is not None or entry.requires_env:
            _require(runtime, entry)
        arguments = entry.arguments.read(call.arguments)  # 2 read, 3 coerce, 4 validate
        flight.arguments = arguments
        # Now, for a handler may change what it was given.
        flight.noted = to_json(arguments)
        if flight.span is not None:
            flight.span.attributes["gen_ai.tool.call.arguments"] = flight.noted

        ruling = judge(runtime, entry, arguments, context)  # 5 permit
        flight.places = ruling.places
        if ruling.by:
            flight.ruling, flight.approver = ruling, ruling.by
        if ruling.action != "allow":
            refusal = yield from approve(runtime, flight, ruling)  # 6 approve
            if refusal is not None:
                return end(runtime, flight, refusal)

        if hooks.pre_tool_call:  # 7 pre hooks
            refusal = yield from before_call(runtime, flight)
            if refusal is not None:
                return end(runtime, flight, refusal)

        arguments = runtime.secrets.filled(flight, runtime.policy)
        value = yield _started(runtime, flight, entry, arguments)  # 8 run
        if isinstance(value, ToolResult) and value.source:
            _hear(runtime, flight, value.source)
        if hooks.transform_tool_result:  # 9 transform
            value = yield from transformed(runtime, flight, value)
        answer = answers.from_value(value)
    except ArgumentError as error:
        answer = answers.from_error(error)
    except HermesError as error:
        answer = _from_hermes_error(runtime, error, flight)
    except StoppedLateError as error:
        if error.stuck:
            runtime.report_trouble(f"{call.name} {error}", flight)
        answer = answers.timed_out(call.name, str(error))
    except Exception as error:
        # Anything else a handler raises is a bug in it: the log has the traceback.
        log.info("%s failed", call.name, exc_info=True)
        answer = answers.from_bug(error)
    except BaseException as error:
        # Ctrl-C, or the caller's own cancellation: noted, and passed on.
        reason = cancellation.reason or type(error).__name__
        end(runtime, flight, answers.cancelled(call.name, reason))
        raise
    finally:
        del runtime.under_way[flight]
        cancellation.close()
    outcome = end(runtime, flight, answer)  # 10 redact, 11 fit, 12 record
    if hooks.post_tool_call:
        # After redaction on purpose: what a plugin logs or sends holds no secrets.
        yield from after_call(runtime, flight, outcome)
    return outcome


def _look_for_new_tools(runtime: Runtime, flight: Flight) -> None:
    assert runtime.before_resolve is not None
    try:
        runtime.before_resolve()
    except Exception as error:  # noqa: BLE001 - one broken source must not stop all calls
        runtime.report_trouble(f"looking for new tools: {type(error).__name__}: {error}", flight)


def _require(runtime: Runtime, entry: ToolEntry) -> None:
    reason = runtime.registry.availability.missing([entry]).get(entry.name)
    if reason is not None:
        raise UnavailableError(f"{entry.name} can't work here: {reason}")


def _started(
    runtime: Runtime, flight: Flight, entry: ToolEntry, arguments: dict[str, Any]
) -> needs.Run:
    """The handler's turn; secrets go to the handler alone."""
    report = _announced(runtime, flight, entry) if runtime.events.listeners else None
    context = flight.context
    source = source_of(entry, flight.arguments, flight.places, context)
    if source:
        # From here on whatever it brings in may be read.
        _hear(runtime, flight, source)
    if entry.lifecycle is not None:
        runtime.lifecycles[entry.lifecycle] = entry.name
    cancellation = flight.cancellation
    if cancellation.reason:
        cancellation.check()
    if entry.takes_context:
        context = context.for_call(
            flight.call_id, entry.name, cancellation, report, flight.places, source
        )
    return needs.Run(entry, arguments, context, cancellation)


def _announced(
    runtime: Runtime, flight: Flight, entry: ToolEntry
) -> Callable[[str, dict[str, Any]], None]:
    """Tell who watches that the handler begins; gives what it reports its progress with."""
    emit, masked = runtime.events.emit, runtime.redactor.redact_value
    call_id, tool = flight.call_id, entry.name

    def report(kind: Any, data: dict[str, Any]) -> None:
        emit(kind, call_id, tool, **masked(data))

    # A copy, for who only watches must not change what runs; and without secrets.
    shown = masked(deepcopy(flight.arguments))
    emit("started", call_id, tool, arguments=shown, emoji=entry.emoji)
    return report


def _hear(runtime: Runtime, flight: Flight, source: str) -> None:
    """A call brings in the words of a stranger."""
    flight.source = source
    runtime.heard.note(conversation_of(flight.context), source)


def _from_hermes_error(runtime: Runtime, error: HermesError, flight: Flight) -> answers.Answer:
    if isinstance(error, CancelledError):
        if isinstance(error, StuckError):
            runtime.report_trouble(f"{flight.tool}: {error}", flight)
        return answers.cancelled(flight.tool, str(error))
    if not isinstance(error, ToolError):
        log.info("%s: %s", flight.tool, error)
    return answers.from_error(error)
