"""`Process`: one command under the guardian, with its pipes and status; `Poller`, `run_to_end`."""

from __future__ import annotations

import os
import select
import sys
import time
from typing import TYPE_CHECKING

from hermes.environments.command import BackendError
from hermes.environments.host.guardian_client import guardian

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from hermes.environments.host.guardian_client import GuardianClient

_PIPE_BYTES = 1 << 16
_LARGE_BYTES = 1 << 20
OUT, ERR = 1, 2
RUN_SECONDS = 60.0
_PATH = b"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Poller:
    """Waits for readable descriptors; with epoll (Linux) in the order in which they got data."""

    def __init__(self) -> None:
        self._epoll = select.epoll() if hasattr(select, "epoll") else None
        self._registered: set[int] = set()

    def wait(self, files: Sequence[int], seconds: float) -> list[int]:
        """The readable ones, after at most so many seconds."""
        seconds = max(0.0, seconds)
        if self._epoll is None:
            poll = select.poll()
            for file in files:
                poll.register(file, select.POLLIN)
            return [file for file, _ in poll.poll(seconds * 1000)]
        # epoll drops a closed descriptor by itself.
        self._registered.intersection_update(files)
        self.add(files)
        return [file for file, _ in self._epoll.poll(seconds)]

    def add(self, files: Iterable[int]) -> None:
        """Register descriptors before the first wait, so that their order is known."""
        if self._epoll is None:
            return
        for file in files:
            if file not in self._registered:
                self._epoll.register(file, select.EPOLLIN)
                self._registered.add(file)

    def close(self) -> None:
        if self._epoll is not None:
            self._epoll.close()


class Process:
    """A command that the guardian started. `read` takes in the data of one of its descriptors."""

    __slots__ = (
        "_buffer",
        "cpu_seconds",
        "exit_code",
        "failure",
        "gone",
        "guardian",
        "id",
        "left",
        "lost",
        "master",
        "on_output",
        "ordered",
        "pid",
        "slave",
        "state",
        "state_file",
        "status",
        "status_text",
        "streams",
    )

    def __init__(
        self,
        on_output: Callable[[int, memoryview], None],
        guardian: GuardianClient = guardian,
        *,
        ordered: bool = False,
    ) -> None:
        self.on_output = on_output
        self.guardian = guardian
        self.id = 0
        self.pid = 0
        # Descriptors of output, each with its stream (OUT or ERR).
        self.streams: dict[int, int] = {}
        # Whether output is known to be read in the order of printing.
        self.ordered = ordered
        self.status = -1
        self.status_text = b""
        self.state_file = -1
        self.state = b""
        self.exit_code: int | None = None
        self.cpu_seconds = 0.0
        # Processes that it left running.
        self.left: tuple[int, ...] = ()
        # No process is left; `lost`: the guardian itself is gone, and the outcome is not known.
        self.gone = False
        self.lost = False
        self.failure: OSError | None = None
        self.master = self.slave = -1
        self._buffer: bytearray | None = None

    def start(
        self,
        argv: Sequence[bytes],
        *,
        program: bytes = b"",
        task: str,
        env: Mapping[bytes, bytes],
        cwd: str,
        files: Mapping[int, int],
        state_number: int | None = None,
        pty: bool = False,
        announce: bool = False,
        poller: Poller | None = None,
    ) -> None:
        """Start `program`, by default `argv[0]`.

        `files` maps descriptor numbers of the command to descriptors here. Shell state is read from
        descriptor `state_number`. `poller` registers the output pipes before they have data.
        """
        theirs: dict[int, int] = dict(files)
        pipe_ends: list[int] = []
        tty = None
        try:
            if pty:
                self.master, self.slave = _terminal()
                self.streams[self.master] = OUT
                tty = os.ttyname(self.slave)
            else:
                for stream in (OUT, ERR):
                    ours, theirs[stream] = os.pipe()
                    pipe_ends.append(theirs[stream])
                    os.set_blocking(ours, False)
                    self.streams[ours] = stream
            if state_number is not None:
                self.state_file, theirs[state_number] = os.pipe()
                pipe_ends.append(theirs[state_number])
                os.set_blocking(self.state_file, False)
                _enlarge(self.state_file)
            if poller is not None:
                poller.add(self.streams)
            self.id, self.status = self.guardian.run(
                argv,
                program=program,
                task=task,
                env=env,
                cwd=cwd,
                files=theirs,
                tty=tty,
                announce=announce or pty,
            )
            os.set_blocking(self.status, False)
        except BaseException:
            self.close()
            raise
        finally:
            for file in pipe_ends:
                os.close(file)

    def descriptors(self) -> list[int]:
        """The descriptors to poll: output and status."""
        return [*self.streams, self.status] if self.status >= 0 else list(self.streams)

    def read(self, file: int) -> bool:
        """Read once from a descriptor; whether it may have more."""
        if file in self.streams:
            return self._read_output(file)
        try:
            data = os.read(file, _PIPE_BYTES)
        except BlockingIOError:
            return False
        if file == self.state_file:
            self.state += data
            if not data:
                os.close(self.state_file)
                self.state_file = -1
            return bool(data)
        if not data:
            os.close(self.status)
            self.status = -1
            if not self.gone and self.failure is None:
                self.lost = self.gone = True
            return False
        self.status_text += data
        *lines, self.status_text = self.status_text.split(b"\n")
        for line in lines:
            self._handle_status(line.decode("utf-8", "replace").split(" "))
        return True

    def read_once(self, poller: Poller, seconds: float) -> bool:
        """Wait for data and read it; whether there was any."""
        self.guardian.expect_output(self.id, seconds)
        ready = poller.wait(self.descriptors(), seconds)
        for file in ready:
            self.read(file)
        return bool(ready)

    def wait_until(self, poller: Poller, deadline: float) -> bool:
        """Read until it has exited; False at the deadline (monotonic clock)."""
        while self.exit_code is None and not self.gone:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self.read_once(poller, left)
        return True

    def drain(self) -> None:
        """Read all data that is there already."""
        for file in list(self.streams):
            while file in self.streams and self.read(file):
                pass
        self.read_state()

    def read_state(self) -> None:
        """Read the shell state written so far; the shell blocks while the pipe is full."""
        while self.state_file >= 0 and self.read(self.state_file):
            pass

    def close(self) -> None:
        """Close all descriptors."""
        for file in [*self.streams, self.status, self.state_file, self.slave]:
            if file >= 0:
                os.close(file)
        self.streams = {}
        self.status = self.state_file = self.slave = self.master = -1

    def _handle_status(self, words: list[str]) -> None:
        event = words[0]
        if event == "started":
            self.pid = int(words[1])
            if self.slave >= 0:
                os.close(self.slave)
                self.slave = -1
        elif event == "failed":
            number = int(words[1])
            self.failure = OSError(number, os.strerror(number), " ".join(words[2:]))
            self.gone = True
        elif event == "exited":
            self.pid = int(words[1])
            code = os.waitstatus_to_exitcode(int(words[2]))
            self.exit_code = code if code >= 0 else 128 - code
            self.cpu_seconds = float(words[3])
            if len(words) > 4:
                self.left = tuple(int(pid) for pid in words[4].split(","))
        elif event == "gone":
            self.gone = True
            self.left = ()

    def _read_output(self, file: int) -> bool:
        size = _PIPE_BYTES if self._buffer is None else _LARGE_BYTES
        if self.ordered and len(self.streams) > 1:
            size = min(size, self._bytes_in_order(file))
        try:
            if self._buffer is None:
                data = memoryview(os.read(file, size))
            else:
                view = memoryview(self._buffer)[:size]
                data = view[: os.readv(file, [view])]
        except BlockingIOError:
            return False
        except OSError:
            # EIO: the other end of a terminal is closed.
            data = memoryview(b"")
        if not data:
            os.close(file)
            del self.streams[file]
            if file == self.master:
                self.master = -1
            return False
        self.on_output(self.streams[file], data)
        if len(data) == _PIPE_BYTES and self._buffer is None:
            # Much output: larger reads from now on.
            self._buffer = bytearray(_LARGE_BYTES)
            _enlarge(file)
        return True

    def _bytes_in_order(self, file: int) -> int:
        """The bytes of a pipe that are older than all data of the other streams."""
        mine = buffered(file)
        # In this order: data that arrives there after this check is newer than ours.
        if mine and not any(buffered(other) for other in self.streams if other != file):
            return mine
        self.ordered = not mine
        return _LARGE_BYTES


def run_to_end(
    guardian: GuardianClient,
    argv: Sequence[bytes],
    *,
    data: bytes = b"",
    env: Mapping[bytes, bytes] | None = None,
    seconds: float = RUN_SECONDS,
) -> tuple[int, bytes, bytes]:
    """Run a program with `data` as stdin; its exit code, stdout and stderr."""
    output = {OUT: bytearray(), ERR: bytearray()}
    process = Process(lambda stream, piece: output[stream].extend(piece), guardian)
    poller = Poller()
    stdin = stdin_file(data)
    try:
        process.start(
            argv,
            task=f"answers/{os.getpid()}",
            env={b"PATH": _PATH, b"LC_ALL": b"C", **(env or {})},
            cwd="/",
            files={0: stdin},
            poller=poller,
        )
        if not process.wait_until(poller, time.monotonic() + seconds):
            guardian.stop(process.id)
            raise BackendError(f"no answer within {seconds:g} s")
        process.drain()
        if process.failure is not None:
            raise BackendError(f"{os.fsdecode(argv[0])} can't be run: {process.failure.strerror}")
        if process.exit_code is None:
            raise BackendError("the guardian process was killed")
        return process.exit_code, bytes(output[OUT]), bytes(output[ERR])
    finally:
        os.close(stdin)
        poller.close()
        process.close()


def stdin_file(data: bytes) -> int:
    """An anonymous file with `data`, positioned at its start; the caller closes it."""
    if hasattr(os, "memfd_create"):
        handle = os.memfd_create("stdin")
    else:
        import tempfile

        handle, path = tempfile.mkstemp()
        os.unlink(path)
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
    os.lseek(handle, 0, os.SEEK_SET)
    return handle


def _terminal() -> tuple[int, int]:
    import termios

    master, slave = os.openpty()
    os.set_blocking(master, False)
    termios.tcsetwinsize(slave, (40, 120))
    return master, slave


def buffered(file: int) -> int:
    """The number of unread bytes in a pipe."""
    import fcntl
    import termios

    packed = fcntl.ioctl(file, termios.FIONREAD, b"\0\0\0\0")
    return int.from_bytes(packed, sys.byteorder)


def _enlarge(file: int) -> None:
    """Enlarge the buffer of a pipe, where the system allows."""
    import fcntl

    try:
        fcntl.fcntl(file, getattr(fcntl, "F_SETPIPE_SZ", 1031), _LARGE_BYTES)
    except OSError:
        # No pipe, or above the user's limit.
        return
