"""OpenAI Chat Completions: the wire format that most servers speak."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.agent.providers.history import (
    Growing,
    blind_note,
    clean,
    encoded,
    nine_letters,
    valid_arguments,
    valid_id,
    valid_name,
)
from hermes.agent.providers.stream_reader import Answer, arguments_text, count, text_of
from hermes.core.messages import Usage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from hermes.agent.providers.model_profiles import Profile
    from hermes.core.messages import Image, Message
    from hermes.core.model_protocol import Event, Request


_MARK = {"cache_control": {"type": "ephemeral"}}
# What a server may not know; a refusal that names one leads to a request without it.
_OPTIONAL = frozenset(
    {"stream_options", "temperature", "max_tokens", "tool_choice", "cache_control"}
)
_WANTED = r"must be (?:passed|provided|included|present)|missing|is required"


class ChatWire:
    """One model behind this API."""

    path = "/chat/completions"

    def __init__(self, model: str, profile: Profile) -> None:
        self._model = model
        self._profile = profile
        self._conversation = Growing(self._items)
        self._without: frozenset[str] = frozenset()
        self._echo_calls = profile.echo != ""

    def headers(self, key: str) -> dict[str, str]:
        """How the key is shown."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    def adapt(self, refusal: str) -> bool:
        """Leave out, or add, what a server complains of."""
        if "reasoning_content" in refusal:
            wanted = _wants(refusal)
            if wanted == self._echo_calls:
                return False
            self._echo_calls = wanted
            self._conversation.forget()
            return True
        for option in _OPTIONAL - self._without:
            if option in refusal and not _wants(refusal):
                self._without |= {option}
                return True
        return False

    def body(self, request: Request) -> bytes:
        """The request; the conversation comes last, so that the next one only adds to the end."""
        options: dict[str, Any] = {"model": self._model, "stream": True}
        options["stream_options"] = {"include_usage": True}
        if request.max_tokens:
            reasons = self._profile.reasons or "max_tokens" in self._without
            options["max_completion_tokens" if reasons else "max_tokens"] = request.max_tokens
        if request.temperature is not None and not self._profile.reasons:
            options["temperature"] = request.temperature
        if self._profile.cache_marks:
            # The end of the conversation is marked by the server itself: a mark that moved along
            # would change what was sent before.
            options |= _MARK
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
                yield from _seen(images)
                images = []
            wired, pictures = self._message(message)
            yield wired
            if pictures:
                images.append(pictures)
        yield from _seen(images)

    def _message(self, message: Message) -> tuple[bytes, bytes]:
        """A message, and the pictures of a result, which have no place in it."""
        pictures = [self._image(image) for image in message.images]
        if message.role == "tool":
            wired = {
                "role": "tool",
                "tool_call_id": self._id(message.call_id),
                "content": clean(message.text),
            }
            return encoded(wired), encoded(pictures)[1:-1] if pictures else b""
        if message.role == "assistant":
            return encoded(self._said(message)), b""
        text = clean(message.text)
        if not pictures and not self._profile.cache_marks:
            return encoded({"role": message.role, "content": text}), b""
        parts: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
        if self._profile.cache_marks and message.role == "system" and parts:
            parts[0] |= _MARK
        return encoded({"role": message.role, "content": parts + pictures}), b""

    def _said(self, message: Message) -> dict[str, Any]:
        wired: dict[str, Any] = {"role": "assistant", "content": clean(message.text) or None}
        if self._echoes(message):
            wired["reasoning_content"] = clean(message.reasoning)
        kept = message.extra.get("chat")
        if isinstance(kept, dict):
            wired |= kept
        if message.calls:
            extras = message.extra.get("calls") or []
            wired["tool_calls"] = [
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
        return wired

    def _echoes(self, message: Message) -> bool:
        # With a call even an empty one is wanted: what the model did not say is part of the record.
        return self._echo_calls and (bool(message.calls) or self._profile.echo == "all")

    def _id(self, call_id: str) -> str:
        return nine_letters(call_id) if self._profile.nine_letters else valid_id(call_id)

    def _image(self, image: Image) -> dict[str, Any]:
        if self._profile.blind:
            return {"type": "text", "text": blind_note(image)}
        url = image.url or f"data:{image.media_type};base64,{image.data}"
        return {"type": "image_url", "image_url": {"url": url}}

    # -- what comes back ------------------------------------------------------------------------

    def read(self, event: dict[str, Any], answer: Answer) -> list[Event]:
        """What one event of the stream says."""
        self._notice(event, answer)
        events: list[Event] = []
        for choice in event.get("choices") or ():
            if choice.get("index"):
                continue
            delta = choice.get("delta") or choice.get("message") or {}
            events += _read_delta(delta, answer)
            answer.stopped = choice.get("finish_reason") or answer.stopped
        return events

    # A whole answer has a `message` where an event has a `delta`.
    whole = read

    def _notice(self, event: dict[str, Any], answer: Answer) -> None:
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


def _wants(refusal: str) -> bool:
    """Whether a refusal asks for something, rather than to leave it out."""
    return re.search(_WANTED, refusal, re.IGNORECASE) is not None


def _read_delta(delta: dict[str, Any], answer: Answer) -> list[Event]:
    events: list[Event] = []
    thought = delta.get("reasoning_content") or delta.get("reasoning")
    if isinstance(thought, str) and thought:
        events += answer.think(thought)
    details = delta.get("reasoning_details")
    if isinstance(details, list) and details:
        # Kept whole for the server; their text came as `reasoning`.
        answer.extra.setdefault("chat", {}).setdefault("reasoning_details", []).extend(details)
    text = text_of(delta.get("content")) or text_of(delta.get("refusal"))
    if text:
        events += answer.say(text)
    for call in delta.get("tool_calls") or ():
        function = call.get("function") or {}
        key = call.get("index")
        events += answer.call(
            key,
            call_id=call.get("id") or "",
            name=function.get("name") or "",
            arguments=arguments_text(function.get("arguments")),
        )
        if isinstance(call.get("extra_content"), dict):
            answer.keep_with_call(key, {"extra_content": call["extra_content"]})
    old = delta.get("function_call")
    if isinstance(old, dict):
        events += answer.call(
            0, name=old.get("name") or "", arguments=arguments_text(old.get("arguments"))
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


def _seen(images: list[bytes]) -> Iterator[bytes]:
    """The pictures of the results before, as a message of their own."""
    if images:
        words = encoded({"type": "text", "text": "Pictures from the results above:"})
        yield b'{"role":"user","content":[' + b",".join([words, *images]) + b"]}"
