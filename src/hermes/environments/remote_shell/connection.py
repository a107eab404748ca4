"""Connection: all open shells to one remote, its guard shell, and the `Link` protocol of a
transport.
"""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Protocol

import hermes.environments.remote_shell.scripts as scripts
from hermes.environments.command import PlaceError
from hermes.environments.host.guardian_client import guardian
from hermes.environments.remote_shell.framing import BrokenChannelError, Channel
from hermes.environments.shell_state import read_exports

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.environments.command import Isolation


class Link(Protocol):
    """How to get a shell at one place."""

    # For people: the host, the container.
    label: str
    # How long the first shell may take to answer.
    start_seconds: float
    # Whether the program makes a terminal there itself; else it is given one here.
    gives_terminal: bool
    # Whether what is there outlives our connection to it.
    lasts: bool

    def prepare(self, task: str) -> None:
        """Make the place ready before its first shell; raises `PlaceError`.

        What has to be started for that may belong to `task`, and ends with it then.
        """
        ...

    def argv(self, words: Sequence[str], *, tty: bool = False, first: bool = False) -> list[str]:
        """The program to run here that runs another there; with `first`, for the guard.

        The words of that hold nothing that any shell would change.
        """
        ...

    def explain(self, said: str, code: int | None) -> PlaceError:
        """Why no shell could be had, from what the program said."""
        ...

    def info(self) -> Isolation:
        """What is really isolated there."""
        ...

    def close(self) -> None:
        """Let go of what was made ready."""
        ...


# So many commands of one task may run at once; the others wait. Hosts allow ten sessions each.
MOST_WORKERS = 8
ANSWER_SECONDS = 10.0
WAIT_SECONDS = 300.0


class Far:
    """What is known of the other end."""

    __slots__ = ("bash", "cwd", "env", "folder", "home", "setsid", "shell")

    def __init__(self, answer: bytes) -> None:
        words = answer.split(b"\0", 5)
        names = [os.fsdecode(word) for word in words[:5]]
        self.folder, self.shell, self.setsid, self.home, self.cwd = names
        self.bash = self.shell.endswith("bash")
        self.env = read_exports(words[5].removesuffix(b"\0"))


class Connection:
    """The shells of one task at one place. `open` before everything else."""

    def __init__(self, link: Link, *, task: str) -> None:
        self.link = link
        self.task = task
        self._guard: Channel | None = None
        self._idle: list[Channel] = []
        self._slots = threading.BoundedSemaphore(MOST_WORKERS)
        self._lock = threading.RLock()
        self._numbers = 0
        self.token = ""
        # What is known of the other end.
        self.far: Far | None = None

    def open(self) -> bool:
        """See to it that there is a connection; whether an earlier one was lost."""
        with self._lock:
            guard = self._guard
            if guard is not None and guard.usable():
                return False
            if guard is not None:
                self.drop()
            self._connect()
            return guard is not None

    def _connect(self) -> None:
        self.link.prepare(self.task)
        self.token = os.urandom(8).hex()
        mark = os.urandom(8).hex()
        guard = Channel(self.link.argv(["/bin/sh"], first=True), task=self.task, mark=mark)
        try:
            answer = self._greeting(guard, scripts.guard(mark, self.token))
        except BaseException:
            guard.close()
            raise
        far = Far(answer)
        if not far.folder:
            guard.close()
            raise PlaceError(
                f"no folder for working files can be made on {self.link.label}",
                hint="Is /tmp writable there, and not full?",
            )
        self._guard, self.far = guard, far

    def _greeting(self, channel: Channel, text: str) -> bytes:
        """Send a shell its first text, and wait for its answer."""
        heard: list[bytes] = []
        channel.told = heard.append
        until = time.monotonic() + self.link.start_seconds
        try:
            channel.send(text)
        except BrokenChannelError:
            # It will have said why.
            until = time.monotonic() + 2.0
        while not heard and not channel.gone:
            left = until - time.monotonic()
            if left <= 0:
                break
            channel.listen(left)
        if heard:
            return heard[0]
        channel.process.drain()
        failure = channel.process.failure
        said = channel.errors.decode("utf-8", "replace")
        if failure is not None:
            said = f"{failure.filename}: {failure.strerror}"
        raise self.link.explain(said, channel.process.exit_code)

    @property
    def known(self) -> Far:
        """The same, once it is open."""
        assert self.far is not None
        return self.far

    def number(self) -> int:
        """A number that no worker and no command had before."""
        with self._lock:
            self._numbers += 1
            return self._numbers

    # -- the guard ----------------------------------------------------------------------------

    def ask(self, text: str, *, seconds: float = ANSWER_SECONDS) -> bytes:
        """What the guard prints on carrying out some shell text."""
        with self._lock:
            if self._guard is None:
                raise BrokenChannelError
            guard = self._guard
            heard: list[bytes] = []
            guard.told = heard.append
            guard.send(f"{{ {text}\n}} </dev/null | tell\n")
            until = time.monotonic() + seconds
            while not heard:
                left = until - time.monotonic()
                if guard.gone or left <= 0:
                    raise BrokenChannelError
                guard.listen(left)
            return heard[0]

    def stop(self, worker: int, command: int) -> None:
        """Have a command and everything it started ended; it is not waited for."""
        with self._lock:
            if self._guard is not None:
                try:
                    self._guard.send(f"stop {worker} {command} </dev/null &\n")
                except BrokenChannelError:
                    # Then the guard has seen the end of its input, and does so itself.
                    return

    def members(self, command: int) -> list[int]:
        """The processes of a command that are alive."""
        return self._pids(f"marked {command}.")

    def group(self, worker: int, command: int) -> list[int]:
        """The processes of a command's process group that are alive."""
        return self._pids(f"grouped {worker} {command}")

    def _pids(self, text: str) -> list[int]:
        try:
            return [int(word) for word in self.ask(text).split()]
        except BrokenChannelError:
            return []

    def idle(self, command: int) -> bool:
        """Whether all processes of a command sleep."""
        try:
            answer = self.ask(
                f"for q in $(marked {command}.); do sed 's/.*) \\(.\\).*/\\1/' /proc/$q/stat; done"
            )
        except BrokenChannelError:
            return False
        return bool(answer.split()) and not set(answer.split()) - {b"S", b"Z", b"T"}

    # -- workers ------------------------------------------------------------------------------

    def worker(self) -> Channel:
        """A shell that waits for a command; to be given back."""
        if not self._slots.acquire(timeout=WAIT_SECONDS):
            raise PlaceError(
                f"{MOST_WORKERS} commands have been running on {self.link.label} for long",
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
            return self._worker()
        except BaseException:
            self._slots.release()
            raise

    def _worker(self) -> Channel:
        number = self.number()
        mark = os.urandom(8).hex()
        channel = Channel(self.link.argv(["/bin/sh"]), task=self.task, mark=mark, number=number)
        try:
            self._greeting(channel, scripts.worker(mark, self.token, self.known.folder, number))
        except BaseException:
            channel.close()
            raise
        return channel

    def give_back(self, channel: Channel | None, *, again: bool) -> None:
        """Let others have a worker, or let go of it; None when it was kept for something else."""
        self._slots.release()
        if channel is None:
            return
        if again:
            with self._lock:
                self._idle.append(channel)
        else:
            channel.close()

    def drop(self) -> None:
        """Let go of everything; the guard ends what it can still reach."""
        with self._lock:
            idle, self._idle = self._idle, []
            guard, self._guard = self._guard, None
        for channel in idle:
            channel.close()
        if guard is not None:
            guard.close()

    def close(self) -> None:
        """End everything there, and wait until that is done."""
        with self._lock:
            guard, self._guard = self._guard, None
            idle, self._idle = self._idle, []
        for channel in idle:
            channel.close()
        if guard is not None:
            os.close(guard.release_input())
            until = time.monotonic() + 5.0
            while not guard.gone and (left := until - time.monotonic()) > 0:
                guard.listen(left)
            guard.close()
        guardian.stop_task(self.task)
        self.link.close()
