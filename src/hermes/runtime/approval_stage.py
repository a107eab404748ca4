"""Stages 5 and 6: ask the policy for a ruling, and a person for approval where the ruling says so.

Without an approver the call is refused, or stored for review if the policy allows that.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

from hermes.core.approval import ApprovalRequest
from hermes.core.log import Log
from hermes.runtime import result_texts
from hermes.runtime import waits as needs
from hermes.safety.policy import Ruling

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from hermes.core.context import ToolContext
    from hermes.core.entry import ToolEntry
    from hermes.runtime.call_state import Flight
    from hermes.runtime.pipeline import Runtime


log = Log("hermes.runtime")


def judge(
    runtime: Runtime, entry: ToolEntry, arguments: dict[str, Any], context: ToolContext
) -> Ruling:
    """What the policy says to a call, and what the words of strangers make of that."""
    try:
        ruling = runtime.policy.judge(entry, arguments, context)
        if ruling.action == "allow" or ruling.action in ("ask", "refuse"):
            sources = runtime.heard.sources(context)
            if not sources:
                return ruling
            from hermes.safety.taint import reviewed

            return reviewed(ruling, entry, arguments, context, sources)
        raise ValueError(f"it ruled {ruling.action!r}")
    except Exception as error:
        # The gate fails closed.
        log.exception("the policy failed on %s", entry.name)
        return Ruling("refuse", reason=f"the policy failed: {error}", rule="policy:failed")


def resolve_path(runtime: Runtime, context: ToolContext, kind: str, path: str) -> str:
    """Where a path leads that a handler comes upon; the policy may refuse it."""
    found = runtime.policy.resolve_path(context, kind, path)
    if kind != "read" and runtime.heard.sources(context):
        from hermes.safety.taint import check_unasked

        check_unasked(path, found)
    return found


_YES = ("once", "session", "always")


def approve(
    runtime: Runtime, flight: Flight, ruling: Ruling
) -> Generator[needs.Need, Any, result_texts.Answer | None]:
    """None when a human said yes; else what the model is told."""
    flight.ruling = ruling
    if ruling.action == "refuse":
        flight.verdict = "refused"
        return result_texts.refused(ruling.reason)
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
        return result_texts.refused(f"asking for approval failed: {type(error).__name__}")
    flight.cancellation.check()
    if said is None:
        return _nobody(runtime, flight, ruling)
    flight.approver = getattr(said, "by", "") or context.front_door
    if said is not True and not (isinstance(said, str) and said in _YES):
        flight.verdict = "denied"
        runtime.policy.denied(ruling, context)
        return result_texts.refused(f"{ruling.reason}, and the person asked said no")
    if ruling.grants and not _same_ruling(runtime, flight, ruling):
        flight.verdict = "changed"
        return result_texts.refused("what it would do changed while it was being approved")
    flight.verdict = "approved"
    if said in ("session", "always"):
        runtime.policy.remember(ruling, said, context)
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


def _nobody(runtime: Runtime, flight: Flight, ruling: Ruling) -> result_texts.Answer:
    if ruling.keeps and runtime.reviews is not None:
        sources = runtime.heard.sources(flight.context)
        held = runtime.reviews.hold(flight, ruling, sources)
        flight.verdict = "waits for review"
        return result_texts.waiting(held.id, ruling.keeps, sources)
    flight.verdict = "nobody to ask"
    return result_texts.refused(
        f"{ruling.reason}, which needs a person's approval, and nobody can be asked here"
    )


def _same_ruling(runtime: Runtime, flight: Flight, ruling: Ruling) -> bool:
    """Whether what was approved is still what would run: scripts may change meanwhile."""
    assert flight.entry is not None
    again = judge(runtime, flight.entry, flight.arguments, flight.context)
    return again.action == "allow" or again.grants == ruling.grants
