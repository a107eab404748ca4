"""Framed channel: one open remote shell, whose messages are marked off from the output of commands.

A message is `\\x1e MARK < message \\x1e MARK >`, with a random mark for each channel.
"""

from __future__ import annotations

import os
import select
import time
from typing import TYPE_CHECKING

from hermes.environments.command import inherited_variables
from hermes.environments.host.process import ERR, OUT, Poller, Process

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
