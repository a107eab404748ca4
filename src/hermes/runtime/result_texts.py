"""Results as JSON text for the model, cut to size."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec

from hermes.core.entry import JsonText, ToolCall, ToolResult
from hermes.core.errors import HermesError, did_you_mean
from hermes.core.json_text import plain, to_json
from hermes.safety.sanitise import sanitise_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, Literal

    from hermes.core.entry import ToolOutcome
    from hermes.core.registry import ToolRegistry
    from hermes.runtime.artifacts import ArtifactStore


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


# What the frame around a cut result (handle, sizes, the note) may take.
_FRAME = 400
_SMALLEST = 40


def fit(
    content: str, limit: int, artifacts: ArtifactStore | None, source: str = ""
) -> tuple[str, str | None]:
    """`content` (JSON text) in at most `limit` characters, and the handle of the whole.

    `source` is the untrusted source of the text, stored with the whole.

    The note on the omitted part needs room: a limit below about 450 is taken as 450.
    """
    limit = max(limit, _FRAME + _SMALLEST)
    if len(content) <= limit:
        return content, None
    value = _json_or_text(content)
    whole = value if isinstance(value, str) else content
    handle, note = _keep(whole, artifacts, source)
    frame: dict[str, Any] = {"truncated": True, "total_chars": len(whole), "note": note}
    if handle:
        frame["artifact"] = handle
    budget = max(limit - len(to_json(frame)) - len('{"result":},'), _SMALLEST)
    while True:
        framed = to_json(_framed(shrink(value, budget), frame))
        if len(framed) <= limit:
            return framed, handle
        if budget <= _SMALLEST:
            return to_json({"result": whole[: _SMALLEST // 2], **frame}), handle
        budget = max(budget * 3 // 4, _SMALLEST)


def _json_or_text(content: str) -> Any:
    import json

    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        # Nested too deeply, or a number of thousands of digits: cut as the text that it is.
        return content


def _keep(whole: str, artifacts: ArtifactStore | None, source: str) -> tuple[str | None, str]:
    if artifacts is None:
        return None, "the rest was not kept: this front door has no artifact store"
    try:
        handle = artifacts.put(whole, source=source)
    except OSError as error:
        reason = error.strerror or str(error)
        return None, f"the rest could not be kept: {reason:.120}"
    return handle, f'read_artifact("{handle}", offset=…, limit=…, pattern=…) shows the rest'


def _framed(value: Any, frame: dict[str, Any]) -> dict[str, Any]:
    if isinstance(value, dict):
        clash = frame.keys() & value.keys()
        return {**value, **frame} if not clash else {"result": value, **frame}
    key = "items" if isinstance(value, list) else "text" if isinstance(value, str) else "result"
    return {key: value, **frame}


def shrink(value: Any, budget: int) -> Any:
    """`value` cut so that its JSON text has about `budget` characters at most."""
    if isinstance(value, str):
        return _shrink_text(value, budget)
    if isinstance(value, list):
        return _shrink_list(value, budget)
    if isinstance(value, dict):
        return _shrink_dict(value, budget)
    return value


def _size(value: Any) -> int:
    return len(to_json(value))


def _shrink_text(text: str, budget: int) -> str:
    # Escapes make the JSON longer than the text.
    length = _size(text)
    if length <= budget:
        return text
    room = max(budget * len(text) // length - 50, 8)
    head = room * 2 // 3
    tail = room - head
    left = len(text) - room
    return f"{text[:head]}\n…[{left} characters left out]…\n{text[len(text) - tail :]}"


def _shrink_list(items: list[Any], budget: int) -> list[Any]:
    sizes = [_size(item) + 1 for item in items]
    if not items or sum(sizes) + 2 <= budget:
        return items
    room = budget - 40
    head: list[Any] = []
    for item, size in zip(items, sizes, strict=True):
        if size > room * 2 // 3:
            break
        head.append(item)
        room -= size
    tail: list[Any] = []
    for item, size in zip(reversed(items[len(head) :]), reversed(sizes[len(head) :]), strict=True):
        if size > room:
            break
        tail.append(item)
        room -= size
    if not head and not tail:
        # Even the first item is too large: show what fits of it.
        head = [shrink(items[0], max(room, _SMALLEST))]
    left = len(items) - len(head) - len(tail)
    return [*head, f"…[{left} items left out]…", *reversed(tail)] if left else [*head, *tail]


def _shrink_dict(fields: dict[str, Any], budget: int) -> dict[str, Any]:
    sizes = {key: _size(key) + 1 + _size(value) + 1 for key, value in fields.items()}
    if sum(sizes.values()) + 2 <= budget:
        return fields
    room = budget - 2
    kept = _with_room(sizes, room)
    left = len(fields) - len(kept)
    room -= _SMALLEST if left else 0
    # The small fields are kept whole; the large ones share what is left.
    large = dict.fromkeys(kept)
    for key in kept:
        if sizes[key] * len(large) > room:
            break
        room -= sizes[key]
        del large[key]
    share = room // max(len(large), 1)
    shown = {
        key: shrink(value, share - _size(key) - 2) if key in large else value
        for key, value in fields.items()
        if key in kept
    }
    return {**shown, "…": f"{left} fields left out"} if left else shown


def _with_room(sizes: dict[str, int], room: int) -> dict[str, None]:
    """The fields of which something can be shown, smallest first; all, if there is room."""
    least = {key: min(size, _size(key) + 2 * _SMALLEST) for key, size in sizes.items()}
    if sum(least.values()) > room:
        room -= _SMALLEST
    kept: dict[str, None] = {}
    for key in sorted(sizes, key=sizes.__getitem__):
        room -= least[key]
        if room < 0:
            break
        kept[key] = None
    return kept
