"""Turns of a scripted model, and their encoding for each model API: as a stream and as one
response.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any


class Call:
    """A tool call that the model asks for."""

    def __init__(
        self,
        name: str,
        arguments: Mapping[str, Any] | str | None = None,
        *,
        id: str | None = None,  # noqa: A002 - the word that the APIs have for it
    ) -> None:
        """A call; a text as `arguments` is sent as it is, however broken; `id` is made up if None.

        An empty `id` is sent as an empty one, as some servers do.
        """
        import json

        self.name = name
        self.arguments = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
        self.id = id


class Turn:
    """One answer of the model; a text alone may be given as a plain string."""

    def __init__(
        self,
        text: str = "",
        *,
        calls: Sequence[Call | tuple[str, Mapping[str, Any] | str]] = (),
        reasoning: str = "",
        finish: str = "",
        usage: Mapping[str, int] | None = None,
        status: int = 200,
        error: str = "",
        code: str = "",
        headers: Mapping[str, str] | None = None,
        retry_after: float | str | None = None,
        stall_after: int | None = None,
        break_after: int | None = None,
        error_after: int | None = None,
        delay: float = 0.0,
        piece: int = 24,
        raw: Sequence[Mapping[str, Any] | str] | None = None,
    ) -> None:
        """Describe an answer.

        Args:
            text: What the model says.
            calls: The tools it calls; a pair of name and arguments will do.
            reasoning: What it thinks aloud.
            finish: Why it ended, in OpenAI's words ("stop", "tool_calls", "length",
                "content_filter"); found from the rest when empty, left out when "none".
            usage: Tokens: input, output, cached, written, reasoning; estimated if None. An empty
                mapping reports none, as some servers do.
            status: Another HTTP status than 200 answers with an error instead.
            error: The text of that error.
            code: Its code, such as "context_length_exceeded".
            headers: More headers for the answer.
            retry_after: The header of that name: seconds, or a date.
            stall_after: Send so many events, then nothing more; 0 sends not even the status.
            break_after: Send so many events, then close the connection; 0 as above.
            error_after: Send so many events, then the error as an event of the stream.
            delay: Seconds to wait before each event.
            piece: How many characters of text or arguments one event has.
            raw: The data of each event, sent as it is; for what no other option can say.
        """
        self.text = text
        self.calls = [call if isinstance(call, Call) else Call(*call) for call in calls]
        self.reasoning = reasoning
        self.finish = finish or ("tool_calls" if self.calls else "stop")
        self.usage = usage
        self.status = status
        self.error = error
        self.code = code
        self.headers = dict(headers or {})
        if retry_after is not None:
            self.headers["Retry-After"] = str(retry_after)
        self.stall_after = stall_after
        self.break_after = break_after
        self.error_after = error_after
        self.delay = delay
        self.piece = max(piece, 1)
        self.raw = raw

    def pieces(self, text: str) -> list[str]:
        """`text` in the sizes that events have."""
        return [text[at : at + self.piece] for at in range(0, len(text), self.piece)]


if TYPE_CHECKING:
    Event = dict[str, Any]

NAME = "scripted"


# -- OpenAI chat completions --------------------------------------------------------------------


def chat_events(turn: Turn, usage: Mapping[str, int], number: int) -> list[Event | str]:
    """The chunks of a streamed chat completion."""
    head = {"id": f"chat-{number}", "object": "chat.completion.chunk", "created": 0, "model": NAME}

    def chunk(delta: Event, finish: str | None = None) -> Event:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {**head, "choices": [choice]}

    events: list[Event | str] = [chunk({"role": "assistant", "content": ""})]
    events += [chunk({"reasoning_content": part}) for part in turn.pieces(turn.reasoning)]
    events += [chunk({"content": part}) for part in turn.pieces(turn.text)]
    for index, call in enumerate(turn.calls):
        function = {"name": call.name, "arguments": ""}
        first = {"index": index, "id": _id(call.id, number, index), "type": "function"}
        events.append(chunk({"tool_calls": [{**first, "function": function}]}))
        for part in turn.pieces(call.arguments):
            delta = {"index": index, "function": {"arguments": part}}
            events.append(chunk({"tool_calls": [delta]}))
    if turn.finish != "none":
        events.append(chunk({}, turn.finish))
    if usage:
        events.append({**head, "choices": [], "usage": _chat_usage(usage)})
    if turn.finish != "none":
        events.append("[DONE]")
    return events


def chat_whole(turn: Turn, usage: Mapping[str, int], number: int) -> Event:
    """A chat completion that is not streamed."""
    message: Event = {"role": "assistant", "content": turn.text or None}
    if turn.reasoning:
        message["reasoning_content"] = turn.reasoning
    if turn.calls:
        message["tool_calls"] = [
            {
                "id": _id(call.id, number, index),
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for index, call in enumerate(turn.calls)
        ]
    finish = None if turn.finish == "none" else turn.finish
    whole: Event = {
        "id": f"chat-{number}",
        "object": "chat.completion",
        "created": 0,
        "model": NAME,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
    }
    return {**whole, "usage": _chat_usage(usage)} if usage else whole


def _chat_usage(usage: Mapping[str, int]) -> Event:
    return {
        "prompt_tokens": usage.get("input", 0),
        "completion_tokens": usage.get("output", 0),
        "total_tokens": usage.get("input", 0) + usage.get("output", 0),
        "prompt_tokens_details": {"cached_tokens": usage.get("cached", 0)},
        "completion_tokens_details": {"reasoning_tokens": usage.get("reasoning", 0)},
    }


# -- OpenAI Responses ---------------------------------------------------------------------------


def responses_whole(turn: Turn, usage: Mapping[str, int], number: int) -> Event:
    """A response that is not streamed."""
    output: list[Event] = []
    if turn.reasoning:
        summary = [{"type": "summary_text", "text": turn.reasoning}]
        thought = {"type": "reasoning", "id": f"rs_{number}", "summary": summary}
        output.append({**thought, "encrypted_content": f"sealed-{number}"})
    if turn.text or not turn.calls:
        content = [{"type": "output_text", "text": turn.text, "annotations": []}]
        said = {"type": "message", "id": f"msg_{number}", "status": "completed"}
        output.append({**said, "role": "assistant", "content": content})
    for index, call in enumerate(turn.calls):
        asked = {"type": "function_call", "id": f"fc_{number}_{index}", "status": "completed"}
        asked["call_id"] = _id(call.id, number, index)
        output.append({**asked, "name": call.name, "arguments": call.arguments})
    reasons = {"length": "max_output_tokens", "content_filter": "content_filter"}
    reason = reasons.get(turn.finish)
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 0,
        "status": "incomplete" if reason else "completed",
        "incomplete_details": {"reason": reason} if reason else None,
        "model": NAME,
        "output": output,
        "usage": {
            "input_tokens": usage.get("input", 0),
            "input_tokens_details": {"cached_tokens": usage.get("cached", 0)},
            "output_tokens": usage.get("output", 0),
            "output_tokens_details": {"reasoning_tokens": usage.get("reasoning", 0)},
            "total_tokens": usage.get("input", 0) + usage.get("output", 0),
        }
        if usage
        else None,
    }


def responses_events(turn: Turn, usage: Mapping[str, int], number: int) -> list[Event | str]:
    """The events of a streamed response."""
    whole = responses_whole(turn, usage, number)
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    events: list[Event] = [{"type": "response.created", "response": begun}]
    for index, item in enumerate(whole["output"]):
        events += _item_events(turn, index, item)
    if turn.finish != "none":
        events.append({"type": f"response.{whole['status']}", "response": whole})
    return [{**event, "sequence_number": place} for place, event in enumerate(events)]


def _item_events(turn: Turn, index: int, item: Event) -> list[Event]:
    """One item of a response: announced, its text in pieces, and whole."""
    at: Event = {"item_id": item["id"], "output_index": index}
    empty = {**item, "status": "in_progress"}
    part: Event | None = None
    if item["type"] == "function_call":
        kind, text, empty["arguments"] = "function_call_arguments", item["arguments"], ""
        ended = {"arguments": text, "name": item["name"]}
    elif item["type"] == "message":
        kind, text, empty["content"] = "output_text", turn.text, []
        at["content_index"] = 0
        part, of, ended = item["content"][0], "content_part", {"text": text}
    else:
        kind, text, empty["summary"] = "reasoning_summary_text", turn.reasoning, []
        at["summary_index"] = 0
        part, of, ended = item["summary"][0], "reasoning_summary_part", {"text": text}
    events = [{"type": "response.output_item.added", "output_index": index, "item": empty}]
    if part:
        events.append({"type": f"response.{of}.added", **at, "part": {**part, "text": ""}})
    delta = {"type": f"response.{kind}.delta", **at}
    events += [{**delta, "delta": piece} for piece in turn.pieces(text)]
    events.append({"type": f"response.{kind}.done", **at, **ended})
    if part:
        events.append({"type": f"response.{of}.done", **at, "part": part})
    events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    return events


# -- Anthropic Messages -------------------------------------------------------------------------

_STOPS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}


def messages_whole(turn: Turn, usage: Mapping[str, int], number: int) -> Event:
    """A message that is not streamed."""
    content: list[Event] = []
    if turn.reasoning:
        sealed = f"sealed-{number}"
        content.append({"type": "thinking", "thinking": turn.reasoning, "signature": sealed})
    if turn.text:
        content.append({"type": "text", "text": turn.text})
    for index, call in enumerate(turn.calls):
        asked = {"type": "tool_use", "id": _id(call.id, number, index), "name": call.name}
        content.append({**asked, "input": call.arguments})
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": NAME,
        "content": content,
        "stop_reason": _STOPS.get(turn.finish, "refusal"),
        "stop_sequence": None,
        "usage": _messages_usage(usage),
    }


def messages_events(turn: Turn, usage: Mapping[str, int], number: int) -> list[Event | str]:
    """The events of a streamed message."""
    whole = messages_whole(turn, usage, number)
    counts = whole["usage"]
    begun = {**whole, "content": [], "stop_reason": None, "usage": {**counts, "output_tokens": 1}}
    events: list[Event | str] = [{"type": "message_start", "message": begun}, {"type": "ping"}]
    for index, block in enumerate(whole["content"]):
        at = {"index": index}
        kind = block["type"]
        deltas: list[Event]
        if kind == "tool_use":
            empty = {**block, "input": {}}
            parts = turn.pieces(block["input"])
            deltas = [{"type": "input_json_delta", "partial_json": part} for part in parts]
        elif kind == "text":
            empty = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": part} for part in turn.pieces(turn.text)]
        else:
            empty = {"type": "thinking", "thinking": "", "signature": ""}
            parts = turn.pieces(turn.reasoning)
            deltas = [{"type": "thinking_delta", "thinking": part} for part in parts]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        events.append({"type": "content_block_start", **at, "content_block": empty})
        events += [{"type": "content_block_delta", **at, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", **at})
    if turn.finish != "none":
        ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        output = {"output_tokens": counts.get("output_tokens", 0)}
        events.append({"type": "message_delta", "delta": ended, "usage": output})
        events.append({"type": "message_stop"})
    return events


def _messages_usage(usage: Mapping[str, int]) -> Event:
    cached, written = usage.get("cached", 0), usage.get("written", 0)
    return {
        "input_tokens": max(usage.get("input", 0) - cached - written, 0),
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": written,
        "output_tokens": usage.get("output", 0),
    }


def _id(given: str | None, number: int, index: int) -> str:
    return f"call_{number}_{index}" if given is None else given


Wire = tuple["Callable[..., list[Event | str]]", "Callable[..., Event]"]

# The end of the path -> (stream, whole).
WIRES: dict[str, Wire] = {
    "/chat/completions": (chat_events, chat_whole),
    "/responses": (responses_events, responses_whole),
    "/messages": (messages_events, messages_whole),
}


def error_body(path: str, turn: Turn) -> Event:
    """An error as the API at this path words it."""
    text = turn.error or f"scripted error {turn.status}"
    if path.endswith("/messages"):
        kind = {429: "rate_limit_error", 529: "overloaded_error"}.get(turn.status, "api_error")
        return {"type": "error", "error": {"type": turn.code or kind, "message": text}}
    return {"error": {"message": text, "type": "scripted_error", "code": turn.code or None}}
