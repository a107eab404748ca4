"""The stage in which a person is asked: what they are shown, what they say, what comes of it.

Where nobody can be asked a call is refused at once, or kept for a review when it can wait.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

from hermes.core.approval import ApprovalRequest
from hermes.core.log import Log
from hermes.runtime import answers, needs
from hermes.runtime.judging import judge

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from hermes.runtime.flight import Flight
    from hermes.runtime.pipeline import Runtime
    from hermes.safety.policy import Ruling

log = Log("hermes.runtime")

_YES = ("once", "session", "always")


def approve(
    runtime: Runtime, flight: Flight, ruling: Ruling
) -> Generator[needs.Need, Any, answers.Answer | None]:
    """None when a human said yes; else what the model is told."""
    flight.ruling = ruling
    if ruling.action == "refuse":
        flight.verdict = "refused"
        return answers.refused(ruling.reason)
    context = flight.context
    if context.approver is None:
        return _nobody(runtime, flight, ruling)
    # What is approved is what runs: neither who called nor who is asked can change it any more.
    flight.arguments = deepcopy(flight.arguments)
    request = ApprovalRequest(
        flight.tool,
        deepcopy(flight.arguments),
        reason=ruling.reason,
        rule=ruling.rule,
        rules=tuple(dict.fromkeys(grant.rule for grant in ruling.grants)),
        human_only=ruling.human_only,
        call_id=flight.call_id,
        front_door=context.front_door,
        agent_path=context.agent_path,
    )
    runtime.events.emit(
        "approval_requested", flight.call_id, flight.tool, reason=ruling.reason, request=request
    )
    try:
        said = yield from _ask(runtime, needs.Ask(context.approver, request, flight.cancellation))
    except Exception as error:
        flight.cancellation.check()
        log.exception("asking for approval of %s failed", flight.tool)
        flight.verdict = "asking failed"
        return answers.refused(f"asking for approval failed: {type(error).__name__}")
    flight.cancellation.check()
    if said is None:
        return _nobody(runtime, flight, ruling)
    flight.approver = getattr(said, "by", "") or context.front_door
    if said is not True and not (isinstance(said, str) and said in _YES):
        flight.verdict = "denied"
        denied = getattr(runtime.policy, "denied", None)
        if denied is not None:
            denied(ruling, context)
        return answers.refused(f"{ruling.reason}, and the person asked said no")
    if ruling.grants and not _same_ruling(runtime, flight, ruling):
        flight.verdict = "changed"
        return answers.refused("what it would do changed while it was being approved")
    flight.verdict = "approved"
    if said in ("session", "always"):
        remember = getattr(runtime.policy, "remember", None)
        if remember is not None:
            remember(ruling, said, context)
    if runtime.audit is not None:
        # On disk before it runs: a call that kills us has still been noted.
        runtime.audit.record(flight.line("approved", 0.0), now=True)
    return None


def _ask(runtime: Runtime, ask: needs.Ask) -> Generator[needs.Need, Any, Any]:
    """What the person says; how long that took is part of the trace."""
    if runtime.tracer is None:
        return (yield ask)
    request = ask.request
    attributes: dict[str, Any] = {
        "gen_ai.tool.name": request.tool,
        "gen_ai.tool.call.id": request.call_id,
        "hermes.approval.reason": request.reason,
        "hermes.rule": ", ".join(request.rules),
    }
    with runtime.tracer.inside("approval", f"approval {request.tool}", attributes) as span:
        said = yield ask
        attributes["hermes.approval.answer"] = "nobody" if said is None else str(said)
        attributes["hermes.approval.by"] = getattr(said, "by", "") or request.front_door
        span.status = "ok" if said is True or said in _YES else "refused"
    return said


def _nobody(runtime: Runtime, flight: Flight, ruling: Ruling) -> answers.Answer:
    if ruling.keeps and runtime.reviews is not None:
        sources = runtime.heard.sources(flight.context)
        held = runtime.reviews.hold(flight, ruling, sources)
        flight.verdict = "waits for review"
        return answers.waiting(held.id, ruling.keeps, sources)
    flight.verdict = "nobody to ask"
    return answers.refused(
        f"{ruling.reason}, which needs a person's approval, and nobody can be asked here"
    )


def _same_ruling(runtime: Runtime, flight: Flight, ruling: Ruling) -> bool:
    """Whether what was approved is still what would run: scripts may change meanwhile."""
    assert flight.entry is not None
    again = judge(runtime, flight.entry, flight.arguments, flight.context)
    return again.action == "allow" or again.grants == ruling.grants
