"""The twelve stages of a call.

In order: resolve, read, coerce, validate, permit, approve, pre hooks, run, transform, redact,
truncate, record. `stages` is one generator for sync and async callers: where a stage has to wait (a
person, a hook, the handler) it yields a wait (`waits.py`), and a driver of `Runtime` performs it.
"""

from __future__ import annotations

import itertools
import os
import time
from copy import deepcopy
from typing import TYPE_CHECKING

import msgspec

from hermes.core.context import ApprovalRequest, Cancellation, CancelledError, Ruling
from hermes.core.entry import DEFAULT_RESULT_SIZE, ToolOutcome, ToolResult
from hermes.core.errors import ArgumentError, HermesError, ToolError, UnavailableError
from hermes.core.json_text import to_json
from hermes.core.log import Log
from hermes.runtime import result_texts, waits
from hermes.runtime.hooks import HookCall, Rewrite, Veto
from hermes.runtime.workers import StoppedLateError, StuckError
from hermes.safety.taint import conversation_key, untrusted_source

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any

    from hermes.core.context import ToolContext
    from hermes.core.entry import ToolCall, ToolEntry
    from hermes.runtime.pipeline import Runtime
    from hermes.runtime.tracing import Span
    from hermes.safety.file_guard import HomeGuard
    from hermes.safety.placeholders import Used, Vault
    from hermes.safety.policy import Policy
    from hermes.safety.redaction import Redactor
# Until the policy has ruled.
UNJUDGED = Ruling("refuse", rule="policy:pending")


class CallState(msgspec.Struct, eq=False):
    """A running call: its arguments, the ruling on it, and its place in the trace."""

    call_id: str
    tool: str
    context: ToolContext
    cancellation: Cancellation
    started: float
    entry: ToolEntry | None = None
    arguments: dict[str, Any] = {}
    # The arguments as JSON, before the handler can change them.
    noted: str = "{}"
    ruling: Ruling = UNJUDGED
    # The rule that asked for or refused the call, or that an earlier approval covers.
    rule: str = ""
    verdict: str = "allowed"
    # The approver that allowed or refused it.
    approver: str = ""
    # Secrets that were filled in for placeholders.
    used: Used | None = None
    # Source of untrusted text in its result.
    source: str = ""
    # Its span in the trace, and the parent of that.
    span: Span | None = None
    around: Span | None = None


def before_call(
    runtime: Runtime, state: CallState
) -> Generator[waits.Need, Any, result_texts.Answer | None]:
    """None when the call may go on, with the arguments that hooks made of it; else the answer."""
    assert state.entry is not None
    # While hooks take their time, nobody else changes what was judged.
    before = state.arguments = deepcopy(state.arguments)
    for hook in runtime.hooks.pre_tool_call:
        result = yield from _hook(runtime, hook, state)
        if isinstance(result, Veto):
            state.verdict = "vetoed"
            return result_texts.refused(result.reason)
        if isinstance(result, Rewrite):
            try:
                state.arguments = state.entry.arguments.read(deepcopy(result.arguments))
            except ArgumentError as error:
                runtime.report_trouble(f"hook {_name(hook)} rewrote the arguments: {error}", state)
                raise
            state.noted = to_json(state.arguments)
    # As text, for to Python 1 is True.
    if state.arguments is before or to_json(state.arguments) == to_json(before):
        return None
    # What runs is what was judged: other arguments are judged again.
    ruling = runtime.judge(state.entry, state.arguments, state.context)
    state.ruling = ruling
    return None if ruling.action == "allow" else (yield from approve(runtime, state, ruling))


def transformed(runtime: Runtime, state: CallState, value: Any) -> Generator[waits.Need, Any, Any]:
    """The value after the transform hooks."""
    for hook in runtime.hooks.transform_tool_result:
        changed = yield from _hook(runtime, hook, state, value)
        value = value if changed is None else changed
    return value


def after_call(
    runtime: Runtime, state: CallState, outcome: ToolOutcome
) -> Generator[waits.Need, Any, None]:
    """Run the post hooks."""
    for hook in runtime.hooks.post_tool_call:
        yield from _hook(runtime, hook, state, outcome.copy())


def _hook(
    runtime: Runtime, hook: Any, state: CallState, *more: Any
) -> Generator[waits.Need, Any, Any]:
    # A copy: only a `Rewrite` changes what runs, and that is judged again.
    arguments = deepcopy(state.arguments)
    call = HookCall(state.tool, arguments, state.call_id, state.context)
    try:
        return (yield waits.Hook(hook, (call, *more)))
    except Exception as error:  # noqa: BLE001 - a hook must not break the call
        message = f"hook {_name(hook)}: {type(error).__name__}: {error}"
        runtime.report_trouble(message, state)
        return None


def _name(hook: Any) -> str:
    return str(getattr(hook, "__qualname__", None) or repr(hook))


_clock = time.perf_counter


def end(runtime: Runtime, state: CallState, answer: result_texts.Answer) -> ToolOutcome:
    """Stages 10 to 12: redact, truncate and record; the outcome for the caller."""
    artifact = None
    limit = DEFAULT_RESULT_SIZE
    if state.entry is not None and state.entry.max_result_size_chars is not None:
        limit = state.entry.max_result_size_chars
    try:
        content = runtime.redactor.redact(answer.content)  # 10 redact
        if content is not answer.content or runtime.secrets.in_use:
            content = runtime.secrets.masked(answer.content, state)
        if answer.error is not None:
            answer.error = runtime.redactor.redact(answer.error)
        if len(content) > limit:  # 11 fit
            from hermes.runtime.result_texts import fit

            content, artifact = fit(content, limit, runtime.artifacts, state.source)
    except Exception as error:
        # Unredacted it must not leave, and the call must end all the same.
        log.exception("the result of %s can't be shown", state.tool)
        answer = result_texts.unusable(error)
        content = answer.content
    outcome = ToolOutcome(
        state.call_id,
        state.tool,
        content,
        answer.status,
        answer.error,
        state.rule,
        _clock() - state.started,
        artifact,
        state.source,
    )
    if runtime.audit is not None:  # 12 record
        try:
            refused = answer.status == "refused"
            runtime.audit.record(state, answer.status, outcome.seconds, now=refused)
        except Exception as error:  # noqa: BLE001 - the call has happened: its result stays
            runtime.report_trouble(f"the audit log: {type(error).__name__}: {error}", state)
    if state.span is not None and runtime.tracer is not None:
        runtime.tracer.call_ends(state, state.span, outcome)
    if runtime.events.listeners:
        runtime.events.emit("finished", state.call_id, state.tool, outcome=outcome)
    return outcome


if TYPE_CHECKING:
    Stages = Generator[waits.Need, Any, ToolOutcome]
_ids = itertools.count(1)


def stages(runtime: Runtime, call: ToolCall, context: ToolContext) -> Stages:
    """The stages of one call, up to its outcome."""
    cancellation = Cancellation(context.cancellation)
    call_id = call.id or f"call_{next(_ids)}"
    state = CallState(call_id, call.name, context, cancellation, _clock())
    runtime.under_way[state] = cancellation
    if runtime.tracer is not None:
        state.span = runtime.tracer.call_begins(state)
    hooks = runtime.hooks
    try:
        if runtime.before_resolve is not None:
            _look_for_new_tools(runtime, state)
        entry = runtime.registry.resolve(call.name)  # 1 resolve
        offer = context.services.offer
        if entry is None or (offer is not None and entry.name not in offer.reachable):
            offered = None if offer is None else offer.reachable
            return end(
                runtime, state, result_texts.unknown_tool(runtime.registry, call.name, offered)
            )
        state.entry = entry
        # Hooks, approvals and the log know a tool by one name, whichever it was called by.
        state.tool = entry.name
        if entry.check_fn is not None or entry.requires_env:
            _require(runtime, entry)
        arguments = entry.arguments.read(call.arguments)  # 2 read, 3 coerce, 4 validate
        state.arguments = arguments
        # Now, for a handler may change what it was given.
        state.noted = to_json(arguments)
        if state.span is not None:
            state.span.attributes["gen_ai.tool.call.arguments"] = state.noted

        ruling = runtime.judge(entry, arguments, context)  # 5 permit
        state.ruling = ruling
        if ruling.by:
            state.rule, state.approver = ruling.rule, ruling.by
        if ruling.action != "allow":
            refusal = yield from approve(runtime, state, ruling)  # 6 approve
            if refusal is not None:
                return end(runtime, state, refusal)

        if hooks.pre_tool_call:  # 7 pre hooks
            refusal = yield from before_call(runtime, state)
            if refusal is not None:
                return end(runtime, state, refusal)

        effects = state.ruling.effects
        if effects is not None and effects.scripts_changed():
            # A script was changed after it was judged.
            ruling = runtime.judge(entry, state.arguments, context)
            state.ruling = ruling
            if ruling.action != "allow":
                refusal = yield from approve(runtime, state, ruling)
                if refusal is not None:
                    return end(runtime, state, refusal)

        arguments = state.arguments
        if PLACEHOLDER in state.noted:
            arguments = runtime.secrets.filled(state, runtime.policy)
        guard = _home_guard(runtime, state, entry, arguments)
        try:
            value = yield _started(runtime, state, entry, arguments)  # 8 run
        finally:
            put_back = guard.end() if guard is not None else ()
            for line in put_back:
                runtime.report_trouble(line, state)
        if put_back and isinstance(value, ToolResult):
            value.notes = [*value.notes, *put_back]
        if isinstance(value, ToolResult) and value.source:
            _hear(runtime, state, value.source)
        if hooks.transform_tool_result:  # 9 transform
            value = yield from transformed(runtime, state, value)
        if isinstance(value, ToolResult) and (value.notes or value.hint):
            _name_offered_tools_only(runtime, state, value)
        answer = result_texts.from_value(value)
    except ArgumentError as error:
        answer = result_texts.from_error(error)
    except HermesError as error:
        answer = _from_hermes_error(runtime, error, state)
    except StoppedLateError as error:
        if error.stuck:
            runtime.report_trouble(f"{call.name} {error}", state)
        answer = result_texts.timed_out(call.name, str(error))
    except Exception as error:
        # Anything else a handler raises is a bug in it: the log has the traceback.
        log.info("%s failed", call.name, exc_info=True)
        answer = result_texts.from_bug(error)
    except BaseException as error:
        # Ctrl-C, or the caller's own cancellation: noted, and passed on.
        reason = cancellation.reason or type(error).__name__
        end(runtime, state, result_texts.cancelled(call.name, reason))
        raise
    finally:
        del runtime.under_way[state]
        cancellation.close()
    outcome = end(runtime, state, answer)  # 10 redact, 11 fit, 12 record
    if hooks.post_tool_call:
        # After redaction on purpose: what a plugin logs or sends holds no secrets.
        yield from after_call(runtime, state, outcome)
    return outcome


def _look_for_new_tools(runtime: Runtime, state: CallState) -> None:
    assert runtime.before_resolve is not None
    try:
        runtime.before_resolve()
    except Exception as error:  # noqa: BLE001 - one broken source must not stop all calls
        runtime.report_trouble(f"looking for new tools: {type(error).__name__}: {error}", state)


def _require(runtime: Runtime, entry: ToolEntry) -> None:
    reason = runtime.registry.availability.missing([entry]).get(entry.name)
    if reason is not None:
        raise UnavailableError(f"{entry.name} can't work here: {reason}")


def _started(
    runtime: Runtime, state: CallState, entry: ToolEntry, arguments: dict[str, Any]
) -> waits.Run:
    """The handler's turn; secrets go to the handler alone."""
    report = _announced(runtime, state, entry) if runtime.events.listeners else None
    context = state.context
    source = untrusted_source(entry, state.ruling, context)
    if source:
        # From here on whatever it brings in may be read.
        _hear(runtime, state, source)
    if entry.lifecycle is not None:
        runtime.lifecycles[entry.lifecycle] = entry.name
    cancellation = state.cancellation
    if cancellation.reason:
        cancellation.check()
    if entry.takes_context:
        context = context.for_call(
            state.call_id, entry.name, cancellation, report, state.ruling, source
        )
    return waits.Run(entry, arguments, context, cancellation)


def _home_guard(
    runtime: Runtime, state: CallState, entry: ToolEntry, arguments: dict[str, Any]
) -> HomeGuard | None:
    """The guard of the home folder while a command runs that is not confined."""
    if entry.effect != "execute" or entry.effect_of(arguments) == "read":
        return None
    effects = None if state.ruling is None else state.ruling.effects
    if effects is None or not effects.acts:
        if entry.origin == "builtin":
            # It starts nothing itself; the calls that it makes are guarded.
            return None
    else:
        free = [act for act in effects.acts if act.kind == "execute" and not act.confined]
        if all(effects.verdict(act).reads_only for act in free):
            return None
    runtime.home_guard.begin()
    return runtime.home_guard


def _announced(
    runtime: Runtime, state: CallState, entry: ToolEntry
) -> Callable[[str, dict[str, Any]], None]:
    """Emit `started`; the function that emits the handler's progress."""
    emit, masked = runtime.events.emit, runtime.redactor.redact_value
    call_id, tool = state.call_id, entry.name

    def report(kind: Any, data: dict[str, Any]) -> None:
        emit(kind, call_id, tool, **masked(data))

    # A copy, for who only watches must not change what runs; and without secrets.
    shown = masked(deepcopy(state.arguments))
    emit("started", call_id, tool, arguments=shown, emoji=entry.emoji)
    return report


def _hear(runtime: Runtime, state: CallState, source: str) -> None:
    """A call brings in the words of a stranger."""
    state.source = source
    runtime.heard.note(conversation_key(state.context), source)


def _from_hermes_error(
    runtime: Runtime, error: HermesError, state: CallState
) -> result_texts.Answer:
    if isinstance(error, CancelledError):
        if isinstance(error, StuckError):
            runtime.report_trouble(f"{state.tool}: {error}", state)
        return result_texts.cancelled(state.tool, str(error))
    if not isinstance(error, ToolError):
        log.info("%s: %s", state.tool, error)
    if error.hint:
        error.hint = _offered_text(runtime, state, error.hint) or None
    return result_texts.from_error(error)


def _name_offered_tools_only(runtime: Runtime, state: CallState, result: ToolResult) -> None:
    if state.entry is not None and state.entry.origin == "builtin":
        notes = [_offered_text(runtime, state, note) for note in result.notes]
        result.notes = [note for note in notes if note]
    if result.hint:
        result.hint = _offered_text(runtime, state, result.hint) or None


def _offered_text(runtime: Runtime, state: CallState, text: str) -> str:
    from hermes.runtime.definitions import offered_text

    offer = state.context.services.offer
    return offered_text(text, runtime.registry, None if offer is None else offer.reachable)


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


# What every placeholder begins with; see `hermes.safety.placeholders`.
PLACEHOLDER = "[secret:"
# The right to have placeholders filled.
RIGHT = "secret:use"


class Secrets:
    """The vault of one runtime, made when the first secret is seen."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._vault: Vault | None = None

    def filled(self, state: CallState, policy: Policy) -> dict[str, Any]:
        """The arguments as the handler gets them; raises `ToolError` where a secret may not go."""
        if state.entry is None:
            return state.arguments
        given, state.used = self._open().fill(
            state.arguments,
            _acts(state),
            _session(state),
            workspace=state.context.workspace,
            resolve=lambda path: _place(state, path),
            effect=state.entry.effect,
            allowed=policy.allows(RIGHT, state.context),
        )
        return given

    @property
    def in_use(self) -> bool:
        """Whether a secret was seen."""
        return self._vault is not None

    def masked(self, content: str, state: CallState) -> str:
        """A result with a placeholder for each secret in it."""
        plain = self._redactor.redact(content)
        if self._vault is None and plain is content:
            return plain
        known = self._vault.known(_session(state)) if self._vault is not None else None
        if (plain == content and not (known and known.values)) or state.entry is None:
            return plain
        from hermes.safety.placeholders import origin_of

        origin = origin_of(
            state.tool,
            _acts(state),
            workspace=state.context.workspace,
            resolve=lambda path: _place(state, path),
        )
        vault = self._open()
        # What was a secret once in this session stays one, whatever stands around it now.
        return vault.mask(content, session=_session(state), origin=origin, used=known)

    def end_session(self, session: str) -> None:
        """Forget the secrets of a session."""
        if self._vault is not None:
            self._vault.end_session(session)

    def _open(self) -> Vault:
        if self._vault is None:
            from hermes.safety.placeholders import Vault

            self._vault = Vault(self._redactor)
        return self._vault


def _acts(state: CallState) -> list[tuple[str, str]]:
    effects = state.ruling.effects
    return [act[:2] for act in effects.acts] if effects is not None else []


def _session(state: CallState) -> str:
    return state.context.session_id or state.context.task.id


def _place(state: CallState, path: str) -> str:
    """Where a path of the call leads, as the gate judged it."""
    for (_, spelled), place in (state.ruling.paths or {}).items():
        if spelled == path:
            return place
    return os.path.realpath(os.path.join(state.context.workspace, os.path.expanduser(path)))
