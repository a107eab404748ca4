"""Model protocol: `Provider`, the request it takes, and the events of a streamed answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from hermes.core.errors import HermesError
from hermes.core.messages import Message, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

Finish = Literal["stop", "calls", "length", "filter"]


class ModelError(HermesError):
    """A model could not be asked, or did not answer; the person looks at key, address or model.

    `retryable` says that the same request may work later or elsewhere; `status` is the HTTP
    status where there was one.
    """

    def __init__(
        self, message: str, *, hint: str | None = None, retryable: bool = False, status: int = 0
    ) -> None:
        super().__init__(message, hint=hint)
        self.retryable = retryable
        self.status = status


class WindowError(ModelError):
    """The request is longer than the model's window: compaction may help, asking again won't."""


class Request(msgspec.Struct, frozen=True):
    """One question to a model. `tools` are function definitions as OpenAI writes them."""

    messages: tuple[Message, ...]
    tools: tuple[dict[str, Any], ...] = ()
    max_tokens: int | None = None
    temperature: float | None = None
    # The name of the tool that has to be called; empty leaves the choice to the model.
    force: str = ""


class TextDelta(msgspec.Struct, frozen=True, tag=True):
    """A piece of the answer."""

    text: str


class ReasoningDelta(msgspec.Struct, frozen=True, tag=True):
    """A piece of what the model thinks aloud."""

    text: str


class CallDelta(msgspec.Struct, frozen=True, tag=True):
    """A tool call is being written: which one, and how many characters of arguments so far."""

    index: int
    name: str
    size: int


class Discarded(msgspec.Struct, frozen=True, tag=True):
    """What came so far is void: the model is asked again, or another one is."""

    reason: str


class Waiting(msgspec.Struct, frozen=True, tag=True):
    """The provider wants us to wait before the next try."""

    reason: str
    seconds: float


class Noted(msgspec.Struct, frozen=True, tag=True):
    """Something beside the answer that the person should know."""

    text: str


class Done(msgspec.Struct, frozen=True, tag=True):
    """The whole answer; always the last event."""

    message: Message
    finish: Finish
    usage: Usage = Usage()
    # The model as the server calls it, and as it was asked for.
    model: str = ""
    provider: str = ""
    asked: str = ""


Event = TextDelta | ReasoningDelta | CallDelta | Discarded | Waiting | Noted | Done


class Provider(Protocol):
    """A model that can be asked. Making one opens nothing; `close` ends what asking opened."""

    @property
    def name(self) -> str:
        """What the service is called."""
        ...

    @property
    def model(self) -> str:
        """The model's name there."""
        ...

    @property
    def window(self) -> int:
        """How many tokens a conversation may have; 0 when nobody said."""
        ...

    def stream(self, request: Request) -> AsyncIterator[Event]:
        """Ask. Ends with `Done`, or raises `ModelError`; cancelling the task stops it at once."""
        ...

    async def close(self) -> None:
        """End connections and processes."""
        ...
