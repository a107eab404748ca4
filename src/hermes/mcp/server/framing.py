"""Messages as lines of bytes: read from a descriptor, and written to one."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import threading
from typing import TYPE_CHECKING

import anyio.to_thread
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from hermes.core.log import Log

if TYPE_CHECKING:
    from mcp_types import JSONRPCMessage

log = Log("hermes.mcp")

# The longest message that is read; what is longer is refused and read over.
MOST_BYTES = 16 * 1024 * 1024
_CHUNK = 256 * 1024
# How many bytes a pipe that is ready takes without making us wait.
_SURE = 4096
# How many messages may wait to be looked at.
_AHEAD = 8


class UnusableError(Exception):
    """A line that holds no message; `reply` says so to whoever sent it."""

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


def _unusable(line: bytes) -> UnusableError:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return UnusableError(PARSE_ERROR, "not JSON")
    asks = isinstance(value, dict) and "method" in value
    number = value.get("id") if asks else None
    known = number if isinstance(number, (str, int)) and not isinstance(number, bool) else None
    return UnusableError(INVALID_REQUEST, "not a message of JSON-RPC 2.0", known)


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


class Lines:
    """Lines from a descriptor, read by a thread that keeps nobody from ending.

    None stands for a line that was too long.
    """

    def __init__(self, source: int) -> None:
        self._source = source
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[bytes | EOFError | None] = asyncio.Queue()
        self._room = threading.Semaphore(_AHEAD)
        threading.Thread(target=self._read, name="hermes-stdin", daemon=True).start()

    def __aiter__(self) -> Lines:
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
