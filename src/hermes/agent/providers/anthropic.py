"""Anthropic Messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from hermes.agent.providers.history import (
    Growing,
    blind_note,
    clean,
    encoded,
    valid_arguments,
    valid_id,
    valid_name,
)
from hermes.agent.providers.stream_reader import Answer, arguments_text, count
from hermes.core.messages import Usage

if TYPE_CHECKING:
    from typing import Any

    from hermes.agent.providers.model_profiles import Profile
    from hermes.core.messages import Image, Message
    from hermes.core.model_protocol import Event, Request

_MARK = {"cache_control": {"type": "ephemeral"}}


class AnthropicWire:
    """One model behind this API."""

    path = "/v1/messages"

    def __init__(self, model: str, profile: Profile) -> None:
        self._model = model
        self._profile = profile
        self._conversation = Growing(self._turns)
        self._without: frozenset[str] = frozenset()

    def headers(self, key: str) -> dict[str, str]:
        """How the key is shown."""
        version = {"anthropic-version": "2023-06-01"}
        return {"x-api-key": key, **version} if key else version

    def adapt(self, refusal: str) -> bool:
        """Leave out an option that the server does not know."""
        for option in ("cache_control", "temperature", "thinking"):
            if option in refusal and option not in self._without:
                self._without |= {option}
                self._conversation.forget()
                return True
        return False

    def body(self, request: Request) -> bytes:
        """The request; the conversation comes last.

        One mark stands at the end of the system text and one in the options, which makes the
        server mark the end of the conversation: nothing that was sent before changes.
        """
        most = request.max_tokens or self._profile.output
        options: dict[str, Any] = {"model": self._model, "max_tokens": most, "stream": True}
        marks = _MARK if "cache_control" not in self._without else {}
        options |= marks
        if request.temperature is not None and "temperature" not in self._without:
            options["temperature"] = request.temperature
        if request.tools:
            options["tools"] = [_tool(tool["function"]) for tool in request.tools]
        if request.force and request.tools:
            options["tool_choice"] = {"type": "tool", "name": request.force}
        messages = request.messages
        said = [m for m in messages if m.role != "system"]
        system = "\n\n".join(clean(m.text) for m in messages if m.role == "system" and m.text)
        if system:
            options["system"] = [{"type": "text", "text": system, **marks}]
        return encoded(options)[:-1] + b',"messages":[' + self._conversation(said) + b"]}"

    def _turns(self, messages: list[Message]) -> bytes:
        """The messages, neighbours of one side joined: the sides have to take turns."""
        turns: list[tuple[str, list[bytes]]] = []
        for message in messages:
            role = "assistant" if message.role == "assistant" else "user"
            if not turns or turns[-1][0] != role:
                turns.append((role, []))
            if blocks := self._blocks(message):
                turns[-1][1].append(blocks)
        return b",".join(
            b'{"role":"%s","content":[%s]}' % (role.encode(), b",".join(blocks))
            for role, blocks in turns
            if blocks
        )

    def _blocks(self, message: Message) -> bytes:
        """The content of a message, without brackets."""
        pictures = [self._image(image) for image in message.images]
        words = [{"type": "text", "text": clean(message.text)}] if message.text.strip() else []
        if message.role == "tool":
            block: dict[str, Any] = {"type": "tool_result", "tool_use_id": _id(message.call_id)}
            block["content"] = [*words, *pictures] if pictures else clean(message.text)
            return encoded(block)
        if message.role != "assistant":
            return encoded([*words, *pictures])[1:-1]
        kept = message.extra.get("anthropic")
        thoughts = kept if isinstance(kept, list) and "thinking" not in self._without else []
        calls = [
            {
                "type": "tool_use",
                "id": _id(use.id),
                "name": valid_name(use.name),
                "input": msgspec.Raw(encoded_arguments(use.arguments)),
            }
            for use in message.calls
        ]
        return encoded([*thoughts, *words, *calls])[1:-1]

    def _image(self, image: Image) -> dict[str, Any]:
        if self._profile.blind:
            return {"type": "text", "text": blind_note(image)}
        if image.url:
            return {"type": "image", "source": {"type": "url", "url": image.url}}
        source = {"type": "base64", "media_type": image.media_type, "data": image.data}
        return {"type": "image", "source": source}

    # -- what comes back ------------------------------------------------------------------------

    def read(self, event: dict[str, Any], answer: Answer) -> list[Event]:
        """What one event of the stream says."""
        kind = event.get("type")
        place = event.get("index")
        if kind == "content_block_start":
            return _begin(event.get("content_block") or {}, place, answer)
        if kind == "content_block_delta":
            return _more(event.get("delta") or {}, place, answer)
        if kind == "message_start":
            message = event.get("message") or {}
            answer.model = message.get("model") or answer.model
            _count(message.get("usage") or {}, answer)
        elif kind == "message_delta":
            answer.stopped = (event.get("delta") or {}).get("stop_reason") or answer.stopped
            _count(event.get("usage") or {}, answer)
        return []

    def whole(self, event: dict[str, Any], answer: Answer) -> list[Event]:
        """A message in one piece."""
        events: list[Event] = []
        for place, block in enumerate(event.get("content") or ()):
            events += _begin(block, place, answer)
        answer.model = event.get("model") or answer.model
        answer.stopped = event.get("stop_reason") or "end_turn"
        _count(event.get("usage") or {}, answer)
        return events


def encoded_arguments(raw: str) -> bytes:
    """Arguments as the JSON object that this API wants in their place."""
    return valid_arguments(raw).encode("utf-8", "replace")


def _begin(block: dict[str, Any], place: Any, answer: Answer) -> list[Event]:
    kind = block.get("type")
    if kind == "tool_use":
        given = block.get("input")
        return answer.call(
            place,
            call_id=block.get("id") or "",
            name=block.get("name") or "",
            # In a stream it is empty here and follows in pieces.
            arguments=arguments_text(given) if given else "",
        )
    if kind == "text" and block.get("text"):
        return answer.say(block["text"])
    if kind == "thinking":
        kept = {"type": "thinking", "thinking": block.get("thinking") or ""}
        kept["signature"] = block.get("signature") or ""
        answer.extra.setdefault("anthropic", []).append(kept)
        return answer.think(block["thinking"]) if block.get("thinking") else []
    if kind == "redacted_thinking":
        answer.extra.setdefault("anthropic", []).append(block)
    return []


def _more(delta: dict[str, Any], place: Any, answer: Answer) -> list[Event]:
    kind = delta.get("type")
    if kind == "text_delta":
        return answer.say(delta.get("text") or "")
    if kind == "input_json_delta":
        return answer.call(place, arguments=delta.get("partial_json") or "")
    kept = answer.extra.get("anthropic")
    if kind == "thinking_delta":
        thought = delta.get("thinking") or ""
        if kept:
            kept[-1]["thinking"] += thought
        return answer.think(thought)
    if kind == "signature_delta" and kept:
        kept[-1]["signature"] += delta.get("signature") or ""
    return []


def _count(usage: dict[str, Any], answer: Answer) -> None:
    """Add what an event says of the tokens; the last word on each kind counts."""
    before = answer.usage
    cached = count(usage.get("cache_read_input_tokens")) or before.cached
    written = count(usage.get("cache_creation_input_tokens")) or before.written
    fresh = before.input - before.cached - before.written
    if usage.get("input_tokens") is not None:
        fresh = count(usage["input_tokens"])
    output = count(usage.get("output_tokens")) or before.output
    details = usage.get("output_tokens_details") or {}
    thought = count(details.get("thinking_tokens")) or before.reasoning
    answer.usage = Usage(fresh + cached + written, output, cached, written, thought)


def _tool(function: dict[str, Any]) -> dict[str, Any]:
    schema = function.get("parameters") or {"type": "object", "properties": {}}
    return {
        "name": function["name"],
        "description": function.get("description") or "",
        "input_schema": schema,
    }


def _id(call_id: str) -> str:
    return valid_id(call_id, longest=64)
