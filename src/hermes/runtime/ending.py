"""The last stages of a call: its answer redacted, cut to size, and recorded."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from hermes.core.entry import DEFAULT_RESULT_SIZE, ToolOutcome
from hermes.core.log import Log
from hermes.runtime import answers

if TYPE_CHECKING:
    from hermes.runtime.flight import Flight
    from hermes.runtime.pipeline import Runtime

log = Log("hermes.runtime")

_clock = time.perf_counter


def end(runtime: Runtime, flight: Flight, answer: answers.Answer) -> ToolOutcome:
    """What the caller of a tool gets, after everybody who keeps records has it."""
    artifact = None
    limit = DEFAULT_RESULT_SIZE
    if flight.entry is not None and flight.entry.max_result_size_chars is not None:
        limit = flight.entry.max_result_size_chars
    try:
        content = runtime.secrets.masked(answer.content, flight)  # 10 redact
        if answer.error is not None:
            answer.error = runtime.redactor.redact(answer.error)
        if len(content) > limit:  # 11 fit
            from hermes.runtime.fit import fit

            content, artifact = fit(content, limit, runtime.artifacts, flight.source)
    except Exception as error:
        # Unredacted it must not leave, and the call must end all the same.
        log.exception("the result of %s can't be shown", flight.tool)
        answer = answers.unusable(error)
        content = answer.content
    outcome = ToolOutcome(
        flight.call_id,
        flight.tool,
        content,
        answer.status,
        answer.error,
        flight.ruling.rule if flight.ruling is not None else "",
        _clock() - flight.started,
        artifact,
        flight.source,
    )
    if runtime.audit is not None:  # 12 record
        try:
            line = flight.line(answer.status, outcome.seconds)
            runtime.audit.record(line, now=answer.status == "refused")
        except Exception as error:  # noqa: BLE001 - the call has happened: its result stays
            runtime.report_trouble(f"the audit log: {type(error).__name__}: {error}", flight)
    if flight.span is not None and runtime.tracer is not None:
        runtime.tracer.call_ends(flight, flight.span, outcome)
    if runtime.events.listeners:
        runtime.events.emit("finished", flight.call_id, flight.tool, outcome=outcome)
    return outcome
