"""Conversation messages, and the protocol of a model provider."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import msgspec

from hermes.core.errors import HermesError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


Role = Literal["system", "user", "assistant", "tool"]


class ToolUse(msgspec.Struct, frozen=True, omit_defaults=True):
    """A call that a model asks for. `arguments` is the JSON text that it sent, as it sent it."""

    id: str
    name: str
    arguments: str = "{}"


class Image(msgspec.Struct, frozen=True, omit_defaults=True):
    """A picture for the model: its bytes in base 64, or where it is."""

    media_type: str
    data: str = ""
    url: str = ""


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message. Which fields have a meaning depends on the role.

    `calls` and `reasoning` belong to the assistant; `call_id` and `name` identify the call that a
    `tool` message answers; `images` come from a person or a tool. `extra` is opaque data that a
    provider expects back (signatures of reasoning, item ids).
    """

    role: Role
    text: str = ""
    calls: tuple[ToolUse, ...] = ()
    call_id: str = ""
    name: str = ""
    reasoning: str = ""
    images: tuple[Image, ...] = ()
    extra: dict[str, Any] = msgspec.field(default_factory=dict)


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tokens of a request. `cached` is part of `input`, `reasoning` of `output`."""

    input: int = 0
    output: int = 0
    cached: int = 0
    written: int = 0  # into the provider's cache
    reasoning: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cached + other.cached,
            self.written + other.written,
            self.reasoning + other.reasoning,
        )


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Message).decode


def to_text(message: Message) -> str:
    """A message as JSON text, for keeping."""
    return _encode(message).decode()


def from_text(text: str | bytes) -> Message:
    """The message that `to_text` wrote."""
    return _decode(text)


Finish = Literal["stop", "calls", "length", "filter"]


class ModelError(HermesError):
    """A model call failed; the person checks key, address or model name.

    `retryable` means that the same request may succeed later or with another model; `status` is
    the HTTP status, or 0.
    """

    def __init__(
        self, message: str, *, hint: str | None = None, retryable: bool = False, status: int = 0
    ) -> None:
        super().__init__(message, hint=hint)
        self.retryable = retryable
        self.status = status


class WindowError(ModelError):
    """The request exceeds the context window: compaction may help, a retry does not."""


class Request(msgspec.Struct, frozen=True):
    """One request to a model. `tools` are function definitions in OpenAI's format."""

    messages: tuple[Message, ...]
    tools: tuple[dict[str, Any], ...] = ()
    max_tokens: int | None = None
    temperature: float | None = None
    # Name of the tool that must be called; empty leaves the choice to the model.
    force: str = ""


class TextDelta(msgspec.Struct, frozen=True, tag=True):
    """A piece of the answer's text."""

    text: str


class ReasoningDelta(msgspec.Struct, frozen=True, tag=True):
    """A piece of the model's reasoning."""

    text: str


class CallDelta(msgspec.Struct, frozen=True, tag=True):
    """Progress of a tool call: its name, and the size of its arguments so far in characters."""

    index: int
    name: str
    size: int


class Discarded(msgspec.Struct, frozen=True, tag=True):
    """The pieces so far are void: the request is repeated, or sent to another model."""

    reason: str


class Waiting(msgspec.Struct, frozen=True, tag=True):
    """Back-off before the next attempt."""

    reason: str
    seconds: float


class Noted(msgspec.Struct, frozen=True, tag=True):
    """A notice for the person, beside the answer."""

    text: str


class Done(msgspec.Struct, frozen=True, tag=True):
    """The whole answer; always the last event."""

    message: Message
    finish: Finish
    usage: Usage = Usage()
    # Model name in the response, service, and model name in the request.
    model: str = ""
    provider: str = ""
    asked: str = ""


Event = TextDelta | ReasoningDelta | CallDelta | Discarded | Waiting | Noted | Done


class Provider(Protocol):
    """A model. The constructor opens nothing; `close` releases the connections of requests."""

    @property
    def name(self) -> str:
        """The name of the service."""
        ...

    @property
    def model(self) -> str:
        """The name of the model."""
        ...

    @property
    def window(self) -> int:
        """The context window in tokens; 0 if unknown."""
        ...

    def stream(self, request: Request) -> AsyncIterator[Event]:
        """Send a request. Ends with `Done`, or raises `ModelError`; can be cancelled."""
        ...

    async def close(self) -> None:
        """Close connections and processes."""
        ...


@runtime_checkable
class TurnRunner(Protocol):
    """A provider that runs the steps of a turn itself, in place of the agent's loop."""

    async def run_turn(self, conversation: Any, state: Any, request: str) -> Any:
        """Run a turn of a `Conversation`; its result."""
        ...
