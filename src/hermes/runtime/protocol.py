"""The JSON protocol of tool calls: what models send, and what they are answered."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hermes.core.entry import ToolCall
from hermes.core.errors import HermesError
from hermes.core.jsontext import to_json

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from hermes.core.entry import ToolOutcome

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
