"""HTTP model: one request over HTTP, retried with back-off, its server-sent events read to the
end.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from hermes.agent.providers.connection import Connection, is_loopback
from hermes.agent.providers.errors import BrokenStream, RetryLater, response_error, stream_error
from hermes.agent.providers.model_profiles import Profile, profile_of
from hermes.agent.providers.stream_reader import AnswerBuilder
from hermes.core.model_protocol import Discarded, ModelError, Waiting

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from typing import Any

    from hermes.agent.providers.connection import Reply
    from hermes.core.model_protocol import Event, Request


# What OpenAI's API sends when everything was said.
DONE: Final = "[DONE]"
# No event of an honest server is longer; without a limit one without a line end fills the memory.
_LONGEST = 32 * 1024 * 1024

_decode = msgspec.json.Decoder().decode


class EventError(ValueError):
    """What came is no event of a model's answer."""


class EventReader:
    """Collects bytes; gives the events that are complete, parsed."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        # When set, the last bytes were a comment or a blank: alive, but nothing new.
        self.comments = 0

    def feed(self, chunk: bytes) -> list[Any]:
        """The events that this piece completes: objects, or `DONE`."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > _LONGEST:
            raise EventError(f"an event of more than {_LONGEST:,} bytes")
        events: list[Any] = []
        for line in lines:
            line = line.rstrip(b"\r")
            if not line:
                events += self._complete()
            elif line.startswith(b"data:"):
                self._data.append(line[5:].strip())
            elif line.startswith(b":"):
                self.comments += 1
            elif line.startswith(b"{"):
                # Some servers put an error into the stream as it is.
                events += [*self._complete(), _parsed(line)]
        return events

    def end(self) -> list[Any]:
        """The last event, where the line end after it is missing."""
        rest, self._rest = self._rest.strip(), b""
        if rest.startswith(b"data:"):
            self._data.append(rest[5:].strip())
        elif rest.startswith(b"{"):
            return [*self._complete(), _parsed(rest)]
        return self._complete()

    def _complete(self) -> list[Any]:
        data, self._data = self._data, []
        if not data:
            return []
        if len(data) > 1:
            # One event over several lines; or several events, from a server without blank lines.
            try:
                return [_parsed(b"\n".join(data))]
            except EventError:
                pass
        return [_parsed(line) for line in data if line]


def _parsed(data: bytes) -> Any:
    if data == b"[DONE]":
        return DONE
    try:
        value = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        shown = data[:80].decode("utf-8", "replace")
        raise EventError(f"an event that is not JSON: {shown}") from None
    if not isinstance(value, dict):
        raise EventError(f"an event that is no object: {str(value)[:80]}")
    return value


IDLE_SECONDS = 60.0
# A server on this machine may load a model and read a long prompt before the first byte.
_LOCAL_FIRST_SECONDS = 600.0
# A model that thinks in silence is given so many times the usual limit.
_THINKING = 5
# Signs of life without content are enough for this many times the idle limit.
_PATIENCE = 5


class Wire(Protocol):
    """An API: how a request is written, and what its events mean."""

    path: str

    def headers(self, key: str) -> dict[str, str]:
        """How the key is shown."""
        ...

    def body(self, request: Request) -> bytes:
        """The request as JSON."""
        ...

    def adapt(self, error_text: str) -> bool:
        """Drop or add the option that an error names; whether the next request will differ."""
        ...

    def read(self, event: dict[str, Any], answer: AnswerBuilder) -> list[Event]:
        """Put what an event of the stream says into the answer; what there is to show of it."""
        ...

    def whole(self, event: dict[str, Any], answer: AnswerBuilder) -> list[Event]:
        """The same for an answer that came in one piece."""
        ...


class HttpModel:
    """A model behind an HTTP API; a `Provider`."""

    def __init__(
        self,
        name: str,
        model: str,
        base_url: str,
        *,
        key: str = "",
        wire: str = "chat",
        profile: Profile | None = None,
        idle_timeout: float | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        """Nothing is opened yet.

        Args:
            name: What the service is called.
            model: The model's name there.
            base_url: Where its API is.
            key: What it wants to see before it answers.
            wire: The API it speaks: chat, responses or anthropic.
            profile: What to expect of the model; found by its name if None.
            idle_timeout: How many seconds may pass without a byte; the usual if None.
            headers: More headers to send.
        """
        self.name = name
        self.model = model
        # Whether an address of this API ends with its version is a matter of taste.
        self.base_url = base_url.rstrip("/")
        if wire == "anthropic":
            self.base_url = self.base_url.removesuffix("/v1")
        self.profile = profile or profile_of(model)
        self.window = self.profile.window
        self._key = key
        self._headers = headers or {}
        idle = idle_timeout or IDLE_SECONDS * (_THINKING if self.profile.reasoning else 1)
        waits = idle_timeout is None and is_loopback(base_url)
        first = max(idle, _LOCAL_FIRST_SECONDS) if waits else idle
        self._connection = Connection(self.base_url, name=name, idle=idle, first=first)
        self.wire: Wire = make_wire(wire, model, self.profile)

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Ask; see `Provider`."""
        tries = 0
        asked_again = False
        while True:
            answer = AnswerBuilder(self.profile, request.tools)
            try:
                async with aclosing(self._ask(request, answer)) as events:
                    async for event in events:
                        yield event
                break
            except ModelError as error:
                # The server may want the same request written in another way.
                unheard = error.status in (400, 422) and answer.empty
                if not unheard or not self.wire.adapt(str(error)):
                    raise
            except RetryLater as trouble:
                tries += 1
                if tries >= trouble.tries:
                    raise trouble.error from None
                seconds = _pause(tries, trouble.wait)
                yield Waiting(str(trouble.error), seconds)
                await asyncio.sleep(seconds)
            except BrokenStream as broken:
                if asked_again:
                    raise ModelError(
                        f"{self.name} broke off its answer twice: {broken}",
                        hint="Try again, or use another model.",
                        retryable=True,
                    ) from None
                asked_again = True
                yield Discarded(str(broken))
        held, done = answer.done(provider=self.name, model=self.model)
        for event in held:
            yield event
        yield done

    async def close(self) -> None:
        """End the connections of this event loop."""
        await self._connection.close()

    async def _ask(self, request: Request, answer: AnswerBuilder) -> AsyncGenerator[Event, None]:
        headers = {"Content-Type": "application/json", "Accept": "text/event-stream"}
        headers |= self.wire.headers(self._key) | self._headers
        body = self.wire.body(request)
        async with self._connection.post(self.wire.path, body, headers) as reply:
            if reply.status != 200:
                raise await self._refused(reply)
            if not reply.streamed:
                for event in await self._whole(reply, answer):
                    yield event
                return
            async with aclosing(self._events(reply, answer)) as events:
                async for event in events:
                    yield event

    async def _refused(self, reply: Reply) -> Exception:
        body = await reply.error_text()
        if self._key:
            body = body.replace(self._key.encode(), b"***")
        return response_error(reply.status, reply.headers, body, where=self.name, model=self.model)

    async def _events(self, reply: Reply, answer: AnswerBuilder) -> AsyncGenerator[Event, None]:
        reader = EventReader()
        loop = asyncio.get_running_loop()
        heard = loop.time()
        ended = False
        async with aclosing(reply.chunks()) as chunks:
            async for chunk in chunks:
                for event in self._parsed(reader, chunk):
                    heard = loop.time()
                    if event is DONE:
                        ended = True
                        continue
                    for found in self._read(event, answer):
                        yield found
                if loop.time() - heard > self._connection.idle * _PATIENCE:
                    raise BrokenStream(f"only signs of life for {loop.time() - heard:.0f} s")
        for event in self._parsed(reader, None):
            if event is DONE:
                ended = True
                continue
            for found in self._read(event, answer):
                yield found
        if not answer.stop_reason and not (ended and not answer.empty):
            raise BrokenStream("the answer ended before its end")

    def _parsed(self, reader: EventReader, chunk: bytes | None) -> list[Any]:
        try:
            return reader.end() if chunk is None else reader.feed(chunk)
        except EventError as error:
            raise BrokenStream(f"{self.name} sent {error}") from None

    def _read(
        self, event: dict[str, Any], answer: AnswerBuilder, *, whole: bool = False
    ) -> list[Event]:
        try:
            trouble = stream_error(event, where=self.name, model=self.model)
            if trouble is None:
                return self.wire.whole(event, answer) if whole else self.wire.read(event, answer)
        except (AttributeError, KeyError, TypeError, ValueError):
            # Valid JSON of another shape than the API has.
            raise BrokenStream(f"{self.name} sent something that is no part of an answer") from None
        if isinstance(trouble, RetryLater) and not answer.empty:
            raise BrokenStream(str(trouble.error))
        raise trouble

    async def _whole(self, reply: Reply, answer: AnswerBuilder) -> list[Event]:
        import msgspec

        try:
            value = msgspec.json.decode(await reply.whole())
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise BrokenStream(f"{self.name} sent something that is not JSON") from None
        if not isinstance(value, dict):
            raise BrokenStream(f"{self.name} sent something that is no answer")
        return self._read(value, answer, whole=True)


def make_wire(wire: str, model: str, profile: Profile) -> Wire:
    """The API of this name."""
    if wire == "responses":
        from hermes.agent.providers.openai_responses import ResponsesWire

        return ResponsesWire(model, profile)
    if wire == "anthropic":
        from hermes.agent.providers.anthropic import AnthropicWire

        return AnthropicWire(model, profile)
    from hermes.agent.providers.openai_chat import ChatWire

    return ChatWire(model, profile)


def _pause(tries: int, asked: float | None) -> float:
    """How long to wait before the next try: as asked, else longer each time, never in step."""
    import random

    if asked is not None:
        return asked + random.uniform(0, 0.25)
    return float(min(0.5 * 2 ** (tries - 1), 20.0)) * random.uniform(0.75, 1.25)
