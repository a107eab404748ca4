"""Connections: the transport to a remote, its open shells, messages marked off from output."""

from __future__ import annotations

import os
import select
import threading
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import hermes.environments.remote_shell.scripts as scripts
from hermes.environments.command import BackendError, inherited_variables
from hermes.environments.host.guardian_client import guardian
from hermes.environments.host.process import ERR, OUT, Poller, Process
from hermes.environments.shell_state import read_exports

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Literal

    from hermes.environments.command import Isolation
    from hermes.environments.host.guardian_client import GuardianClient


# Variables for the programs that connect (ssh, docker, …), besides the usual ones.
_PASS_ENV = ("SSH_AUTH_SOCK", "KRB5CCNAME", "XDG_RUNTIME_DIR", "APPTAINER_CACHEDIR")
SEND_SECONDS = 60.0


class BrokenChannelError(Exception):
    """The remote shell, or the connection to it, is gone."""


class FrameSplitter:
    """Separates a byte stream into output and messages."""

    def __init__(
        self,
        mark: str,
        *,
        on_output: Callable[[bytes], None],
        on_message: Callable[[bytes], None],
    ) -> None:
        self._open = f"\x1e{mark}<".encode()
        self._close = f"\x1e{mark}>".encode()
        self._on_output = on_output
        self._on_message = on_message
        self._pending = b""
        self._inside = False

    def feed(self, piece: bytes) -> None:
        """Process the next piece; a possible beginning of a mark waits for the next one."""
        data = self._pending + piece if self._pending else piece
        self._pending = b""
        while data:
            mark = self._close if self._inside else self._open
            at = data.find(mark)
            if at < 0:
                break
            if self._inside:
                self._on_message(data[:at])
            elif at:
                self._on_output(data[:at])
            self._inside = not self._inside
            data = data[at + len(mark) :]
        if self._inside:
            self._pending = data
            return
        size = len(data) - _partial_mark(data, self._open)
        if size:
            self._on_output(data[:size])
        self._pending = data[size:]


def _partial_mark(data: bytes, mark: bytes) -> int:
    """The number of bytes at the end that may be the beginning of a mark."""
    at = data.find(b"\x1e", max(0, len(data) - len(mark) + 1))
    while at >= 0:
        if mark.startswith(data[at:]):
            return len(data) - at
        at = data.find(b"\x1e", at + 1)
    return 0


class Channel:
    """An open remote shell, held by a local process. Set `on_output` and `on_message` to read."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        task: str,
        mark: str,
        number: int = 0,
        guardian: GuardianClient,
    ) -> None:
        self.number = number
        self.mark = mark
        self.on_output: Callable[[int, bytes], None] = _ignore_output
        self.on_message: Callable[[bytes], None] = _ignore_message
        # Standard error before the first command, for the error message.
        self.errors = b""
        self._splitters = {
            stream: FrameSplitter(
                mark,
                on_output=lambda data, stream=stream: self._output(stream, data),  # type: ignore[misc]
                on_message=lambda message: self.on_message(message),
            )
            for stream in (OUT, ERR)
        }
        self.process = Process(
            lambda stream, data: self._splitters[stream].feed(bytes(data)), guardian
        )
        self.poller = Poller()
        self.input = start(self.process, argv, task=task, poller=self.poller)

    def _output(self, stream: int, data: bytes) -> None:
        if stream == ERR and self.on_output is _ignore_output:
            self.errors = (self.errors + data)[-8000:]
        self.on_output(stream, data)

    @property
    def gone(self) -> bool:
        """Whether the local process has ended."""
        return self.process.gone or self.process.exit_code is not None

    def read(self, seconds: float) -> bool:
        """Wait for data and process it; whether there was any."""
        return self.process.read_once(self.poller, seconds)

    def usable(self) -> bool:
        """Whether the shell is still there, after all buffered data was processed."""
        while not self.gone and self.read(0):
            pass
        return not self.gone and len(self.process.streams) == 2

    def send(self, text: str) -> None:
        """Send shell text to execute."""
        view = memoryview(text.encode("utf-8", "surrogateescape"))
        deadline = time.monotonic() + SEND_SECONDS
        while view:
            try:
                view = view[os.write(self.input, view) :]
            except BlockingIOError:
                poll = select.poll()
                poll.register(self.input, select.POLLOUT)
                left = deadline - time.monotonic()
                if left <= 0 or not poll.poll(left * 1000):
                    raise BrokenChannelError from None
            except OSError:
                raise BrokenChannelError from None

    def close_input(self) -> None:
        """Close the shell's stdin."""
        file, self.input = self.input, -1
        if file >= 0:
            os.close(file)

    def release(self) -> Process:
        """Close the shell's stdin; its process belongs to the caller from now on."""
        self.close_input()
        self.poller.close()
        return self.process

    def close(self) -> None:
        """End the local process and the remote shell."""
        self.close_input()
        if not self.process.gone:
            self.process.guardian.stop(self.process.id, grace=0.2)
        self.process.close()
        self.poller.close()


def start(
    process: Process,
    argv: Sequence[str],
    *,
    task: str,
    poller: Poller | None = None,
    terminal: bool = False,
) -> int:
    """Start a program that connects to a remote; the write end of its stdin.

    On a `terminal` its stdin is the terminal, and -1 is returned.
    """
    theirs, ours = (-1, -1) if terminal else os.pipe()
    env = inherited_variables(_PASS_ENV)
    try:
        process.start(
            [os.fsencode(word) for word in argv],
            task=task,
            env={os.fsencode(name): os.fsencode(value) for name, value in env.items()},
            cwd="/",
            files={} if terminal else {0: theirs},
            pty=terminal,
            poller=poller,
        )
    except BaseException:
        if ours >= 0:
            os.close(ours)
        raise
    finally:
        if theirs >= 0:
            os.close(theirs)
    if ours >= 0:
        os.set_blocking(ours, False)
    return ours


def run_with_input(process: Process, argv: Sequence[str], data: bytes, *, task: str) -> None:
    """Run a program to its end, with `data` as its stdin."""
    poller = Poller()
    poll = select.poll()
    stdin = start(process, argv, task=task, poller=poller)
    poll.register(stdin, select.POLLOUT)
    try:
        view = memoryview(data)
        while view and not process.gone and process.exit_code is None:
            if poll.poll(500):
                try:
                    view = view[os.write(stdin, view[: 1 << 20]) :]
                except OSError:
                    break
            process.read_once(poller, 0)
        os.close(stdin)
        stdin = -1
        process.wait_until(poller, time.monotonic() + SEND_SECONDS)
    finally:
        if stdin >= 0:
            os.close(stdin)
        if not process.gone:
            process.guardian.stop(process.id)
        process.close()
        poller.close()


def _ignore_output(stream: int, data: bytes) -> None:
    """Output before the first command: greetings of the login."""


def _ignore_message(message: bytes) -> None:
    """A message without a request."""


# Limit on concurrent commands of one task; others wait. sshd allows ten sessions by default.
MAX_WORKERS = 8
ASK_SECONDS = 10.0
WORKER_SECONDS = 300.0


class Transport(ABC):
    """The way to a shell on one remote: a host, a container."""

    # For people: the host, the container.
    label = ""
    # Timeout of the first shell.
    start_seconds = 30.0
    # Who allocates the terminal of a command: the program of `argv` there (`ssh -t`), the local
    # machine, whose terminal it passes on, or a script there.
    terminal: Literal["transport", "local", "remote"] = "transport"
    # Whether the remote outlives the connection.
    persistent = False
    # Whether the guard there notices a lost connection, and ends all processes.
    ends_with_connection = True
    # Whether a process there can outlive the task.
    detachable = True
    # Starts the programs of `argv`.
    guardian: GuardianClient = guardian

    @abstractmethod
    def prepare(self, task: str) -> None:
        """Get ready for the first shell; raises `BackendError`.

        Processes started for that belong to `task`, and end with it.
        """

    @abstractmethod
    def argv(self, words: Sequence[str], *, tty: bool = False, first: bool = False) -> list[str]:
        """The local program that runs a program there; with `first`, for the guard.

        The words contain no character with a meaning to a shell.
        """

    @abstractmethod
    def explain(self, errors: str, code: int | None) -> BackendError:
        """The error for a shell that did not start, from the program's stderr and exit code."""

    @abstractmethod
    def info(self) -> Isolation:
        """The isolation that is enforced there."""

    @abstractmethod
    def close(self) -> None:
        """Release everything that `prepare` made."""


class RemoteInfo:
    """Facts about the remote system, from the guard's first message."""

    __slots__ = ("bash", "cwd", "env", "folder", "home", "setsid", "shell")

    def __init__(self, message: bytes) -> None:
        fields = message.split(b"\0", 5)
        self.folder, self.shell, self.setsid, self.home, self.cwd = map(os.fsdecode, fields[:5])
        self.bash = self.shell.endswith("bash")
        self.env = read_exports(fields[5].removesuffix(b"\0"))


class Connection:
    """The shells of one task on one remote. `open` comes first."""

    def __init__(self, transport: Transport, *, task: str) -> None:
        self.transport = transport
        self.task = task
        self._guard: Channel | None = None
        self._idle: list[Channel] = []
        self._slots = threading.BoundedSemaphore(MAX_WORKERS)
        self._lock = threading.RLock()
        self._numbers = 0
        self.token = ""
        self._info: RemoteInfo | None = None

    def open(self) -> bool:
        """Connect if need be; whether an earlier connection was lost."""
        with self._lock:
            guard = self._guard
            if guard is not None and guard.usable():
                return False
            if guard is not None:
                self.drop()
            self._connect()
            return guard is not None

    def _connect(self) -> None:
        self.transport.prepare(self.task)
        self.token = os.urandom(8).hex()
        guard = self._channel(first=True)
        try:
            message = self._handshake(guard, scripts.guard(guard.mark, self.token))
        except BaseException:
            guard.close()
            raise
        info = RemoteInfo(message)
        if not info.folder:
            guard.close()
            raise BackendError(
                f"no folder for working files can be made on {self.transport.label}",
                hint="Is /tmp writable there, and not full?",
            )
        self._guard, self._info = guard, info

    def _channel(self, *, first: bool = False, number: int = 0) -> Channel:
        argv = self.transport.argv(["/bin/sh"], first=first)
        mark = os.urandom(8).hex()
        return Channel(
            argv, task=self.task, mark=mark, number=number, guardian=self.transport.guardian
        )

    def _handshake(self, channel: Channel, text: str) -> bytes:
        """Send a shell its first text, and wait for its message."""
        messages: list[bytes] = []
        channel.on_message = messages.append
        deadline = time.monotonic() + self.transport.start_seconds
        try:
            channel.send(text)
        except BrokenChannelError:
            # Its error message follows.
            deadline = time.monotonic() + 2.0
        while not messages and not channel.gone and (left := deadline - time.monotonic()) > 0:
            channel.read(left)
        if messages:
            return messages[0]
        channel.process.drain()
        failure = channel.process.failure
        errors = channel.errors.decode("utf-8", "replace")
        if failure is not None:
            errors = f"{failure.filename}: {failure.strerror}"
        raise self.transport.explain(errors, channel.process.exit_code)

    @property
    def info(self) -> RemoteInfo:
        """Facts about the remote, once it is open."""
        assert self._info is not None
        return self._info

    def next_number(self) -> int:
        """A unique number for a worker or a command."""
        with self._lock:
            self._numbers += 1
            return self._numbers

    # -- the guard ----------------------------------------------------------------------------

    def ask(self, text: str, *, seconds: float = ASK_SECONDS) -> bytes:
        """The output of some shell text that the guard executes."""
        with self._lock:
            if self._guard is None:
                raise BrokenChannelError
            guard = self._guard
            messages: list[bytes] = []
            guard.on_message = messages.append
            guard.send(f"{{ {text}\n}} </dev/null | tell\n")
            deadline = time.monotonic() + seconds
            while not messages:
                left = deadline - time.monotonic()
                if guard.gone or left <= 0:
                    raise BrokenChannelError
                guard.read(left)
            return messages[0]

    def stop(self, worker: int, command: int) -> None:
        """Begin to stop all processes of a command."""
        with self._lock:
            if self._guard is not None:
                try:
                    self._guard.send(f"stop {worker} {command} </dev/null &\n")
                except BrokenChannelError:
                    # Then the guard has seen the end of its stdin, and stops everything.
                    return

    def members(self, command: int) -> list[int]:
        """The live processes of a command, by their mark."""
        return self._pids(f"marked {command}.")

    def group(self, worker: int, command: int) -> list[int]:
        """The live processes of a command's process group."""
        return self._pids(f"grouped {worker} {command}")

    def _pids(self, text: str) -> list[int]:
        try:
            return [int(word) for word in self.ask(text).split()]
        except BrokenChannelError:
            return []

    def all_sleep(self, command: int) -> bool:
        """Whether all processes of a command sleep."""
        try:
            states = self.ask(
                f"for q in $(marked {command}.); do sed 's/.*) \\(.\\).*/\\1/' /proc/$q/stat; done"
            ).split()
        except BrokenChannelError:
            return False
        return bool(states) and not set(states) - {b"S", b"Z", b"T"}

    # -- workers ------------------------------------------------------------------------------

    def worker(self) -> Channel:
        """An idle shell for a command; `give_back` it afterwards."""
        if not self._slots.acquire(timeout=WORKER_SECONDS):
            raise BackendError(
                f"{MAX_WORKERS} commands have been running on {self.transport.label} for long",
                hint="Wait for one to end, or start long ones in the background.",
            )
        try:
            while True:
                with self._lock:
                    if not self._idle:
                        break
                    channel = self._idle.pop()
                if channel.usable():
                    return channel
                channel.close()
            return self._new_worker()
        except BaseException:
            self._slots.release()
            raise

    def _new_worker(self) -> Channel:
        number = self.next_number()
        channel = self._channel(number=number)
        try:
            text = scripts.worker(channel.mark, self.token, self.info.folder, number)
            self._handshake(channel, text)
        except BaseException:
            channel.close()
            raise
        return channel

    def give_back(self, channel: Channel | None, *, reuse: bool) -> None:
        """Return a worker for reuse, or close it; None when it was kept for something else."""
        self._slots.release()
        if channel is None:
            return
        if reuse:
            with self._lock:
                self._idle.append(channel)
        else:
            channel.close()

    def _take_channels(self) -> tuple[Channel | None, list[Channel]]:
        with self._lock:
            guard, self._guard = self._guard, None
            idle, self._idle = self._idle, []
        return guard, idle

    def drop(self) -> None:
        """Close all channels at once; the guard ends the processes it can still reach."""
        guard, idle = self._take_channels()
        for channel in idle:
            channel.close()
        if guard is not None:
            guard.close()

    def close(self) -> None:
        """End all processes there, and wait for that."""
        guard, idle = self._take_channels()
        for channel in idle:
            channel.close()
        if guard is not None:
            guard.close_input()
            deadline = time.monotonic() + 5.0
            while not guard.gone and (left := deadline - time.monotonic()) > 0:
                guard.read(left)
            guard.close()
        self.transport.guardian.stop_task(self.task)
        self.transport.close()
