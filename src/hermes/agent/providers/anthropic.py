"""Anthropic Messages: its wire format."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from hermes.agent.providers.history import (
    HistoryCache,
    clean,
    encoded,
    image_note,
    valid_arguments,
    valid_id,
    valid_name,
)
from hermes.agent.providers.stream_reader import AnswerBuilder, arguments_text, count
from hermes.core.model_protocol import Usage

if TYPE_CHECKING:
    from typing import Any

    from hermes.agent.providers.model_profiles import Profile
    from hermes.core.model_protocol import Event, Image, Message, Request

_CACHE_MARK = {"cache_control": {"type": "ephemeral"}}


class AnthropicWire:
    """Encodes requests and decodes responses of one model."""

    path = "/v1/messages"

    def __init__(self, model: str, profile: Profile) -> None:
        self._model = model
        self._profile = profile
        self._conversation = HistoryCache(self._turns)
        self._without: frozenset[str] = frozenset()

    def headers(self, key: str) -> dict[str, str]:
        """The authentication headers."""
        version = {"anthropic-version": "2023-06-01"}
        return {"x-api-key": key, **version} if key else version

    def adapt(self, error_text: str) -> bool:
        """Drop the option that an error names; whether the next request will differ."""
        for option in ("cache_control", "temperature", "thinking"):
            if option in error_text and option not in self._without:
                self._without |= {option}
                self._conversation.forget()
                return True
        return False

    def body(self, request: Request) -> bytes:
        """The request body; the conversation comes last.

        One cache mark is at the end of the system prompt. One is in the options, so that the server
        marks the end of the conversation: the messages sent before stay unchanged.
        """
        most = request.max_tokens or self._profile.output
        options: dict[str, Any] = {"model": self._model, "max_tokens": most, "stream": True}
        marks = _CACHE_MARK if "cache_control" not in self._without else {}
        options |= marks
        if request.temperature is not None and "temperature" not in self._without:
            options["temperature"] = request.temperature
        if request.tools:
            options["tools"] = [_tool(tool["function"]) for tool in request.tools]
        if request.force and request.tools:
            options["tool_choice"] = {"type": "tool", "name": request.force}
        messages = request.messages
        history = [m for m in messages if m.role != "system"]
        system = "\n\n".join(clean(m.text) for m in messages if m.role == "system" and m.text)
        if system:
            options["system"] = [{"type": "text", "text": system, **marks}]
        return encoded(options)[:-1] + b',"messages":[' + self._conversation(history) + b"]}"

    def _turns(self, messages: list[Message]) -> bytes:
        """The messages, with neighbours of one role joined: this API wants alternating roles."""
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
        """The content blocks of a message, joined by commas."""
        images = [self._image(image) for image in message.images]
        text = [{"type": "text", "text": clean(message.text)}] if message.text.strip() else []
        if message.role == "tool":
            block: dict[str, Any] = {"type": "tool_result", "tool_use_id": _id(message.call_id)}
            block["content"] = [*text, *images] if images else clean(message.text)
            return encoded(block)
        if message.role != "assistant":
            return encoded([*text, *images])[1:-1]
        kept = message.extra.get("anthropic")
        reasoning = kept if isinstance(kept, list) and "thinking" not in self._without else []
        calls = [
            {
                "type": "tool_use",
                "id": _id(use.id),
                "name": valid_name(use.name),
                "input": msgspec.Raw(encoded_arguments(use.arguments)),
            }
            for use in message.calls
        ]
        return encoded([*reasoning, *text, *calls])[1:-1]

    def _image(self, image: Image) -> dict[str, Any]:
        if self._profile.no_images:
            return {"type": "text", "text": image_note(image)}
        if image.url:
            return {"type": "image", "source": {"type": "url", "url": image.url}}
        source = {"type": "base64", "media_type": image.media_type, "data": image.data}
        return {"type": "image", "source": source}

    # -- responses --------------------------------------------------------------------------------

    def read(self, event: dict[str, Any], answer: AnswerBuilder) -> list[Event]:
        """Read one event of the stream."""
        kind = event.get("type")
        index = event.get("index")
        if kind == "content_block_start":
            return _begin_block(event.get("content_block") or {}, index, answer)
        if kind == "content_block_delta":
            return _extend_block(event.get("delta") or {}, index, answer)
        if kind == "message_start":
            message = event.get("message") or {}
            answer.model = message.get("model") or answer.model
            _add_usage(message.get("usage") or {}, answer)
        elif kind == "message_delta":
            answer.stop_reason = (event.get("delta") or {}).get("stop_reason") or answer.stop_reason
            _add_usage(event.get("usage") or {}, answer)
        return []

    def whole(self, event: dict[str, Any], answer: AnswerBuilder) -> list[Event]:
        """Read an unstreamed message."""
        events: list[Event] = []
        for index, block in enumerate(event.get("content") or ()):
            events += _begin_block(block, index, answer)
        answer.model = event.get("model") or answer.model
        answer.stop_reason = event.get("stop_reason") or "end_turn"
        _add_usage(event.get("usage") or {}, answer)
        return events


def encoded_arguments(raw: str) -> bytes:
    """Arguments as a JSON object, encoded."""
    return valid_arguments(raw).encode("utf-8", "replace")


def _begin_block(block: dict[str, Any], index: Any, answer: AnswerBuilder) -> list[Event]:
    kind = block.get("type")
    if kind == "tool_use":
        arguments = block.get("input")
        return answer.add_call(
            index,
            call_id=block.get("id") or "",
            name=block.get("name") or "",
            # In a stream it is empty here, and the pieces follow.
            arguments=arguments_text(arguments) if arguments else "",
        )
    if kind == "text" and block.get("text"):
        return answer.add_text(block["text"])
    if kind == "thinking":
        kept = {"type": "thinking", "thinking": block.get("thinking") or ""}
        kept["signature"] = block.get("signature") or ""
        answer.extra.setdefault("anthropic", []).append(kept)
        return answer.add_reasoning(block["thinking"]) if block.get("thinking") else []
    if kind == "redacted_thinking":
        answer.extra.setdefault("anthropic", []).append(block)
    return []


def _extend_block(delta: dict[str, Any], index: Any, answer: AnswerBuilder) -> list[Event]:
    kind = delta.get("type")
    if kind == "text_delta":
        return answer.add_text(delta.get("text") or "")
    if kind == "input_json_delta":
        return answer.add_call(index, arguments=delta.get("partial_json") or "")
    kept = answer.extra.get("anthropic")
    if kind == "thinking_delta":
        reasoning = delta.get("thinking") or ""
        if kept:
            kept[-1]["thinking"] += reasoning
        return answer.add_reasoning(reasoning)
    if kind == "signature_delta" and kept:
        kept[-1]["signature"] += delta.get("signature") or ""
    return []


def _add_usage(usage: dict[str, Any], answer: AnswerBuilder) -> None:
    """Update the token counts from an event; the last value of each kind counts."""
    before = answer.usage
    cached = count(usage.get("cache_read_input_tokens")) or before.cached
    written = count(usage.get("cache_creation_input_tokens")) or before.written
    fresh = before.input - before.cached - before.written
    if usage.get("input_tokens") is not None:
        fresh = count(usage["input_tokens"])
    output = count(usage.get("output_tokens")) or before.output
    details = usage.get("output_tokens_details") or {}
    reasoning = count(details.get("thinking_tokens")) or before.reasoning
    answer.usage = Usage(fresh + cached + written, output, cached, written, reasoning)


def _tool(function: dict[str, Any]) -> dict[str, Any]:
    schema = function.get("parameters") or {"type": "object", "properties": {}}
    return {
        "name": function["name"],
        "description": function.get("description") or "",
        "input_schema": schema,
    }


def _id(call_id: str) -> str:
    return valid_id(call_id, longest=64)
