"""A client at the other end of our stdin and stdout.

From the first line on, nothing but the protocol goes out there: the two descriptors are taken
away, and whoever prints, a tool, a plugin or a child, prints to stderr. A line that is no message
is answered, and costs nobody the connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import (
    PARSE_ERROR,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from hermes.mcp.server.door import Door
from hermes.mcp.server.framing import (
    MOST_BYTES,
    Lines,
    UnusableError,
    put,
    read_message,
    text_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp_types import JSONRPCMessage

    from hermes.runtime.app import App

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
        door = Door(app, toolsets=toolsets, defer=defer, services=services)
        asyncio.run(_serve(door, source, target))


async def _serve(door: Door, source: int, target: int) -> None:
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


async def run(door: Door, source: int, target: int) -> None:
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
    lines = Lines(source)
    async with messages, replies:
        async for line in lines:
            try:
                if line is None:
                    raise UnusableError(PARSE_ERROR, f"more than {MOST_BYTES} bytes")
                if line.strip():
                    message = read_message(line)
                    open_.asked(message)
                    await messages.send(SessionMessage(message))
            except UnusableError as error:
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
