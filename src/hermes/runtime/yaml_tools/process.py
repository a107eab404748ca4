"""Subprocess of a command tool: output limit, timeout, and termination of the whole process
tree.
"""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from hermes.core.errors import ToolError
from hermes.runtime.child_process import KILL, kill_marked, marked

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

MOST_OUTPUT = 1_000_000
# How long a process may take to end after it was asked to, before it is killed.
GRACE_SECONDS = 0.8
_MARK = "HERMES_COMMAND"


class Ended:
    """Exit code and output of a process."""

    __slots__ = ("exit_code", "stderr", "stdout")

    def __init__(self, exit_code: int, stdout: Kept, stderr: Kept) -> None:
        self.exit_code = exit_code
        self.stdout = stdout
        self.stderr = stderr


class Kept:
    """Beginning and end of a stream; the bytes between are counted and dropped."""

    __slots__ = ("_half", "_head", "_tail", "left_out")

    def __init__(self, limit: int = MOST_OUTPUT) -> None:
        self._half = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.left_out = 0

    def feed(self, data: bytes) -> None:
        """Take in the next piece."""
        room = self._half - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        # Cut in large steps: moving the rest to the front each time would cost more.
        if len(self._tail) > 2 * self._half:
            self._cut()

    def _cut(self) -> None:
        over = len(self._tail) - self._half
        if over > 0:
            del self._tail[:over]
            self.left_out += over

    def text(self) -> str:
        """The kept output, with a line in place of omitted bytes."""
        self._cut()
        if not self.left_out:
            return (self._head + self._tail).decode("utf-8", "replace")
        # Whole lines only: half a line could hold half a secret, which nobody would recognise.
        head, head_cut = _trimmed(bytes(self._head), first=True)
        tail, tail_cut = _trimmed(bytes(self._tail), first=False)
        gone = self.left_out + head_cut + tail_cut
        return (
            f"{head.decode('utf-8', 'replace')}\n… {gone} bytes left out …\n"
            f"{tail.decode('utf-8', 'replace')}"
        )


def _trimmed(data: bytes, *, first: bool) -> tuple[bytes, int]:
    at = data.rfind(b"\n") if first else data.find(b"\n")
    distance = len(data) - at if first else at
    if at < 0 or distance > 8192:
        at = len(data) - 1024 if first else 1024
    kept = data[: max(at, 0)] if first else data[at + 1 :]
    return kept, len(data) - len(kept)


# Each process takes a few file handles, of which a program has a thousand or so.
MOST_AT_ONCE = 64
_rooms: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


async def run_process(argv: Sequence[str], *, cwd: str, env: Mapping[str, str]) -> Ended:
    """Run a process to its end, once there is room for it.

    When the wait is cancelled, nothing of it is left.
    """
    async with _rooms.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(MOST_AT_ONCE)):
        return await _run(argv, cwd, env)


async def _run(argv: Sequence[str], cwd: str, env: Mapping[str, str]) -> Ended:
    mark = os.urandom(8).hex()
    starting = asyncio.ensure_future(
        asyncio.get_running_loop().subprocess_exec(
            _Watch,
            *argv,
            cwd=cwd,
            env={**env, _MARK: mark},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    )
    try:
        transport, watch = await asyncio.shield(starting)
    except FileNotFoundError:
        raise ToolError(f"{argv[0]} was not found") from None
    except (OSError, ValueError) as error:
        raise ToolError(f"{argv[0]} can't be started: {error}") from None
    except asyncio.CancelledError:
        # Half-way: it is ended as soon as it is there, whoever still waits by then.
        starting.add_done_callback(lambda started: _end_at_once(started, mark))
        try:
            await asyncio.wait([starting], timeout=GRACE_SECONDS)
        finally:
            _end_at_once(starting, mark)
        raise
    try:
        await asyncio.wait([watch.exited])
        # What the process left running in its group would hold the pipes open.
        _signal(transport.get_pid(), KILL)
        await asyncio.wait([watch.drained], timeout=GRACE_SECONDS)
    except asyncio.CancelledError:
        await _stop(transport, watch, mark)
        raise
    finally:
        if watch.exited.done():
            # Not earlier: closing would reap the process under the nose of asyncio's own watcher.
            # One that has not ended yet lets go of its transport when it has.
            transport.close()
        else:
            _signal(transport.get_pid(), KILL)
    code = transport.get_returncode()
    return Ended(-1 if code is None else code, watch.kept[1], watch.kept[2])


class _Watch(asyncio.SubprocessProtocol):
    """Reads the output of a process and records its end."""

    def __init__(self) -> None:
        self.kept = {1: Kept(), 2: Kept()}
        # Futures, since waiting for one can have a limit without anybody being cancelled.
        loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[None] = loop.create_future()
        self.drained: asyncio.Future[None] = loop.create_future()
        self._open = 2
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        # Everything has ended; nobody else may be left to let go of it.
        if self._transport is not None:
            self._transport.close()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.kept[fd].feed(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002
        self._open -= 1
        if not self._open:
            self.drained.set_result(None)

    def process_exited(self) -> None:
        self.exited.set_result(None)


async def _stop(transport: asyncio.SubprocessTransport, watch: _Watch, mark: str) -> None:
    """Ask everything to end, then end it."""
    pid = transport.get_pid()
    strays = marked(_MARK, mark)
    _signal(pid, signal.SIGTERM)
    for stray in strays:
        _signal_one(stray, signal.SIGTERM)
    try:
        await asyncio.wait([watch.drained], timeout=GRACE_SECONDS)
    finally:
        _signal(pid, KILL)
        # Looked for again: something may have been started in the meantime.
        kill_marked(_MARK, mark)
    await asyncio.wait([watch.exited], timeout=GRACE_SECONDS)


def _end_at_once(started: asyncio.Future[tuple[Any, Any]], mark: str) -> None:
    if started.done() and not started.cancelled() and started.exception() is None:
        _signal(started.result()[0].get_pid(), KILL)
    kill_marked(_MARK, mark)


def _signal(pid: int, number: int) -> None:
    """Signal the whole group that `pid` leads."""
    try:
        if os.name == "posix":
            os.killpg(pid, number)
        else:
            os.kill(pid, signal.SIGTERM)
    except (ProcessLookupError, PermissionError):
        # Gone, or nothing of the group is left but what has already ended.
        return


def _signal_one(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return
