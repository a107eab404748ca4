"""Model protocol: `Provider`, the request it takes, and the events of a streamed answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import msgspec

from hermes.core.errors import HermesError
from hermes.core.messages import Message, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

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
