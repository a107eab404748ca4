"""The twelve stages of a call.

In order: resolve, read, coerce, validate, permit, approve, pre hooks, run, transform, redact,
truncate, record. `stages` is one generator for sync and async callers: where a stage has to wait (a
person, a hook, the handler) it yields a wait (`waits.py`), and a driver of `Runtime` performs it.
"""

from __future__ import annotations

import itertools
import time
from copy import deepcopy
from typing import TYPE_CHECKING

from hermes.core.cancellation import Cancellation, CancelledError
from hermes.core.entry import DEFAULT_RESULT_SIZE, ToolOutcome
from hermes.core.errors import ArgumentError, HermesError, ToolError, UnavailableError
from hermes.core.json_text import to_json
from hermes.core.log import Log
from hermes.core.result import ToolResult
from hermes.runtime import result_texts, waits
from hermes.runtime.approval_stage import approve
from hermes.runtime.call_state import CallState
from hermes.runtime.hooks import HookCall, Rewrite, Veto
from hermes.runtime.placeholder_fill import PLACEHOLDER
from hermes.runtime.workers import StoppedLateError, StuckError
from hermes.safety.taint import conversation_key, untrusted_source

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any

    from hermes.core.context import ToolContext
    from hermes.core.entry import ToolCall, ToolEntry
    from hermes.runtime.pipeline import Runtime
    from hermes.safety.file_guard import HomeGuard


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


log = Log("hermes.runtime")

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
            from hermes.runtime.truncate import fit

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
