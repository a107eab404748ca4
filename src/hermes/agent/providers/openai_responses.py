"""OpenAI Responses. Stateless: every request carries the whole conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

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

_OPTIONAL = frozenset({"temperature", "reasoning.encrypted_content", "max_output_tokens"})


class ResponsesWire:
    """Encodes requests and decodes responses of one model."""

    path = "/responses"

    def __init__(self, model: str, profile: Profile) -> None:
        self._model = model
        self._profile = profile
        self._conversation = HistoryCache(self._items)
        self._without: frozenset[str] = frozenset()

    def headers(self, key: str) -> dict[str, str]:
        """The authentication headers."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    def adapt(self, error_text: str) -> bool:
        """Drop the option that an error names; whether the next request will differ."""
        option = next((name for name in _OPTIONAL - self._without if name in error_text), None)
        if option is None and "ncrypted content" in error_text:
            option = "reasoning.encrypted_content"
        if option is None or option in self._without:
            return False
        self._without |= {option}
        return True

    def body(self, request: Request) -> bytes:
        """The request body; the conversation comes last."""
        options: dict[str, Any] = {"model": self._model, "stream": True, "store": False}
        if self._profile.reasoning and "reasoning.encrypted_content" not in self._without:
            # Encrypted reasoning can be sent back with the next request.
            options["include"] = ["reasoning.encrypted_content"]
        if request.max_tokens and "max_output_tokens" not in self._without:
            options["max_output_tokens"] = request.max_tokens
        plain = not self._profile.reasoning and "temperature" not in self._without
        if request.temperature is not None and plain:
            options["temperature"] = request.temperature
        if request.tools:
            options["tools"] = [
                {"type": "function", **tool["function"], "strict": False} for tool in request.tools
            ]
        if request.force and request.tools:
            options["tool_choice"] = {"type": "function", "name": request.force}
        items = self._conversation(request.messages)
        return encoded(options)[:-1] + b',"input":[' + items + b"]}"

    def _items(self, messages: list[Message]) -> bytes:
        items: list[dict[str, Any]] = []
        for message in messages:
            if message.role == "assistant":
                items += self._assistant(message)
            else:
                items.append(self._item(message))
        return encoded(items)[1:-1]

    def _item(self, message: Message) -> dict[str, Any]:
        images = [self._image(image) for image in message.images]
        text = {"type": "input_text", "text": clean(message.text)}
        if message.role == "tool":
            output = [text, *images] if images else clean(message.text)
            result = {"type": "function_call_output", "call_id": _id(message.call_id)}
            return {**result, "output": output}
        content = [text, *images] if message.text else images
        return {"type": "message", "role": message.role, "content": content}

    def _assistant(self, message: Message) -> list[dict[str, Any]]:
        kept = message.extra.get("responses")
        items: list[dict[str, Any]] = list(kept) if isinstance(kept, list) else []
        if message.text:
            items.append({"role": "assistant", "content": clean(message.text)})
        items += [
            {
                "type": "function_call",
                "call_id": _id(use.id),
                "name": valid_name(use.name),
                "arguments": valid_arguments(use.arguments),
            }
            for use in message.calls
        ]
        return items

    def _image(self, image: Image) -> dict[str, Any]:
        if self._profile.no_images:
            return {"type": "input_text", "text": image_note(image)}
        url = image.url or f"data:{image.media_type};base64,{image.data}"
        return {"type": "input_image", "image_url": url, "detail": "auto"}

    # -- responses --------------------------------------------------------------------------------

    def read(self, event: dict[str, Any], answer: AnswerBuilder) -> list[Event]:
        """Read one event of the stream."""
        kind = event.get("type") or ""
        delta = event.get("delta")
        if kind in ("response.output_text.delta", "response.refusal.delta"):
            return answer.add_text(delta) if isinstance(delta, str) else []
        if kind in ("response.reasoning_summary_text.delta", "response.reasoning_text.delta"):
            return answer.add_reasoning(delta) if isinstance(delta, str) else []
        index = event.get("output_index")
        if kind == "response.function_call_arguments.delta":
            return answer.add_call(index, arguments=arguments_text(delta))
        item = event.get("item")
        if isinstance(item, dict):
            if kind == "response.output_item.added" and item.get("type") == "function_call":
                return answer.add_call(
                    index, call_id=item.get("call_id") or "", name=item.get("name") or ""
                )
            if kind == "response.output_item.done":
                _keep_reasoning(item, answer)
            return []
        if kind in ("response.completed", "response.incomplete"):
            self._end(event.get("response") or {}, answer)
        return []

    def whole(self, event: dict[str, Any], answer: AnswerBuilder) -> list[Event]:
        """Read an unstreamed response."""
        events: list[Event] = []
        for index, item in enumerate(event.get("output") or ()):
            kind = item.get("type")
            if kind == "message":
                for part in item.get("content") or ():
                    events += answer.add_text(part.get("text") or part.get("refusal") or "")
            elif kind == "function_call":
                events += answer.add_call(
                    index,
                    call_id=item.get("call_id") or "",
                    name=item.get("name") or "",
                    arguments=arguments_text(item.get("arguments")),
                )
            elif kind == "reasoning":
                summary = "".join(part.get("text") or "" for part in item.get("summary") or ())
                events += answer.add_reasoning(summary) if summary else []
                _keep_reasoning(item, answer)
        self._end(event, answer)
        return events

    def _end(self, response: dict[str, Any], answer: AnswerBuilder) -> None:
        if isinstance(name := response.get("model"), str) and name:
            answer.model = name
        reason = (response.get("incomplete_details") or {}).get("reason")
        answer.stop_reason = reason or response.get("status") or "completed"
        usage = response.get("usage") or {}
        details = usage.get("input_tokens_details") or {}
        answer.usage = Usage(
            input=count(usage.get("input_tokens")),
            output=count(usage.get("output_tokens")),
            cached=count(details.get("cached_tokens")),
            written=count(details.get("cache_write_tokens")),
            reasoning=count((usage.get("output_tokens_details") or {}).get("reasoning_tokens")),
        )


def _keep_reasoning(item: dict[str, Any], answer: AnswerBuilder) -> None:
    """Keep encrypted reasoning, to be sent back with the answer."""
    if item.get("type") == "reasoning" and item.get("encrypted_content"):
        kept = {"type": "reasoning", "id": item.get("id") or ""}
        kept |= {"summary": item.get("summary") or []}
        kept["encrypted_content"] = item["encrypted_content"]
        answer.extra.setdefault("responses", []).append(kept)


def _id(call_id: str) -> str:
    return valid_id(call_id, longest=64)
