"""Stdio server: one client at the other end of our stdin and stdout."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from mcp.shared.message import SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from hermes.core.log import Log
from hermes.mcp.server.handlers import AppServer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp_types import JSONRPCMessage

    from hermes.runtime.app import App


log = Log("hermes.mcp")

# The longest message that is read; what is longer is refused and read over.
MOST_BYTES = 16 * 1024 * 1024
_CHUNK = 256 * 1024
# How many bytes a pipe that is ready takes without making us wait.
_SURE = 4096
# How many messages may wait to be looked at.
_AHEAD = 8


class InvalidLineError(Exception):
    """A line without a message; `reply` is the error response."""

    def __init__(self, code: int, why: str, number: str | int | None = None) -> None:
        super().__init__(why)
        error = ErrorData(code=code, message=f"a line could not be used: {why}")
        self.reply = JSONRPCError(jsonrpc="2.0", id=number, error=error)


def read_message(line: bytes) -> JSONRPCMessage:
    """The message in a line."""
    try:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError:
        raise _unusable(line) from None
    # A request whose id can't be one is taken for a notification, and somebody waits for ever.
    if isinstance(message, JSONRPCNotification) and b'"id"' in line and "id" in json.loads(line):
        raise _unusable(line)
    return message


def _unusable(line: bytes) -> InvalidLineError:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return InvalidLineError(PARSE_ERROR, "not JSON")
    asks = isinstance(value, dict) and "method" in value
    number = value.get("id") if asks else None
    known = number if isinstance(number, (str, int)) and not isinstance(number, bool) else None
    return InvalidLineError(INVALID_REQUEST, "not a message of JSON-RPC 2.0", known)


def text_of(message: JSONRPCMessage) -> str:
    """A message as it is sent; one that can't be is answered with an error in its stead."""
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True)
    except PydanticSerializationError:
        log.exception("a message can't be sent")
    error = ErrorData(code=INTERNAL_ERROR, message="the answer can't be sent")
    number = getattr(message, "id", None)
    return JSONRPCError(jsonrpc="2.0", id=number, error=error).model_dump_json()


async def put(target: int, data: bytes) -> None:
    """Write all of it; a client that reads slowly makes a thread wait, not us."""
    rest = memoryview(data)
    while rest:
        if _takes(target, 0):
            rest = rest[os.write(target, rest[:_SURE]) :]
        else:
            await anyio.to_thread.run_sync(_takes, target, 1000, abandon_on_cancel=True)


def _takes(target: int, milliseconds: int) -> bool:
    """Whether something can be written without waiting, now or within a time."""
    if not hasattr(select, "poll"):  # Windows: nobody can say
        return True
    ready = select.poll()
    ready.register(target, select.POLLOUT)
    return bool(ready.poll(milliseconds))


class LineReader:
    """Lines from a descriptor, read by a daemon thread.

    None is a line that was too long.
    """

    def __init__(self, source: int) -> None:
        self._source = source
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[bytes | EOFError | None] = asyncio.Queue()
        self._room = threading.Semaphore(_AHEAD)
        threading.Thread(target=self._read, name="hermes-stdin", daemon=True).start()

    def __aiter__(self) -> LineReader:
        return self

    async def __anext__(self) -> bytes | None:
        line = await self._lines.get()
        self._room.release()
        if isinstance(line, EOFError):
            raise StopAsyncIteration
        return line

    def _read(self) -> None:
        kept = bytearray()
        over = False
        try:
            while chunk := os.read(self._source, _CHUNK):
                *ends, rest = chunk.split(b"\n")
                for end in ends:
                    kept += end
                    self._pass_on(None if over or len(kept) > MOST_BYTES else bytes(kept))
                    kept.clear()
                    over = False
                kept += rest
                if len(kept) > MOST_BYTES:
                    over = True
                    kept.clear()
        except OSError:
            # As good as its end.
            pass
        self._pass_on(EOFError())

    def _pass_on(self, line: bytes | EOFError | None) -> None:
        self._room.acquire()
        with contextlib.suppress(RuntimeError):
            # The loop may be closed: nobody wants to know any more.
            self._loop.call_soon_threadsafe(self._lines.put_nowait, line)


if TYPE_CHECKING:
    Incoming = SessionMessage | Exception

# How long an answer may take that is asked for with the last words.
_LAST_SECONDS = 3.0


def serve_stdio(
    app: App,
    *,
    toolsets: Sequence[str] | None = None,
    defer: bool = True,
    services: Mapping[str, Any] | None = None,
) -> None:
    """Serve the client at stdin and stdout until it goes away, or a signal ends us."""
    with taken() as (source, target):
        door = AppServer(app, toolsets=toolsets, defer=defer, services=services)
        asyncio.run(_serve(door, source, target))


async def _serve(door: AppServer, source: int, target: int) -> None:
    served = asyncio.ensure_future(run(door, source, target))
    _on_signals(served)
    with contextlib.suppress(asyncio.CancelledError):
        await served


def _on_signals(task: asyncio.Future[None]) -> None:
    """The first signal ends in good order."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(number, task.cancel)
        except (NotImplementedError, ValueError, RuntimeError):
            # No such handlers here: the signal ends the program, as everywhere.
            return


@contextlib.contextmanager
def taken() -> Iterator[tuple[int, int]]:
    """Stdin and stdout for us alone: descriptors of our own, and nothing behind the old ones."""
    if sys.stdout is not None:
        sys.stdout.flush()
    source, target = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        yield source, target
    finally:
        # Not put back: whoever prints late must not reach the client either. The thread that
        # reads may still wait at `source`, which goes with the program.
        os.close(nothing)
        os.close(target)


async def run(door: AppServer, source: int, target: int) -> None:
    """Serve the client behind two descriptors."""
    to_server, incoming = anyio.create_memory_object_stream[Any](0)
    outgoing, replies = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as group:
        open_ = _Open()
        group.start_soon(_read, source, to_server, outgoing.clone(), open_)
        group.start_soon(_write, target, replies, open_, group.cancel_scope)
        await door.server.run(incoming, outgoing, door.server.create_initialization_options())
        group.cancel_scope.cancel()


async def _read(
    source: int,
    messages: MemoryObjectSendStream[Incoming],
    replies: MemoryObjectSendStream[SessionMessage],
    open_: _Open,
) -> None:
    """Every message of the client, in order, until there are no more."""
    lines = LineReader(source)
    async with messages, replies:
        async for line in lines:
            try:
                if line is None:
                    raise InvalidLineError(PARSE_ERROR, f"more than {MOST_BYTES} bytes")
                if line.strip():
                    message = read_message(line)
                    open_.asked(message)
                    await messages.send(SessionMessage(message))
            except InvalidLineError as error:
                await replies.send(SessionMessage(error.reply))
        # Whoever asks and closes at once, as scripts do, may still want to hear the answer.
        with anyio.move_on_after(_LAST_SECONDS):
            await open_.none()


class _Open:
    """The requests that are not answered yet."""

    def __init__(self) -> None:
        self._ids: set[str | int] = set()
        self._none = asyncio.Event()
        self._none.set()

    def asked(self, message: JSONRPCMessage) -> None:
        """A message came in; a stream that is asked for is never done."""
        if isinstance(message, JSONRPCRequest) and message.method != "subscriptions/listen":
            self._ids.add(message.id)
            self._none.clear()
        elif isinstance(message, JSONRPCNotification):
            # What is cancelled need not be answered.
            said = message.params or {}
            if message.method == "notifications/cancelled" and "requestId" in said:
                self._done(said["requestId"])

    def answered(self, message: JSONRPCMessage) -> None:
        """A message went out."""
        if isinstance(message, (JSONRPCResponse, JSONRPCError)) and message.id is not None:
            self._done(message.id)

    def _done(self, number: Any) -> None:
        self._ids = {one for one in self._ids if one != number}
        if not self._ids:
            self._none.set()

    async def none(self) -> None:
        """Until there are none."""
        await self._none.wait()


async def _write(
    target: int,
    messages: MemoryObjectReceiveStream[SessionMessage],
    open_: _Open,
    scope: anyio.CancelScope,
) -> None:
    """Every message for the client; one that reads no more ends the conversation."""
    async with messages:
        async for message in messages:
            text = text_of(message.message)
            try:
                await put(target, f"{text}\n".encode())
            except OSError:
                scope.cancel()
                return
            open_.answered(message.message)
