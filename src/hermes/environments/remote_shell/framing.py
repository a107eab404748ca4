"""Framed channel: one open remote shell; messages are marked off from the output of commands."""

from __future__ import annotations

import os
import select
import time
from typing import TYPE_CHECKING

from hermes.environments.env_vars import passed_variables
from hermes.environments.host.guardian_client import guardian
from hermes.environments.host.process import ERR, OUT, Process, Ready

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Splitter:
    """Takes in bytes as they come; passes on what was printed, and each message by itself."""

    def __init__(
        self, mark: str, *, printed: Callable[[bytes], None], told: Callable[[bytes], None]
    ) -> None:
        self._open = f"\x1e{mark}<".encode()
        self._close = f"\x1e{mark}>".encode()
        self._printed = printed
        self._told = told
        self._held = b""
        self._inside = False

    def feed(self, piece: bytes) -> None:
        """Take in the next piece; what may be the beginning of a mark waits for the next one."""
        data = self._held + piece if self._held else piece
        self._held = b""
        while data:
            wanted = self._close if self._inside else self._open
            at = data.find(wanted)
            if at < 0:
                break
            if self._inside:
                self._told(data[:at])
            elif at:
                self._printed(data[:at])
            self._inside = not self._inside
            data = data[at + len(wanted) :]
        if self._inside:
            self._held = data
            return
        kept = len(data) - _unfinished(data, self._open)
        if kept:
            self._printed(data[:kept])
        self._held = data[kept:]


def _unfinished(data: bytes, mark: bytes) -> int:
    """How many bytes at the end may be the beginning of a mark."""
    at = data.find(b"\x1e", max(0, len(data) - len(mark) + 1))
    while at >= 0:
        if mark.startswith(data[at:]):
            return len(data) - at
        at = data.find(b"\x1e", at + 1)
    return 0


# What the programs that reach other places may see of ours, besides the usual.
_PASSED = ("SSH_AUTH_SOCK", "KRB5CCNAME", "XDG_RUNTIME_DIR", "APPTAINER_CACHEDIR")
SEND_SECONDS = 60.0


class BrokenChannelError(Exception):
    """The shell at the other end is gone."""


class Channel:
    """Send it shell text; hear what that prints (`printed`) and what it tells us (`told`)."""

    def __init__(self, argv: Sequence[str], *, task: str, mark: str, number: int = 0) -> None:
        self.number = number
        self.mark = mark
        self.printed: Callable[[int, bytes], None] = _ignored
        self.told: Callable[[bytes], None] = _unheard
        self.errors = b""
        self._splitters = {
            OUT: Splitter(mark, printed=self._out, told=lambda message: self.told(message)),
            ERR: Splitter(mark, printed=self._err, told=lambda message: self.told(message)),
        }
        self.process = Process(self._feed)
        self.ready = Ready()
        self.input = start(self.process, argv, task=task, ready=self.ready)

    def _feed(self, stream: int, data: memoryview) -> None:
        self._splitters[stream].feed(bytes(data))

    def _out(self, data: bytes) -> None:
        self.printed(OUT, data)

    def _err(self, data: bytes) -> None:
        if self.printed is _ignored:
            self.errors = (self.errors + data)[-8000:]
        self.printed(ERR, data)

    @property
    def gone(self) -> bool:
        """Whether the program here has ended, as far as was heard."""
        return self.process.gone or self.process.exit_code is not None

    def listen(self, seconds: float) -> bool:
        """Read once from whatever has something; whether anything had."""
        ready = self.ready.wait(self.process.watched(), seconds)
        for file in ready:
            self.process.take(file)
        return bool(ready)

    def usable(self) -> bool:
        """Whether it still stands, having read all that is there."""
        while not self.gone and self.listen(0):
            pass
        return not self.gone and len(self.process.files) == 2

    def send(self, text: str) -> None:
        """Have it carry out some shell text."""
        view = memoryview(text.encode("utf-8", "surrogateescape"))
        until = time.monotonic() + SEND_SECONDS
        while view:
            try:
                view = view[os.write(self.input, view) :]
            except BlockingIOError:
                poll = select.poll()
                poll.register(self.input, select.POLLOUT)
                left = until - time.monotonic()
                if left <= 0 or not poll.poll(left * 1000):
                    raise BrokenChannelError from None
            except OSError:
                raise BrokenChannelError from None

    def release_input(self) -> int:
        """The file that its input is written to, which is the caller's from now on."""
        file, self.input = self.input, -1
        return file

    def release(self) -> Process:
        """The program that holds it, which is the caller's from now on."""
        if self.input >= 0:
            os.close(self.release_input())
        self.ready.close()
        return self.process

    def close(self) -> None:
        """Let go of it, and of the shell at the other end."""
        if self.input >= 0:
            os.close(self.release_input())
        if not self.process.gone:
            guardian.stop(self.process.id, grace=0.2)
        self.process.close()
        self.ready.close()


def start(
    process: Process,
    argv: Sequence[str],
    *,
    task: str,
    ready: Ready | None = None,
    terminal: bool = False,
) -> int:
    """Start a program that reaches another place; the file that its input is written to.

    On a `terminal` that is the terminal itself, and -1 is returned.
    """
    theirs, ours = (-1, -1) if terminal else os.pipe()
    env = passed_variables(_PASSED)
    try:
        process.start(
            [os.fsencode(word) for word in argv],
            task=task,
            env={os.fsencode(name): os.fsencode(value) for name, value in env.items()},
            cwd="/",
            given={} if terminal else {0: theirs},
            pty=terminal,
            ready=ready,
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


def pour(process: Process, argv: Sequence[str], data: bytes, *, task: str) -> None:
    """Run a program that reads bytes of ours, to its end."""
    ready = Ready()
    poll = select.poll()
    input_file = start(process, argv, task=task, ready=ready)
    poll.register(input_file, select.POLLOUT)
    try:
        view = memoryview(data)
        while view and not process.gone and process.exit_code is None:
            if poll.poll(500):
                try:
                    view = view[os.write(input_file, view[: 1 << 20]) :]
                except OSError:
                    break
            for file in ready.wait(process.watched(), 0):
                process.take(file)
        os.close(input_file)
        input_file = -1
        until = time.monotonic() + SEND_SECONDS
        while not process.gone and process.exit_code is None and time.monotonic() < until:
            for file in ready.wait(process.watched(), until - time.monotonic()):
                process.take(file)
    finally:
        if input_file >= 0:
            os.close(input_file)
        if not process.gone:
            guardian.stop(process.id)
        process.close()
        ready.close()


def _ignored(stream: int, data: bytes) -> None:
    """Greetings, before the first command."""


def _unheard(message: bytes) -> None:
    """Nobody asked."""
