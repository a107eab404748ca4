"""Stages 5 and 6: ask the policy for a ruling, and a person for approval where the ruling says so.

Without an approver the call is refused, or stored for review if the policy allows that.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

from hermes.core.approval import ApprovalRequest
from hermes.core.log import Log
from hermes.runtime import result_texts, waits

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from hermes.runtime.call_state import CallState
    from hermes.runtime.pipeline import Runtime
    from hermes.safety.policy import Ruling


log = Log("hermes.runtime")


_YES = ("once", "session", "always")


def approve(
    runtime: Runtime, state: CallState, ruling: Ruling
) -> Generator[waits.Need, Any, result_texts.Answer | None]:
    """Ask for approval; the refusal for the model, or None when the call is approved."""
    state.ruling, state.rule = ruling, ruling.rule
    if ruling.action == "refuse":
        state.verdict = "refused"
        return result_texts.refused(ruling.reason)
    context = state.context
    if context.approver is None:
        return _nobody(runtime, state, ruling)
    # What is approved is what runs: neither who called nor who is asked can change it any more.
    state.arguments = deepcopy(state.arguments)
    request = ApprovalRequest(
        state.tool,
        deepcopy(state.arguments),
        reason=ruling.reason,
        rule=ruling.rule,
        rules=tuple(dict.fromkeys(grant.rule for grant in ruling.grants)),
        human_only=ruling.human_only,
        call_id=state.call_id,
        front_door=context.front_door,
        agent_path=context.agent_path,
    )
    runtime.events.emit(
        "approval_requested", state.call_id, state.tool, reason=ruling.reason, request=request
    )
    try:
        answer = yield from _ask(runtime, waits.Ask(context.approver, request, state.cancellation))
    except Exception as error:
        state.cancellation.check()
        log.exception("asking for approval of %s failed", state.tool)
        state.verdict = "asking failed"
        return result_texts.refused(f"asking for approval failed: {type(error).__name__}")
    state.cancellation.check()
    if answer is None:
        return _nobody(runtime, state, ruling)
    state.approver = getattr(answer, "by", "") or context.front_door
    if answer is not True and not (isinstance(answer, str) and answer in _YES):
        state.verdict = "denied"
        runtime.policy.denied(ruling, context)
        return result_texts.refused(f"{ruling.reason}, and the person asked said no")
    if ruling.grants:
        assert state.entry is not None
        again = runtime.judge(state.entry, state.arguments, context)
        # Scripts and links may have changed while the person was asked.
        if again.action != "allow" and again.grants != ruling.grants:
            state.verdict = "changed"
            return result_texts.refused("what it would do changed while it was being approved")
        state.ruling = again
    state.verdict = "approved"
    if answer in ("session", "always"):
        runtime.policy.remember(ruling, answer, context)
    if runtime.audit is not None:
        # On disk before it runs: a call that kills us has still been noted.
        runtime.audit.record(state, "approved", 0.0, now=True)
    return None


def _ask(runtime: Runtime, ask: waits.Ask) -> Generator[waits.Need, Any, Any]:
    """The approver's answer, traced as a span."""
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
        answer = yield ask
        attributes["hermes.approval.answer"] = "nobody" if answer is None else str(answer)
        attributes["hermes.approval.by"] = getattr(answer, "by", "") or request.front_door
        span.status = "ok" if answer is True or answer in _YES else "refused"
    return answer


def _nobody(runtime: Runtime, state: CallState, ruling: Ruling) -> result_texts.Answer:
    if ruling.keeps and runtime.reviews is not None:
        sources = runtime.heard.sources(state.context)
        held = runtime.reviews.hold(state, ruling, sources)
        state.verdict = "waits for review"
        return result_texts.waiting(held.id, ruling.keeps, sources)
    state.verdict = "nobody to ask"
    return result_texts.nobody_to_ask(ruling.reason)
