"""Background commands: `Background`, the thread that reads their output, and the set of a task."""

from __future__ import annotations

import os
import select
import threading
import time
from typing import TYPE_CHECKING

import hermes.environments.host.process_listing as process_listing
from hermes.core.context import Cancellation
from hermes.core.errors import HermesError, ToolError
from hermes.environments.command import RollingLog
from hermes.environments.command_wait import blocked_on_input, echo_is_off
from hermes.text.ansi import clean
from hermes.text.encoding import decode_console

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal, TypeVar

    from hermes.environments.command import Spill
    from hermes.environments.host.guardian_client import GuardianClient
    from hermes.environments.host.process import Process


if TYPE_CHECKING:
    State = Literal["running", "exited", "killed", "lost"]
    Kind = TypeVar("Kind", bound="Background")

# The killer of a process when it is not known: the OOM killer, a person.
OUTSIDE = "somebody outside this task (SIGTERM or SIGKILL)"
# Limits of a task: background commands, and processes that one command may leave running.
MAX_BACKGROUND = 32
MAX_LEFT_RUNNING = 100
IDLE_SECONDS = 5.0


class OutputReader:
    """One thread that reads the output and status of all background commands."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._wake = (-1, -1)
        self._new: list[Background] = []

    def add(self, background: Background) -> None:
        """Read from one more, until all its processes are gone."""
        with self._lock:
            self._new.append(background)
            if self._thread is None or not self._thread.is_alive():
                self._wake = os.pipe()
                self._thread = threading.Thread(
                    target=self._read, args=(self._wake,), name="hermes-output", daemon=True
                )
                self._thread.start()
            else:
                os.write(self._wake[1], b".")

    def _read(self, wake: tuple[int, int]) -> None:
        running: list[Background] = []
        while True:
            with self._lock:
                running += self._new
                self._new = []
            poll = select.poll()
            poll.register(wake[0], select.POLLIN)
            owners: dict[int, Background] = {}
            for background in running:
                for file in background.descriptors():
                    poll.register(file, select.POLLIN)
                    owners[file] = background
            ready = poll.poll(None if running else IDLE_SECONDS * 1000)
            for file, _ in ready:
                if file == wake[0]:
                    os.read(file, 4096)
                else:
                    owners[file].read(file)
            running = [background for background in running if not background.settle()]
            with self._lock:
                if not ready and not running and not self._new:
                    self._thread = None
                    os.close(wake[0])
                    os.close(wake[1])
                    return


output_reader = OutputReader()


class Background:
    """A background command with all its processes; its output comes through a local process."""

    # Label of the machine it runs on, if that is not this one.
    remote = ""
    # The guardian, or the connection, ends it.
    dies_with_backend = True

    def __init__(
        self,
        process: Process,
        *,
        name: str,
        command: str,
        cwd: str,
        task: str,
        stdin: int = -1,
        make_spill: Callable[[], Spill] | None = None,
        ansi: bool = False,
    ) -> None:
        self.name = name
        self.command = command
        self.cwd = cwd
        self.task = task
        self.pid = process.pid
        self.started_at = time.time()
        self.ended_at: float | None = None
        self.state: State = "running"
        self.exit_code: int | None = None
        self.killed_by = ""
        self.detached = False
        self.left_behind = False
        self._process = process
        self._stdin = stdin
        self._signalled = False
        self._ansi = ansi
        self._log = RollingLog(make_spill)
        self._notice = ""
        self._local_pids: list[int] = []
        self.last_output_at = self.started_at
        self._changed = threading.Condition()
        process.on_output = self._on_output

    @property
    def takes_input(self) -> bool:
        """Whether its stdin is open."""
        return self._stdin >= 0 or self._process.master >= 0

    @property
    def on_terminal(self) -> bool:
        """Whether a terminal of this machine is its input, with line editing and keys."""
        return self._process.master >= 0

    @property
    def guardian(self) -> GuardianClient:
        """The guardian that started it."""
        return self._process.guardian

    @property
    def id(self) -> int:
        """The guardian's id for it."""
        return self._process.id

    @property
    def log_path(self) -> str | None:
        """The file with the whole log, once it is long."""
        return self._log.path

    def follow(self) -> None:
        """Have its output read from now on, and list it for `hermes ps`."""
        self.last_output_at = time.time()
        # Of the local process, wherever the command itself runs.
        self._local_pids = self._process.guardian.pids(self.task).get(self.id, [])
        # Discard records for earlier processes with the same ids.
        process_listing.take_killer(self._local_pids)
        self._notice = process_listing.publish_notice(
            self.name, self.task, self.command, remote=self.remote, pids=self._local_pids
        )
        output_reader.add(self)

    def seed(self, data: bytes) -> None:
        """Begin the log with output from before it became a background command."""
        self._log.feed(data)

    # -- for the output reader ----------------------------------------------------------------

    def descriptors(self) -> list[int]:
        return self._process.descriptors()

    def read(self, file: int) -> None:
        """Read from one of its descriptors."""
        with self._changed:
            if file in self._process.descriptors():
                self._process.read(file)
                if self._process.pid and not self.pid:
                    self.pid = self._process.pid
                self._changed.notify_all()

    def settle(self) -> bool:
        """Whether all its processes are gone; records the outcome then."""
        process = self._process
        if not process.gone:
            if process.exit_code is not None and not process.left and self.exit_code is None:
                self.exit_code = process.exit_code
            return False
        process_listing.remove_notice(self._notice)
        with self._changed:
            process.drain()
            process.close()
            self._close_stdin()
            self.exit_code = process.exit_code
            self.ended_at = time.time()
            if process.lost:
                if not self.detached:
                    process.guardian.sweep(self.task, self.pid)
                self.state = "lost"
            else:
                self.state = self._outcome()
            self._changed.notify_all()
        return True

    def _outcome(self) -> State:
        killer = self.killed_by or process_listing.take_killer(self._local_pids)
        killed = (self.exit_code or 0) in (128 + 9, 128 + 15)
        if not killer and not killed:
            return "exited"
        self.killed_by = killer or ("process signal" if self._signalled else OUTSIDE)
        return "killed"

    def _on_output(self, stream: int, data: memoryview) -> None:  # noqa: ARG002
        self.last_output_at = time.time()
        self._log.feed(data)

    # -- for callers --------------------------------------------------------------------------

    def log(self, offset: int | None = None, *, limit: int = 20_000) -> tuple[str, int, int]:
        """Text from a byte offset on (the newest for None), its real offset, the total size."""
        with self._changed:
            wanted = max(0, self._log.total - limit) if offset is None else offset
            data, start = self._log.read(wanted, limit)
            return clean(decode_console(data, cut=True), ansi=self._ansi), start, self._log.total

    def recent(self, size: int = 2000) -> str:
        """The end of its output, without escape sequences."""
        with self._changed:
            return clean(decode_console(self._log.tail(size), cut=True))

    def wait(
        self,
        seconds: float,
        *,
        until: Callable[[], bool] | None = None,
        cancellation: Cancellation | None = None,
    ) -> bool:
        """Wait until it has ended, or until the condition holds; whether that happened."""
        deadline = time.monotonic() + seconds
        forget = None
        if cancellation is not None:
            forget = cancellation.on_cancel(self._wake)
        try:
            with self._changed:
                while True:
                    self._process.guardian.expect_output(self.id, 1.0)
                    if until is not None and until():
                        return True
                    if self.state != "running":
                        return until is None
                    left = deadline - time.monotonic()
                    if left <= 0 or (cancellation is not None and cancellation.cancelled):
                        return False
                    self._changed.wait(min(left, 1.0))
        finally:
            if forget is not None:
                forget()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def write(self, data: bytes) -> None:
        """Write to its stdin or terminal."""
        file = self._process.master if self._process.master >= 0 else self._stdin
        if file < 0 or self.state != "running":
            raise ToolError(
                f"{self.name} takes no input",
                hint="Start it with pty=True, or with `process` start, to write to it.",
            )
        view = memoryview(data)
        deadline = time.monotonic() + 5.0
        while view:
            try:
                view = view[os.write(file, view) :]
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise ToolError(f"{self.name} does not read what is written to it") from None
                time.sleep(0.02)
            except OSError:
                raise ToolError(f"{self.name} has closed its input") from None

    def close_input(self) -> None:
        """Close its stdin; on a terminal, type the end-of-file character."""
        if self._process.master >= 0:
            self.write(b"\x04")
            return
        if self._stdin < 0:
            raise ToolError(f"the input of {self.name} is closed already")
        self._close_stdin()

    def _close_stdin(self) -> None:
        # Reset first: the command may end at once, and the output reader would close it again.
        file, self._stdin = self._stdin, -1
        if file >= 0:
            os.close(file)

    def signal(self, number: int) -> None:
        """Send a signal to all its processes."""
        if self.state == "running":
            self._signalled = True
            self._process.guardian.signal(self.id, number)

    def kill(self, by: str) -> None:
        """End all its processes; `by` is recorded as the killer."""
        if self.state == "running":
            self.killed_by = self.killed_by or by
            self._process.guardian.stop(self.id)

    def detach(self) -> None:
        """Let it outlive the task."""
        self.detached = True
        self._process.guardian.detach(self.id)

    def waits_for_input(self) -> bool:
        """Whether one of its processes is blocked on a read of the terminal or stdin."""
        files = ["/dev/pts/", "/dev/tty"]
        with self._changed:
            if self._stdin >= 0:
                # Not every pipe: a pipeline has its own.
                files.append(f"pipe:[{os.fstat(self._stdin).st_ino}]")
        return bool(blocked_on_input(self.host_pids(), tuple(files)))

    def hides_input(self) -> bool:
        """Whether the terminal's echo is off, as for a password."""
        with self._changed:
            return self._process.master >= 0 and echo_is_off(self._process.master)

    def pids(self) -> list[int]:
        """Its live processes, in their own pid namespace."""
        return self._process.guardian.pids_inside(self.task).get(self.id, [])

    def host_pids(self) -> list[int]:
        """The same in the pid namespace of this machine."""
        return self._process.guardian.pids(self.task).get(self.id, [])

    def ports(self) -> list[str]:
        """The addresses that its processes listen on, as `address:port`."""
        import psutil

        addresses: set[str] = set()
        for pid in self.host_pids():
            try:
                connections = psutil.Process(pid).net_connections("inet")
            except psutil.Error:
                continue
            addresses |= {
                f"{each.laddr.ip}:{each.laddr.port}"
                for each in connections
                if each.status == psutil.CONN_LISTEN
            }
        return sorted(addresses)

    def discard(self) -> None:
        """Delete the log's file."""
        with self._changed:
            self._log.discard()


class BackgroundSet:
    """The background commands of one task, oldest first; of the ended ones only the newest."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all: list[Background] = []
        self._count = 0

    def all(self) -> list[Background]:
        """The running and the ended ones."""
        with self._lock:
            return list(self._all)

    def running(self) -> list[Background]:
        """Those that run, as far as is known."""
        return [each for each in self.all() if each.state == "running"]

    def check(self, name: str) -> None:
        """Raise `ToolError` where no more may be started, or the name is taken."""
        running = self.running()
        if len(running) >= MAX_BACKGROUND:
            raise ToolError(
                f"{len(running)} commands run in the background already",
                hint="End some with `process` first.",
            )
        if name and any(each.name == name for each in running):
            raise ToolError(f"{name} runs already", hint="Choose another name, or kill it first.")

    def add(self, make: Callable[[str], Kind], name: str = "") -> Kind:
        """Add the result of `make`, called with the name: as wanted, else the next number."""
        with self._lock:
            self._count += 1
            background = make(name or f"p{self._count}")
            ended = [old for old in self._all if old.state != "running"]
            for old in ended[: max(0, len(ended) - MAX_BACKGROUND)]:
                self._all.remove(old)
                old.discard()
            self._all.append(background)
        return background

    def mark_ending(self) -> list[Background]:
        """Record the end of the task as the killer of those that run; all that are not detached."""
        ending = [each for each in self.all() if not each.detached]
        for background in ending:
            if background.state == "running":
                background.killed_by = background.killed_by or "the end of the task"
        return ending


def stop_excess(background: Background, pids: tuple[int, ...], limit: int) -> list[str]:
    """Kill the processes that a command left running if they are too many; a note on that."""
    if len(pids) <= limit:
        return []
    background.kill(f"a limit: no more than {limit} processes may be left running")
    return [f"{len(pids)} processes were left running and stopped"]


FIRST_SECONDS = 1.0
LONGEST_SECONDS = 30.0
JOIN_SECONDS = 10.0
# After a run of this length the count starts again.
WELL_SECONDS = 60.0


class Restarts:
    """The restart policies of one task, by the name of the process."""

    def __init__(self) -> None:
        self._watched: dict[str, _Watched] = {}

    def watch(
        self,
        first: Background,
        again: Callable[[], Background],
        *,
        most: int,
        first_seconds: float = FIRST_SECONDS,
    ) -> None:
        """Restart a process by `again`, at most so often in a row, with exponential back-off."""
        watched = _Watched(first, again, most, first_seconds)
        self._watched[first.name] = watched
        watched.start()

    def shown(self, name: str) -> dict[str, Any]:
        """State of a process's policy for the model; empty without one."""
        watched = self._watched.get(name)
        return {} if watched is None else watched.shown()

    def stop(self, name: str) -> None:
        """End a policy."""
        watched = self._watched.get(name)
        if watched is not None:
            watched.stop("switched off")

    def close(self) -> None:
        """End all policies; no process is started after this returns."""
        for name in list(self._watched):
            self.stop(name)
        for watched in self._watched.values():
            watched.join()


class _Watched:
    def __init__(
        self, first: Background, again: Callable[[], Background], most: int, seconds: float
    ) -> None:
        self._one = first
        self._again = again
        self._most = most
        self._seconds = seconds
        self._count = 0
        self._in_a_row = 0
        self._state = "on failure"
        # A policy that was ended keeps the reason, whatever its thread finds out meanwhile.
        self._lock = threading.Lock()
        self._stop = Cancellation()
        self._thread = threading.Thread(
            target=self._watch, name=f"hermes-restart-{first.name}", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def join(self) -> None:
        self._thread.join(JOIN_SECONDS)

    def stop(self, why: str) -> None:
        with self._lock:
            self._state = why
            self._stop.cancel(why)

    def _set(self, state: str) -> None:
        with self._lock:
            if not self._stop.cancelled:
                self._state = state

    def shown(self) -> dict[str, Any]:
        return {"restart": self._state, "restarts": self._count}

    def _watch(self) -> None:
        while not self._stop.cancelled:
            if not self._one.wait(3600.0, cancellation=self._stop):
                continue
            if not failed(self._one):
                self._set("not needed: it did not fail")
                return
            ended = self._one.ended_at or time.time()
            if ended - self._one.started_at >= WELL_SECONDS:
                self._in_a_row = 0
            if self._in_a_row >= self._most:
                self._set(f"given up after {self._in_a_row} in a row")
                return
            pause = min(LONGEST_SECONDS, self._seconds * 2**self._in_a_row)
            self._set(f"in {pause:g} s")
            if self._stop.wait(pause):
                return
            try:
                self._one = self._again()
            except HermesError as error:
                self._set(f"failed: {error}")
                return
            self._count += 1
            self._in_a_row += 1
            self._set("on failure")


def failed(one: Background) -> bool:
    """Whether a process ended with an error, or was killed by an unknown killer."""
    if one.state == "lost":
        # It may still run, and two of them are worse than none.
        return one.dies_with_backend and not one.detached
    if one.state == "killed":
        return one.killed_by == OUTSIDE
    return one.state == "exited" and one.exit_code != 0
