"""HTTP model: requests with retries and back-off, and the server-sent events of the answer."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from hermes.agent.providers.connection import (
    BrokenStream,
    Connection,
    RetryLater,
    is_loopback,
    response_error,
    stream_error,
)
from hermes.agent.providers.model_profiles import Profile, profile_of
from hermes.agent.providers.stream_reader import AnswerBuilder
from hermes.core.model_protocol import Discarded, ModelError, Waiting

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from typing import Any

    from hermes.agent.providers.connection import Reply
    from hermes.core.model_protocol import Event, Request


# The end mark of OpenAI's APIs.
DONE: Final = "[DONE]"
# Without a limit, a server that sends no line end fills the memory.
_MAX_EVENT_BYTES = 32 * 1024 * 1024

_decode = msgspec.json.Decoder().decode


class EventError(ValueError):
    """Invalid data in a stream of events."""


class EventReader:
    """Parser for server-sent events with JSON data, tolerant of the deviations of real servers.

    Accepted: a missing blank line between events or after the last one, and error objects without
    `data:`. httpx2's own reader rejects or drops these (docs/decisions/http-client.md).
    """

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[Any]:
        """The events that this chunk completes: objects, or `DONE`."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > _MAX_EVENT_BYTES:
            raise EventError(f"an event of more than {_MAX_EVENT_BYTES:,} bytes")
        events: list[Any] = []
        for line in lines:
            line = line.rstrip(b"\r")
            if not line:
                events += self._complete()
            elif line.startswith(b"data:"):
                self._data.append(line[5:].strip())
            elif line.startswith(b"{"):
                # Some servers put a bare error object into the stream.
                events += [*self._complete(), _parsed(line)]
        return events

    def end(self) -> list[Any]:
        """The last event, if its line end is missing."""
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
            # One event on several lines, or several events without blank lines.
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
# A local server may have to load the model and to read a long prompt first.
_LOCAL_FIRST_SECONDS = 600.0
# Factor on the idle timeout for reasoning models, which are silent while they reason.
_REASONING_FACTOR = 5
# Factor on the idle timeout while only keep-alive comments arrive.
_COMMENT_FACTOR = 5


class Wire(Protocol):
    """A wire format: encodes requests, decodes events."""

    path: str

    def headers(self, key: str) -> dict[str, str]:
        """The authentication headers."""
        ...

    def body(self, request: Request) -> bytes:
        """The request body."""
        ...

    def adapt(self, error_text: str) -> bool:
        """Drop or add the option that an error names; whether the next request will differ."""
        ...

    def read(self, event: dict[str, Any], answer: AnswerBuilder) -> list[Event]:
        """Add an event of the stream to the answer; the events to emit."""
        ...

    def whole(self, event: dict[str, Any], answer: AnswerBuilder) -> list[Event]:
        """Add an unstreamed response to the answer; the events to emit."""
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
            name: The name of the service.
            model: The name of the model.
            base_url: The base address of the API.
            key: The API key.
            wire: The API: chat, responses or anthropic.
            profile: Limits and quirks of the model; from its name if None.
            idle_timeout: Seconds without a byte until a response counts as stalled.
            headers: Additional headers.
        """
        self.name = name
        self.model = model
        # The version at the end of an address of this API is optional.
        self.base_url = base_url.rstrip("/")
        if wire == "anthropic":
            self.base_url = self.base_url.removesuffix("/v1")
        self.profile = profile or profile_of(model)
        self.window = self.profile.window
        self._key = key
        self._headers = headers or {}
        idle = idle_timeout or IDLE_SECONDS * (_REASONING_FACTOR if self.profile.reasoning else 1)
        waits = idle_timeout is None and is_loopback(base_url)
        first = max(idle, _LOCAL_FIRST_SECONDS) if waits else idle
        self._connection = Connection(self.base_url, name=name, idle=idle, first=first)
        self.wire: Wire = make_wire(wire, model, self.profile)

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Send a request; see `Provider`."""
        tries = 0
        repeated = False
        while True:
            answer = AnswerBuilder(self.profile, request.tools)
            try:
                async with aclosing(self._ask(request, answer)) as events:
                    async for event in events:
                        yield event
                break
            except ModelError as error:
                # The server may reject an option of the request.
                rejected = error.status in (400, 422) and answer.empty
                if not rejected or not self.wire.adapt(str(error)):
                    raise
            except RetryLater as later:
                tries += 1
                if tries >= later.tries:
                    raise later.error from None
                seconds = _backoff(tries, later.wait)
                yield Waiting(str(later.error), seconds)
                await asyncio.sleep(seconds)
            except BrokenStream as broken:
                if repeated:
                    raise ModelError(
                        f"{self.name} broke off its answer twice: {broken}",
                        hint="Try again, or use another model.",
                        retryable=True,
                    ) from None
                repeated = True
                yield Discarded(str(broken))
        held, done = answer.done(provider=self.name, model=self.model)
        for event in held:
            yield event
        yield done

    async def close(self) -> None:
        """Close the connections."""
        await self._connection.close()

    async def _ask(self, request: Request, answer: AnswerBuilder) -> AsyncGenerator[Event, None]:
        headers = {"Content-Type": "application/json", "Accept": "text/event-stream"}
        headers |= self.wire.headers(self._key) | self._headers
        body = self.wire.body(request)
        async with self._connection.post(self.wire.path, body, headers) as reply:
            if reply.status != 200:
                raise await self._error(reply)
            if not reply.streamed:
                for event in await self._whole(reply, answer):
                    yield event
                return
            async with aclosing(self._events(reply, answer)) as events:
                async for event in events:
                    yield event

    async def _error(self, reply: Reply) -> Exception:
        body = await reply.error_text()
        if self._key:
            body = body.replace(self._key.encode(), b"***")
        return response_error(reply.status, reply.headers, body, where=self.name, model=self.model)

    async def _events(self, reply: Reply, answer: AnswerBuilder) -> AsyncGenerator[Event, None]:
        reader = EventReader()
        loop = asyncio.get_running_loop()
        last_event = loop.time()
        ended = False
        async with aclosing(reply.chunks()) as chunks:
            async for chunk in chunks:
                for event in self._parsed(reader, chunk):
                    last_event = loop.time()
                    if event is DONE:
                        ended = True
                        continue
                    for part in self._read(event, answer):
                        yield part
                silent = loop.time() - last_event
                if silent > self._connection.idle * _COMMENT_FACTOR:
                    raise BrokenStream(f"only signs of life for {silent:.0f} s")
        for event in self._parsed(reader, None):
            if event is DONE:
                ended = True
                continue
            for part in self._read(event, answer):
                yield part
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
            error = stream_error(event, where=self.name, model=self.model)
            if error is None:
                return self.wire.whole(event, answer) if whole else self.wire.read(event, answer)
        except (AttributeError, KeyError, TypeError, ValueError):
            # Valid JSON, but not of this API.
            raise BrokenStream(f"{self.name} sent something that is no part of an answer") from None
        if isinstance(error, RetryLater) and not answer.empty:
            raise BrokenStream(str(error.error))
        raise error

    async def _whole(self, reply: Reply, answer: AnswerBuilder) -> list[Event]:
        try:
            value = msgspec.json.decode(await reply.whole())
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise BrokenStream(f"{self.name} sent something that is not JSON") from None
        if not isinstance(value, dict):
            raise BrokenStream(f"{self.name} sent something that is no answer")
        return self._read(value, answer, whole=True)


def make_wire(wire: str, model: str, profile: Profile) -> Wire:
    """The wire format of an API."""
    if wire == "responses":
        from hermes.agent.providers.openai_responses import ResponsesWire

        return ResponsesWire(model, profile)
    if wire == "anthropic":
        from hermes.agent.providers.anthropic import AnthropicWire

        return AnthropicWire(model, profile)
    from hermes.agent.providers.openai_chat import ChatWire

    return ChatWire(model, profile)


def _backoff(tries: int, requested: float | None) -> float:
    """Seconds until the next attempt: as the server asked, else exponential; with jitter."""
    import random

    if requested is not None:
        return requested + random.uniform(0, 0.25)
    return float(min(0.5 * 2 ** (tries - 1), 20.0)) * random.uniform(0.75, 1.25)
