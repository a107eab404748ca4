"""OpenAI Chat Completions: the wire format that most servers speak."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.agent.providers.history import (
    HistoryCache,
    clean,
    encoded,
    image_note,
    nine_character_id,
    valid_arguments,
    valid_id,
    valid_name,
)
from hermes.agent.providers.stream_reader import AnswerBuilder, arguments_text, count, text_of
from hermes.core.model_protocol import Usage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from hermes.agent.providers.model_profiles import Profile
    from hermes.core.model_protocol import Event, Image, Message, Request


_CACHE_MARK = {"cache_control": {"type": "ephemeral"}}
# Options that a server may reject; an error that names one leads to a request without it.
_OPTIONAL = frozenset(
    {"stream_options", "temperature", "max_tokens", "tool_choice", "cache_control"}
)
_REQUIRED = r"must be (?:passed|provided|included|present)|missing|is required"


class ChatWire:
    """Encodes requests and decodes responses of one model."""

    path = "/chat/completions"

    def __init__(self, model: str, profile: Profile) -> None:
        self._model = model
        self._profile = profile
        self._conversation = HistoryCache(self._items)
        self._without: frozenset[str] = frozenset()
        self._echo_calls = profile.echo != ""

    def headers(self, key: str) -> dict[str, str]:
        """The authentication headers."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    def adapt(self, error_text: str) -> bool:
        """Drop or add the option that an error names; whether the next request will differ."""
        if "reasoning_content" in error_text:
            required = _requires(error_text)
            if required == self._echo_calls:
                return False
            self._echo_calls = required
            self._conversation.forget()
            return True
        for option in _OPTIONAL - self._without:
            if option in error_text and not _requires(error_text):
                self._without |= {option}
                return True
        return False

    def body(self, request: Request) -> bytes:
        """The request body; the conversation comes last, so that the next request only appends."""
        options: dict[str, Any] = {"model": self._model, "stream": True}
        options["stream_options"] = {"include_usage": True}
        if request.max_tokens:
            reasoning = self._profile.reasoning or "max_tokens" in self._without
            options["max_completion_tokens" if reasoning else "max_tokens"] = request.max_tokens
        if request.temperature is not None and not self._profile.reasoning:
            options["temperature"] = request.temperature
        if self._profile.cache_marks:
            # The server marks the end of the conversation itself: a mark in the last message would
            # change the messages sent before.
            options |= _CACHE_MARK
        if request.tools:
            options["tools"] = request.tools
        if request.force and request.tools:
            options["tool_choice"] = {"type": "function", "function": {"name": request.force}}
        kept = {name: value for name, value in options.items() if name not in self._without}
        items = self._conversation(request.messages)
        return encoded(kept)[:-1] + b',"messages":[' + items + b"]}"

    def _items(self, messages: list[Message]) -> bytes:
        return b",".join(self._each(messages))

    def _each(self, messages: list[Message]) -> Iterator[bytes]:
        images: list[bytes] = []
        for message in messages:
            if message.role != "tool":
                yield from _image_message(images)
                images = []
            item, message_images = self._message(message)
            yield item
            if message_images:
                images.append(message_images)
        yield from _image_message(images)

    def _message(self, message: Message) -> tuple[bytes, bytes]:
        """A message, and the images of a tool result, which a tool message can't contain."""
        images = [self._image(image) for image in message.images]
        if message.role == "tool":
            item = {
                "role": "tool",
                "tool_call_id": self._id(message.call_id),
                "content": clean(message.text),
            }
            return encoded(item), encoded(images)[1:-1] if images else b""
        if message.role == "assistant":
            return encoded(self._assistant(message)), b""
        text = clean(message.text)
        if not images and not self._profile.cache_marks:
            return encoded({"role": message.role, "content": text}), b""
        parts: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
        if self._profile.cache_marks and message.role == "system" and parts:
            parts[0] |= _CACHE_MARK
        return encoded({"role": message.role, "content": parts + images}), b""

    def _assistant(self, message: Message) -> dict[str, Any]:
        item: dict[str, Any] = {"role": "assistant", "content": clean(message.text) or None}
        if self._echoes(message):
            item["reasoning_content"] = clean(message.reasoning)
        kept = message.extra.get("chat")
        if isinstance(kept, dict):
            item |= kept
        if message.calls:
            extras = message.extra.get("calls") or []
            item["tool_calls"] = [
                {
                    "id": self._id(use.id),
                    "type": "function",
                    "function": {
                        "name": valid_name(use.name),
                        "arguments": valid_arguments(use.arguments),
                    },
                    **(extras[at] if at < len(extras) and isinstance(extras[at], dict) else {}),
                }
                for at, use in enumerate(message.calls)
            ]
        return item

    def _echoes(self, message: Message) -> bool:
        # With a call even an empty one is required.
        return self._echo_calls and (bool(message.calls) or self._profile.echo == "all")

    def _id(self, call_id: str) -> str:
        return nine_character_id(call_id) if self._profile.nine_character_id else valid_id(call_id)

    def _image(self, image: Image) -> dict[str, Any]:
        if self._profile.no_images:
            return {"type": "text", "text": image_note(image)}
        url = image.url or f"data:{image.media_type};base64,{image.data}"
        return {"type": "image_url", "image_url": {"url": url}}

    # -- responses --------------------------------------------------------------------------------

    def read(self, event: dict[str, Any], answer: AnswerBuilder) -> list[Event]:
        """Read one event of the stream."""
        self._read_usage(event, answer)
        events: list[Event] = []
        for choice in event.get("choices") or ():
            if choice.get("index"):
                continue
            delta = choice.get("delta") or choice.get("message") or {}
            events += _read_delta(delta, answer)
            answer.stop_reason = choice.get("finish_reason") or answer.stop_reason
        return events

    # An unstreamed response has a `message` where an event has a `delta`.
    whole = read

    def _read_usage(self, event: dict[str, Any], answer: AnswerBuilder) -> None:
        if isinstance(name := event.get("model"), str) and name:
            answer.model = name
        usage = event.get("usage")
        if not isinstance(usage, dict):
            timings = event.get("timings")
            if not isinstance(timings, dict):
                return
            usage = {
                "prompt_tokens": count(timings.get("prompt_n")) + count(timings.get("cache_n")),
                "completion_tokens": timings.get("predicted_n"),
                "prompt_cache_hit_tokens": timings.get("cache_n"),
            }
        answer.usage = _usage(usage)


def _requires(error_text: str) -> bool:
    """Whether an error asks to add an option, rather than to drop it."""
    return re.search(_REQUIRED, error_text, re.IGNORECASE) is not None


def _read_delta(delta: dict[str, Any], answer: AnswerBuilder) -> list[Event]:
    events: list[Event] = []
    reasoning = delta.get("reasoning_content") or delta.get("reasoning")
    if isinstance(reasoning, str) and reasoning:
        events += answer.add_reasoning(reasoning)
    details = delta.get("reasoning_details")
    if isinstance(details, list) and details:
        # Sent back unchanged; their text also comes as `reasoning`.
        answer.extra.setdefault("chat", {}).setdefault("reasoning_details", []).extend(details)
    text = text_of(delta.get("content")) or text_of(delta.get("refusal"))
    if text:
        events += answer.add_text(text)
    for call in delta.get("tool_calls") or ():
        function = call.get("function") or {}
        key = call.get("index")
        events += answer.add_call(
            key,
            call_id=call.get("id") or "",
            name=function.get("name") or "",
            arguments=arguments_text(function.get("arguments")),
        )
        if isinstance(call.get("extra_content"), dict):
            answer.set_call_extra(key, {"extra_content": call["extra_content"]})
    legacy = delta.get("function_call")
    if isinstance(legacy, dict):
        events += answer.add_call(
            0, name=legacy.get("name") or "", arguments=arguments_text(legacy.get("arguments"))
        )
    return events


def _usage(usage: dict[str, Any]) -> Usage:
    prompt = usage.get("prompt_tokens_details") or {}
    completion = usage.get("completion_tokens_details") or {}
    return Usage(
        input=count(usage.get("prompt_tokens")),
        output=count(usage.get("completion_tokens")),
        cached=count(prompt.get("cached_tokens")) or count(usage.get("prompt_cache_hit_tokens")),
        written=count(prompt.get("cache_write_tokens")),
        reasoning=count(completion.get("reasoning_tokens")),
    )


def _image_message(images: list[bytes]) -> Iterator[bytes]:
    """The images of the preceding results as a message of their own."""
    if images:
        text = encoded({"type": "text", "text": "Pictures from the results above:"})
        yield b'{"role":"user","content":[' + b",".join([text, *images]) + b"]}"
