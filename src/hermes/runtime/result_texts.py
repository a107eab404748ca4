"""JSON texts exchanged with the model: results, errors with hints, and the
`tool_calls`/`tool_results` protocol.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec

from hermes.core.entry import ToolCall
from hermes.core.errors import HermesError
from hermes.core.json_text import plain, to_json
from hermes.core.result import JsonText, ToolResult
from hermes.core.suggest import did_you_mean
from hermes.safety.sanitise import sanitise_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, Literal

    from hermes.core.entry import ToolOutcome
    from hermes.core.registry import ToolRegistry


if TYPE_CHECKING:
    Status = Literal["ok", "error", "refused", "timeout", "cancelled"]


class Answer(msgspec.Struct, eq=False):
    """JSON text for the model, and the status of the call."""

    content: str
    status: Status = "ok"
    error: str | None = None


def from_value(value: Any) -> Answer:
    """The answer of a handler that returned."""
    if type(value) is dict and "error" not in value:
        # By far the most frequent.
        return Answer(to_json(value))
    if isinstance(value, str):
        made = isinstance(value, JsonText)
        value = str(value)
        if value[:1] in ("{", "[") and (parsed := _parsed(value)) is not None:
            return _judged(parsed, value)
        if made:
            return Answer(value)
        return Answer(to_json(value))
    if isinstance(value, ToolResult):
        shown = value.value()
        error = None if value.ok else str(value.error)
        return Answer(to_json(shown), "ok" if value.ok else "error", error)
    if isinstance(value, dict):
        return _judged(value, to_json(value))
    if isinstance(value, (bytes, bytearray)):
        # What a program printed, most likely.
        value = plain(value)
    return Answer(to_json(value))


def _judged(value: Any, content: str) -> Answer:
    error = value.get("error") if isinstance(value, dict) else None
    if error:
        return Answer(content, "error", error if isinstance(error, str) else to_json(error))
    return Answer(content)


def from_error(error: HermesError) -> Answer:
    """An error raised on purpose: its message and its hint."""
    return _error(str(error), hint=error.hint)


def from_bug(error: BaseException) -> Answer:
    """An unexpected exception of a handler."""
    return _error(f"Tool execution failed: {type(error).__name__}: {error}")


def timed_out(tool: str, how: str) -> Answer:
    """The handler ran past its time."""
    message = f"{tool} {how}" if how else f"{tool} timed out"
    return _error(message, status="timeout", hint="Ask for less at once, or allow more time.")


def cancelled(tool: str, reason: str) -> Answer:
    """The call was stopped from outside."""
    return _error(f"{tool} was stopped before it ended: {reason}", status="cancelled")


def refused(reason: str) -> Answer:
    """Refusal by the policy, a person or a hook."""
    return _error(
        f"Not run: {reason}.",
        status="refused",
        hint="Do not try this again or in another way; go on without it, or ask the person.",
    )


def nobody_to_ask(reason: str) -> Answer:
    """The call needs an approval, and the program has no approver."""
    return _error(
        f"Not run: {reason}, which needs a person's approval, and nobody can be asked here.",
        status="refused",
        hint="Do not try this again or in another way; go on without it, or ask the person. "
        'Developers: register the tool with effect="read" if it only reads, or give the Runtime '
        "or App an approver= that answers, or a policy= that allows it.",
    )


def waiting(review: str, kept: str, sources: Sequence[str]) -> Answer:
    """The call was put aside for a person to look at; it was not carried out."""
    return _error(
        f"Not done yet: this waits for review ({review}). It would change {kept}, which later "
        f"conversations load by themselves, and this one has read what others wrote: "
        f"{', '.join(sources[:3])}.",
        status="refused",
        hint="A person looks at it later. Do not try this in another way; go on, and mention it.",
    )


def unusable(error: Exception) -> Answer:
    """The tool ran, but its answer can't be shown."""
    return _error(f"the result can't be shown: {type(error).__name__}")


def unknown_tool(registry: ToolRegistry, name: str, offered: frozenset[str] | None) -> Answer:
    """No tool has that name, or none that is offered."""
    name = str(name)[:80]
    known = [*registry.names(), *registry.aliases()] if offered is None else sorted(offered)
    search = "tool_search finds tools by need." if "tool_search" in known else ""
    hint = did_you_mean(name, known, search, count=3)
    return _error(f"no tool is called {name!r}", hint=hint)


def _error(message: str, *, hint: str | None = None, status: Status = "error") -> Answer:
    message = sanitise_error(message)
    fields = {"error": message}
    if hint:
        fields["hint"] = sanitise_error(hint)
    return Answer(to_json(fields), status, message)


def _parsed(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None


_SHAPE = 'Send {"tool_calls": [{"id": …, "type": "function", "function": {"name", "arguments"}}]}.'


def read_calls(text: str) -> list[ToolCall]:
    """The calls in `{"tool_calls": […]}`; arguments may be an object or text, as models send it."""
    try:
        message = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise HermesError(f"the calls are not JSON: {error}", hint=_SHAPE) from None
    calls = message.get("tool_calls") if isinstance(message, dict) else None
    if not isinstance(calls, list):
        raise HermesError("there is no list `tool_calls`", hint=_SHAPE)
    given = {str(call.get("id")) for call in calls if isinstance(call, dict)}
    return [_call(call, number, given) for number, call in enumerate(calls, 1)]


def _call(call: Any, number: int, given: set[str]) -> ToolCall:
    function = call.get("function") if isinstance(call, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(name, str) or not isinstance(function, dict):
        # Answered like any call to a tool that is not there: the others are carried out.
        return ToolCall("(no name)", None, id=_id(call, number, given))
    arguments = function.get("arguments")
    if arguments is not None and not isinstance(arguments, (str, dict)):
        # Shown to the reader of arguments as what it is, so that the refusal can name it.
        arguments = json.dumps(arguments)
    return ToolCall(name, arguments, id=_id(call, number, given))


def _id(call: Any, number: int, given: set[str]) -> str:
    """The id that came with a call, or one that no other has."""
    own = f"call_{number}"
    while own in given:
        own += "_"
    return str((call.get("id") if isinstance(call, dict) else None) or own)


def tool_results(outcomes: Iterable[ToolOutcome]) -> str:
    """`{"tool_results": […]}`, in the order of the outcomes."""
    results = [
        {"tool_call_id": o.call_id, "role": "tool", "name": o.name, "content": o.content}
        for o in outcomes
    ]
    return to_json({"tool_results": results})
