"""Conversation messages, independent of a provider's format."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

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
