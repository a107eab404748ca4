"""Stdio transport: JSON-RPC messages over the stdin and stdout of a server process."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import mcp_types
import msgspec
from mcp.shared.message import SessionMessage

from hermes.mcp.client.fast_call import Direct
from hermes.mcp.client.rate_limit import Pace
from hermes.mcp.client.server_process import ENDING_SECONDS, Program
from hermes.mcp.untrusted_text import whole_value

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from types import TracebackType
    from typing import Any, Self

    from hermes.mcp.client.server_log import Journal
    from hermes.mcp.client.server_process import Launch


# So many values in one line are looked at; no server has as many answers to give at once.
MOST_AT_ONCE = 1_000
_decoded = msgspec.json.Decoder().decode
# The id of an answer, at either end of a line that can't be read as a whole.
_ID = re.compile(rb'"id"\s*:\s*("[A-Za-z0-9_-]{1,60}"|\d{1,18})')
_END = 300
_OURS = b'"hermes-'
# What is no number in JSON is kept as the word it was written as.
_loose = json.JSONDecoder(parse_constant=str)
_space = re.compile(r"[ \t\r\n]*").match
# How an answer begins, and nothing that a program prints by the way.
_ANSWER = re.compile(rb'\s*\{\s*"(?:jsonrpc|id|result|error)"\s*:')
_DEEP = "values are inside of each other too often in it"


def read(line: bytes) -> Any:
    """The value in a line, or a list of several; raises `ValueError` where there is none.

    What programs write all the same is read: a mark of the encoding in front, bytes of another
    encoding, half a character, NaN, one answer right behind another. An answer that can't be read
    becomes an error with its id: whoever waits for it is told.
    """
    try:
        return _decoded(line)
    except RecursionError:
        return _unreadable(line, _DEEP)
    except ValueError:
        text = line.decode("utf-8-sig", "replace")
    try:
        return whole_value(_values(text))
    except RecursionError:
        return _unreadable(line, _DEEP)
    except ValueError as error:
        if not _ANSWER.match(line):
            raise
        broken = isinstance(error, json.JSONDecodeError)
        return _unreadable(line, str(error)[:200] if broken else "a number in it is too long")


def _values(text: str) -> Any:
    found: list[Any] = []
    at = _behind_space(text, 0)
    while not found or (at < len(text) and len(found) <= MOST_AT_ONCE):
        value, at = _loose.raw_decode(text, at)
        found.append(value)
        at = _behind_space(text, at)
    return found if len(found) > 1 else found[0]


def _behind_space(text: str, at: int) -> int:
    found = _space(text, at)
    return found.end() if found else at


def _unreadable(line: bytes, why: str) -> dict[str, Any]:
    ids = {*_ID.findall(line[:_END]), *_ID.findall(line[-_END:])}
    # What an answer is about has ids as well; none like those of our calls.
    ids = {one for one in ids if one.startswith(_OURS)} or ids
    if len(ids) != 1 or b'"method"' in line[:_END]:
        raise ValueError(why)
    error = {"code": -32700, "message": f"the answer can't be read: {why}"}
    return {"jsonrpc": "2.0", "id": json.loads(ids.pop()), "error": error}


MOST_BYTES = 64 * 1024 * 1024
# What may wait to be written before a sender waits as well.
_WAITING_BYTES = 1 << 20
# How many messages may wait to be looked at before no more are read.
_WAITING_MESSAGES = 500
_PIECE = 1 << 18
_message = mcp_types.jsonrpc_message_adapter.validate_python


class Pipes:
    """Both directions of one server's pipes, in one loop."""

    def __init__(
        self, program: Program, journal: Journal, on_lost: Callable[[], None] = lambda: None
    ) -> None:
        """Take a program over; `on_lost` is called when it can't be talked to any more."""
        self.program = program
        self._journal = journal
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._came: deque[SessionMessage | Exception] = deque()
        self._part = bytearray()
        self._paused = False
        self._waiter: asyncio.Future[None] | None = None
        self._ended = False
        self._unsent = bytearray()
        self._sent: asyncio.Event | None = None
        self.gone = asyncio.Event()
        # Calls that we make ourselves, beside the SDK: `direct.py`.
        self.direct = Direct(self)
        self._logged = Pace(200, 20)
        self.lost = False
        # Whether it had gone by itself when it was to be ended.
        self.left = False
        self._watch(program.output, self._take_output)
        self._watch(program.error, self._take_error)
        self._watch(program.status, self._take_status)

    def _watch(self, file: int, take: Callable[[], bool]) -> None:
        def ready() -> None:
            if not take():
                self._loop.remove_reader(file)

        self._loop.add_reader(file, ready)

    # -- what comes ---------------------------------------------------------------------------

    async def receive(self) -> SessionMessage | Exception:
        """The next message; raises `EndOfStream` when none will come."""
        while not self._came:
            if self._ended:
                raise anyio.EndOfStream
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        message = self._came.popleft()
        if self._paused and not self._came and self.program.output >= 0:
            self._paused = False
            self._watch(self.program.output, self._take_output)
        return message

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    def _take_output(self) -> bool:
        try:
            data = os.read(self.program.output, _PIECE)
        except BlockingIOError:
            return True
        except OSError:
            data = b""
        if not data:
            self._end()
            return False
        *lines, rest = data.split(b"\n")
        for line in lines:
            if self._part:
                self._part += line
                line = bytes(self._part)
                self._part.clear()
            self._take_line(line)
        self._part += rest
        if len(self._part) > MOST_BYTES:
            self._journal.note(f"a message grew past {MOST_BYTES >> 20} MiB: connection ended")
            self._part.clear()
            self._end()
            return False
        # One that talks faster than it is listened to has to wait.
        self._paused = len(self._came) > _WAITING_MESSAGES
        return not self._paused

    def _take_line(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            said = read(line)
        except ValueError:
            said = None
        # Several at once, as one of the older protocols has it, are as good as one by one.
        several = said if isinstance(said, list) else [said]
        taken = [self._takes(one) for one in several[:MOST_AT_ONCE]]
        if not all(taken) or len(several) > MOST_AT_ONCE:
            # Programs print to stdout what they should not; it is no reason to stop.
            self._journal.feed(b"(on stdout) " + line[:300] + b"\n")

    def _takes(self, said: Any) -> bool:
        """Take in a message; whether it is one."""
        if not isinstance(said, dict):
            return False
        if self.direct.takes(said) or self._takes_log(said):
            return True
        try:
            self._came.append(SessionMessage(_message(said, by_name=False)))
        except ValueError:
            return False
        self._wake()
        return True

    def _takes_log(self, said: dict[str, Any]) -> bool:
        """Keep what the server logs; one that never stops is not read to the end."""
        if said.get("method") != "notifications/message":
            return False
        params = said.get("params")
        if isinstance(params, dict) and self._logged.allows():
            self._journal.said(f"[{params.get('level')}] {params.get('data')}")
        return True

    def _lose(self) -> None:
        if not self.lost:
            self.lost = True
            self._on_lost()

    def _end(self) -> None:
        self._ended = True
        self._lose()
        self.direct.end()
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _take_error(self) -> bool:
        try:
            data = os.read(self.program.error, 65_536)
        except BlockingIOError:
            return True
        except OSError:
            data = b""
        self._journal.feed(data)
        return bool(data)

    def _take_status(self) -> bool:
        more = self.program.hear()
        if self.program.exit is not None or self.program.failure:
            # Output that is still in the pipe is read first: the end comes behind it.
            self._lose()
            if self.program.failure:
                self._end()
        if self.program.gone:
            self._lose()
            self.gone.set()
        return more

    # -- what goes ----------------------------------------------------------------------------

    async def send(self, item: SessionMessage, /) -> None:
        """Write a message; waits only while the server reads nothing."""
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        self.write(text.encode("utf-8", "replace") + b"\n")
        while len(self._unsent) > _WAITING_BYTES:
            self._sent = self._sent or asyncio.Event()
            self._sent.clear()
            await self._sent.wait()
            if self.program.input < 0:
                raise anyio.BrokenResourceError

    def write(self, data: bytes) -> None:
        """Have bytes written, now or as soon as the server reads; raises when it is gone."""
        if self.program.input < 0 or self._ended:
            raise anyio.BrokenResourceError
        if self._unsent:
            if len(self._unsent) > MOST_BYTES:
                # It reads nothing any more, and will not.
                self._stop_writing()
                raise anyio.BrokenResourceError
            self._unsent += data
            return
        done = self._written(data)
        if done < len(data):
            self._unsent += data[done:]
            self._loop.add_writer(self.program.input, self._flush)

    def _written(self, data: bytes | bytearray) -> int:
        try:
            return os.write(self.program.input, data)
        except BlockingIOError:
            return 0
        except OSError:
            self._stop_writing()
            raise anyio.BrokenResourceError from None

    def _flush(self) -> None:
        try:
            del self._unsent[: self._written(self._unsent)]
        except anyio.BrokenResourceError:
            self._unsent.clear()
        if not self._unsent and self.program.input >= 0:
            self._loop.remove_writer(self.program.input)
        if self._sent is not None and len(self._unsent) <= _WAITING_BYTES:
            self._sent.set()

    def _stop_writing(self) -> None:
        if self.program.input >= 0:
            self._loop.remove_writer(self.program.input)
            self.program.close_input()
        if self._sent is not None:
            # Whoever waits to write waits in vain.
            self._sent.set()
        self._lose()

    # -- the end ------------------------------------------------------------------------------

    async def aclose(self) -> None:
        """Called for each direction by the SDK; `finish` does the work."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return

    async def finish(self) -> None:
        """End the server and wait until nothing of it is left."""
        self.left = self.lost
        self._stop_writing()
        try:
            # What its first process left behind has nobody to listen to any more.
            over = self.program.exit is not None
            async with asyncio.timeout(0.05 if over else ENDING_SECONDS):
                await self.gone.wait()
        except TimeoutError:
            self.program.stop()
            try:
                async with asyncio.timeout(10.0):
                    await self.gone.wait()
            except TimeoutError:
                self._journal.note("it could not be ended")
        finally:
            self.program.stop()
            self._end()
            for file in (self.program.output, self.program.error, self.program.status):
                self._loop.remove_reader(file)
            self.program.close()


@asynccontextmanager
async def pipes(
    launch: Launch, name: str, journal: Journal, on_lost: Callable[[], None]
) -> AsyncIterator[Pipes]:
    """A server's program while it is wanted; gone with all it started when this is left."""
    found = Pipes(Program(launch, name), journal, on_lost)
    try:
        yield found
    finally:
        # To its end, whoever cancels us: a process must not outlive its connection.
        with anyio.CancelScope(shield=True):
            await found.finish()
