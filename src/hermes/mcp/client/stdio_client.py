"""Stdio transport: JSON-RPC messages over the stdin and stdout of a server process.

In place of the SDK's stdio client: a line that is no message goes to the server log and breaks
nothing, a message has a size limit, and the process belongs to the guardian as every child process
of Hermes does. `StdioDispatcher` correlates requests and responses itself, which costs
less CPU time (`docs/decisions/mcp-stdio-dispatcher.md`); the rest of the protocol is the SDK's.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import os
import re
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

import anyio
import mcp_types
import msgspec
from mcp.shared.message import SessionMessage
from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT

from hermes.mcp.client.sdk_compat import CompatDispatcher
from hermes.mcp.client.server_log import RateLimit
from hermes.mcp.client.server_process import EXIT_SECONDS, ServerProcess
from hermes.mcp.untrusted_text import valid_unicode_value
from mcp import MCPError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from types import TracebackType
    from typing import Any, Self

    from mcp.shared.dispatcher import CallOptions, ProgressFnT
    from mcp_types import RequestId

    from hermes.mcp.client.server_log import ServerLog
    from hermes.mcp.client.server_process import Launch

MAX_BATCH = 1_000  # JSON values in one line
MAX_BYTES = 64 * 1024 * 1024  # one message, and the unsent bytes
_SEND_BUFFER_BYTES = 1 << 20  # unsent bytes before `send` waits
_QUEUE_MESSAGES = 500  # unhandled messages before reading pauses
_READ_BYTES = 1 << 18
_SCAN_BYTES = 300  # at either end of a broken line, for its id
_ID_PREFIX = "hermes-"

_validate = mcp_types.jsonrpc_message_adapter.validate_python
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
# `NaN` and `Infinity` are no JSON; they are kept as text.
_lenient = json.JSONDecoder(parse_constant=str)
_ID = re.compile(rb'"id"\s*:\s*("[A-Za-z0-9_-]{1,60}"|\d{1,18})')
_SPACE = re.compile(r"[ \t\r\n]*")
# The start of a response, as opposed to text that a program prints.
_RESPONSE = re.compile(rb'\s*\{\s*"(?:jsonrpc|id|result|error)"\s*:')
_TOO_DEEP = "it is nested too deeply"


def parse_line(line: bytes) -> Any:
    """The JSON value of a line, or a list of several; raises `ValueError` when there is none.

    Common faults are accepted: a byte order mark, bytes of another charset, unpaired surrogates,
    NaN, several values in a row. A response that can't be parsed becomes an error response with its
    id, so that its caller does not wait for the timeout.
    """
    try:
        return _decode(line)
    except RecursionError:
        return _parse_error(line, _TOO_DEEP)
    except ValueError:
        text = line.decode("utf-8-sig", "replace")
    try:
        return valid_unicode_value(_values(text))
    except RecursionError:
        return _parse_error(line, _TOO_DEEP)
    except ValueError as error:
        if not _RESPONSE.match(line):
            raise
        broken = isinstance(error, json.JSONDecodeError)
        return _parse_error(line, str(error)[:200] if broken else "a number in it is too long")


def _values(text: str) -> Any:
    values: list[Any] = []
    at = _skip_space(text, 0)
    while not values or (at < len(text) and len(values) <= MAX_BATCH):
        value, at = _lenient.raw_decode(text, at)
        values.append(value)
        at = _skip_space(text, at)
    return values if len(values) > 1 else values[0]


def _skip_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _parse_error(line: bytes, reason: str) -> dict[str, Any]:
    ids = {*_ID.findall(line[:_SCAN_BYTES]), *_ID.findall(line[-_SCAN_BYTES:])}
    # The payload may have ids of its own; they don't look like ours.
    ids = {value for value in ids if value[1:].startswith(_ID_PREFIX.encode())} or ids
    if len(ids) != 1 or b'"method"' in line[:_SCAN_BYTES]:
        raise ValueError(reason)
    error = {"code": -32700, "message": f"the answer can't be read: {reason}"}
    return {"jsonrpc": "2.0", "id": json.loads(ids.pop()), "error": error}


class _Response(NamedTuple):
    """A response to a request of `StdioDispatcher`."""

    future: asyncio.Future[dict[str, Any]]
    message: dict[str, Any]

    def deliver(self) -> None:
        if not self.future.done():
            self.future.set_result(self.message)


class Pipes:
    """Both directions of a server's pipes as the SDK's streams, on one event loop."""

    def __init__(
        self, process: ServerProcess, log: ServerLog, on_lost: Callable[[], None] = lambda: None
    ) -> None:
        """Take a process over; `on_lost` is called once when it can't be reached any more."""
        self.process = process
        self.gone = asyncio.Event()
        self.lost = False
        # The process ended by itself, before `finish`.
        self.exited_first = False
        self._log = log
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._queue: deque[SessionMessage | _Response] = deque()
        self._partial_line = bytearray()
        self._paused = False
        self._reader: asyncio.Future[None] | None = None
        self._ended = False
        self._unsent = bytearray()
        self._drained: asyncio.Event | None = None
        self._log_limit = RateLimit(200, 20)
        self.dispatcher = StdioDispatcher(self)
        self._watch(process.output, self._read_output)
        self._watch(process.error, self._read_error)
        self._watch(process.status, self._read_status)

    def _watch(self, file: int, read: Callable[[], bool]) -> None:
        def ready() -> None:
            if not read():
                self._loop.remove_reader(file)

        self._loop.add_reader(file, ready)

    # -- receiving ----------------------------------------------------------------------------

    async def receive(self) -> SessionMessage | Exception:
        """The next message; raises `EndOfStream` at the end."""
        while not self._queue:
            if self._ended:
                raise anyio.EndOfStream
            self._reader = self._loop.create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        item = self._queue.popleft()
        if self._paused and not self._queue and self.process.output >= 0:
            self._paused = False
            self._watch(self.process.output, self._read_output)
        return item  # type: ignore[return-value] # `StdioDispatcher` takes responses out

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    def _read_output(self) -> bool:
        try:
            data = os.read(self.process.output, _READ_BYTES)
        except BlockingIOError:
            return True
        except OSError:
            data = b""
        if not data:
            self._end()
            return False
        *lines, rest = data.split(b"\n")
        for line in lines:
            if self._partial_line:
                self._partial_line += line
                line = bytes(self._partial_line)
                self._partial_line.clear()
            self._take_line(line)
        self._partial_line += rest
        if len(self._partial_line) > MAX_BYTES:
            self._log.note(f"a message grew past {MAX_BYTES >> 20} MiB: connection ended")
            self._partial_line.clear()
            self._end()
            return False
        self._paused = len(self._queue) > _QUEUE_MESSAGES
        return not self._paused

    def _take_line(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            value = parse_line(line)
        except ValueError:
            value = None
        # One of the older protocols has batches: a list of messages in one line.
        messages = value if isinstance(value, list) else [value]
        taken = [self._take(message) for message in messages[:MAX_BATCH]]
        if not all(taken) or len(messages) > MAX_BATCH:
            self._log.feed(b"(on stdout) " + line[:300] + b"\n")

    def _take(self, message: Any) -> bool:
        """Handle or queue a message; False if it is none."""
        if not isinstance(message, dict):
            return False
        if self._take_log(message) or self.dispatcher.take_progress(message):
            return True
        response = self.dispatcher.response_for(message)
        if response is not None:
            if self._queue:
                # Not before the notifications that the server sent first.
                self._put(response)
            else:
                response.deliver()
            return True
        if self.dispatcher.is_late(message):
            return True
        try:
            self._put(SessionMessage(_validate(message, by_name=False)))
        except ValueError:
            return False
        return True

    def _take_log(self, message: dict[str, Any]) -> bool:
        if message.get("method") != "notifications/message":
            return False
        params = message.get("params")
        if isinstance(params, dict) and self._log_limit.allows():
            self._log.message(f"[{params.get('level')}] {params.get('data')}")
        return True

    def _put(self, item: SessionMessage | _Response) -> None:
        self._queue.append(item)
        self._wake()

    def _lose(self) -> None:
        if not self.lost:
            self.lost = True
            self._on_lost()

    def _end(self) -> None:
        self._ended = True
        self._lose()
        for item in self._queue:
            if isinstance(item, _Response):
                item.deliver()
        self.dispatcher.fail_requests()
        self._wake()

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def _read_error(self) -> bool:
        try:
            data = os.read(self.process.error, 65_536)
        except BlockingIOError:
            return True
        except OSError:
            data = b""
        self._log.feed(data)
        return bool(data)

    def _read_status(self) -> bool:
        more = self.process.read_status()
        if self.process.exit is not None or self.process.failure:
            # Output left in the pipe is still read: `_read_output` sees its end.
            self._lose()
            if self.process.failure:
                self._end()
        if self.process.gone:
            self._lose()
            self.gone.set()
        return more

    # -- sending ------------------------------------------------------------------------------

    async def send(self, item: SessionMessage, /) -> None:
        """Write a message; waits while too much is unsent."""
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        self.write(text.encode("utf-8", "replace") + b"\n")
        while len(self._unsent) > _SEND_BUFFER_BYTES:
            self._drained = self._drained or asyncio.Event()
            self._drained.clear()
            await self._drained.wait()
            if self.process.input < 0:
                raise anyio.BrokenResourceError

    def write(self, data: bytes) -> None:
        """Write bytes now, or as soon as the server reads; raises `BrokenResourceError`."""
        if self.process.input < 0 or self._ended:
            raise anyio.BrokenResourceError
        if self._unsent:
            if len(self._unsent) > MAX_BYTES:
                # The server does not read any more.
                self._stop_writing()
                raise anyio.BrokenResourceError
            self._unsent += data
            return
        count = self._write_some(data)
        if count < len(data):
            self._unsent += data[count:]
            self._loop.add_writer(self.process.input, self._flush)

    def _write_some(self, data: bytes | bytearray) -> int:
        try:
            return os.write(self.process.input, data)
        except BlockingIOError:
            return 0
        except OSError:
            self._stop_writing()
            raise anyio.BrokenResourceError from None

    def _flush(self) -> None:
        try:
            del self._unsent[: self._write_some(self._unsent)]
        except anyio.BrokenResourceError:
            self._unsent.clear()
        if not self._unsent and self.process.input >= 0:
            self._loop.remove_writer(self.process.input)
        if self._drained is not None and len(self._unsent) <= _SEND_BUFFER_BYTES:
            self._drained.set()

    def _stop_writing(self) -> None:
        if self.process.input >= 0:
            self._loop.remove_writer(self.process.input)
            self.process.close_input()
        if self._drained is not None:
            self._drained.set()
        self._lose()

    # -- closing ------------------------------------------------------------------------------

    async def aclose(self) -> None:
        """The SDK closes each direction; `finish` ends the process."""

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
        """End the server and wait until its last process is gone."""
        self.exited_first = self.lost
        self._stop_writing()
        try:
            # After the first process exited, its children are not waited for.
            exited = self.process.exit is not None
            # Not `asyncio.timeout`: in Python 3.11.2 it times out with CancelledError in a task
            # that was cancelled before, as this one is when servers are closed.
            await asyncio.wait_for(self.gone.wait(), 0.05 if exited else EXIT_SECONDS)
        except TimeoutError:
            self.process.stop()
            try:
                await asyncio.wait_for(self.gone.wait(), 10.0)
            except TimeoutError:
                self._log.note("it could not be ended")
        finally:
            self.process.stop()
            self._end()
            for file in (self.process.output, self.process.error, self.process.status):
                self._loop.remove_reader(file)
            self.process.close()


class _Request(NamedTuple):
    future: asyncio.Future[dict[str, Any]]
    on_progress: ProgressFnT | None


class StdioDispatcher(CompatDispatcher):
    """The SDK's dispatcher over pipes: a request is one line out and one line back."""

    def __init__(self, pipes: Pipes) -> None:
        super().__init__(pipes, pipes)
        self._pipes = pipes
        self._numbers = itertools.count(1)
        self._requests: dict[RequestId, _Request] = {}
        self._progress: set[asyncio.Future[None]] = set()

    async def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,
        *,
        _related_request_id: RequestId | None = None,
    ) -> dict[str, Any]:
        """Send a request and wait for its result; raises `MCPError`.

        A request that times out or is cancelled is cancelled at the server too.
        """
        options: CallOptions = opts or {}
        request_id = options.get("request_id") or f"{_ID_PREFIX}{next(self._numbers)}"
        on_progress = options.get("on_progress")
        fields = dict(params) if params else {}
        if on_progress is not None:
            fields["_meta"] = {**(fields.get("_meta") or {}), "progressToken": request_id}
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": request_id, "method": method}
        if fields:
            message["params"] = fields
        loop = asyncio.get_running_loop()
        future: asyncio.Future[dict[str, Any]] = loop.create_future()
        self._requests[request_id] = _Request(future, on_progress)
        seconds = options.get("timeout")
        timer = None if seconds is None else loop.call_later(seconds, _expire, future)
        try:
            self._pipes.write(_encode(message) + b"\n")
            response = await future
        except anyio.BrokenResourceError:
            raise MCPError(CONNECTION_CLOSED, "Connection closed") from None
        except asyncio.CancelledError:
            self._cancel(request_id, "cancelled", options)
            raise
        except TimeoutError:
            self._cancel(request_id, "timed out", options)
            raise MCPError(REQUEST_TIMEOUT, f"no answer within {seconds:g} s") from None
        finally:
            if timer is not None:
                timer.cancel()
            self._requests.pop(request_id, None)
        if "error" in response:
            raise _rpc_error(response["error"])
        result = response.get("result")
        if "result" not in response or (not isinstance(result, dict) and method != "tools/call"):
            raise MCPError(0, "it answered with neither a result nor an error")
        if not isinstance(result, dict):
            result = {"content": [] if result is None else result}
        self.repair(method, result)
        return result

    def response_for(self, message: dict[str, Any]) -> _Response | None:
        """A message as the response to an open request; None if it is none."""
        request_id = message.get("id")
        if "method" in message or not isinstance(request_id, (str, int)):
            return None
        request = self._requests.get(request_id)
        return None if request is None else _Response(request.future, message)

    def is_late(self, message: dict[str, Any]) -> bool:
        """Whether a message is the response to a request that was abandoned."""
        request_id = message.get("id")
        return (
            "method" not in message
            and isinstance(request_id, str)
            and request_id.startswith(_ID_PREFIX)
        )

    def take_progress(self, message: dict[str, Any]) -> bool:
        """Pass a progress notification to its request; False if there is none that wants it."""
        params = message.get("params")
        if message.get("method") != "notifications/progress" or not isinstance(params, dict):
            return False
        token = params.get("progressToken")
        request = self._requests.get(token) if isinstance(token, (str, int)) else None
        if request is None or request.on_progress is None:
            return False
        progress, total = _number(params.get("progress")), _number(params.get("total"))
        text = params.get("message")
        if progress is not None:
            text = text if isinstance(text, str) else None
            task = asyncio.ensure_future(request.on_progress(progress, total, text))
            self._progress.add(task)
            task.add_done_callback(self._progress.discard)
        return True

    def fail_requests(self) -> None:
        """Fail every open request: the connection is closed."""
        for request in self._requests.values():
            if not request.future.done():
                request.future.set_exception(MCPError(CONNECTION_CLOSED, "Connection closed"))

    def _fan_out_closed(self) -> None:
        super()._fan_out_closed()
        self.fail_requests()

    async def _dispatch(self, item: Any, *args: Any) -> None:
        if isinstance(item, _Response):
            item.deliver()
        else:
            await super()._dispatch(item, *args)

    def _cancel(self, request_id: RequestId, reason: str, options: CallOptions) -> None:
        if not options.get("cancel_on_abandon", True):
            return
        params = {"requestId": request_id, "reason": reason}
        message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
        try:
            self._pipes.write(_encode(message) + b"\n")
        except anyio.BrokenResourceError:
            return


def _expire(future: asyncio.Future[dict[str, Any]]) -> None:
    if not future.done():
        future.set_exception(TimeoutError())


def _number(value: Any) -> float | None:
    """A finite number; None for anything else."""
    try:
        number = float(value) if type(value) in (int, float) else math.nan
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _rpc_error(error: Any) -> MCPError:
    error = error if isinstance(error, dict) else {"message": str(error)}
    code, message = error.get("code"), error.get("message")
    return MCPError(
        code if type(code) is int else 0,
        message if isinstance(message, str) else str(error)[:500],
        error.get("data"),
    )


@asynccontextmanager
async def open_pipes(
    launch: Launch, name: str, log: ServerLog, on_lost: Callable[[], None]
) -> AsyncIterator[Pipes]:
    """A server process while in use; on leaving it is ended with all that it started."""
    pipes = Pipes(ServerProcess(launch, name), log, on_lost)
    try:
        yield pipes
    finally:
        # Also when cancelled: a process must not outlive its connection.
        with anyio.CancelScope(shield=True):
            await pipes.finish()
