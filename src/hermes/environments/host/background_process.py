"""Background command on this machine, and the thread that reads the output of all of them."""

from __future__ import annotations

import os
import select
import threading
import time
from typing import TYPE_CHECKING

import hermes.environments.host.process_listing as process_listing
from hermes.core.errors import ToolError
from hermes.environments.background import OUTSIDE
from hermes.environments.command_output import Rolling
from hermes.environments.input_wait import hides_typing, waits_for_input
from hermes.text.ansi import clean
from hermes.text.console_output import decode

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.core.context import Cancellation
    from hermes.environments.background import State
    from hermes.environments.command_output import Spill
    from hermes.environments.host.process import Process


IDLE_SECONDS = 5.0


class Pump:
    """Reads what background commands print, and notices how they end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._wake = (-1, -1)
        self._new: list[LocalBackground] = []

    def add(self, background: LocalBackground) -> None:
        """Listen to one more, until nothing of it is left."""
        with self._lock:
            self._new.append(background)
            if self._thread is None or not self._thread.is_alive():
                self._wake = os.pipe()
                self._thread = threading.Thread(
                    target=self._listen, args=(self._wake,), name="hermes-output", daemon=True
                )
                self._thread.start()
            else:
                os.write(self._wake[1], b".")

    def _listen(self, wake: tuple[int, int]) -> None:
        known: list[LocalBackground] = []
        while True:
            with self._lock:
                known += self._new
                self._new = []
            poll = select.poll()
            poll.register(wake[0], select.POLLIN)
            owners: dict[int, LocalBackground] = {}
            for background in known:
                for file in background.watched():
                    poll.register(file, select.POLLIN)
                    owners[file] = background
            ready = poll.poll(None if known else IDLE_SECONDS * 1000)
            for file, _ in ready:
                if file == wake[0]:
                    os.read(file, 4096)
                else:
                    owners[file].take(file)
            known = [background for background in known if not background.settle()]
            with self._lock:
                if not ready and not known and not self._new:
                    self._thread = None
                    os.close(wake[0])
                    os.close(wake[1])
                    return


pump = Pump()


class LocalBackground:
    """See `environments.protocol.Background`."""

    # Where it runs, when that is not here.
    place = ""
    # What watches over it, or the connection, takes it along.
    ends_with_place = True

    def __init__(
        self,
        process: Process,
        *,
        name: str,
        command: str,
        cwd: str,
        task: str,
        input_file: int = -1,
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
        self._input = input_file
        self._signalled = False
        self._ansi = ansi
        self._log = Rolling(make_spill)
        self._notice = ""
        self._held_by: list[int] = []
        self.last_output_at = self.started_at
        self._changed = threading.Condition()
        process.feed = self._feed

    @property
    def takes_input(self) -> bool:
        """Whether something can be typed."""
        return self._input >= 0 or self._process.master >= 0

    @property
    def id(self) -> int:
        """The guardian's number for it."""
        return self._process.id

    @property
    def log_path(self) -> str | None:
        """The file with the whole log, once it is long."""
        return self._log.path

    def listen(self) -> None:
        """Begin to follow it."""
        self.last_output_at = time.time()
        # By their numbers on this machine, wherever the command itself runs.
        self._held_by = self._process.owner.members(self.task).get(self.id, [])
        # Words that were left for others, who had these numbers before.
        process_listing.who_ended(self._held_by)
        self._notice = process_listing.put_up(
            self.name, self.task, self.command, place=self.place, pids=self._held_by
        )
        pump.add(self)

    def seed(self, data: bytes) -> None:
        """Begin the log with what was printed before it became a background command."""
        self._log.feed(data)

    # -- the pump's side ----------------------------------------------------------------------

    def watched(self) -> list[int]:
        """The files to listen to."""
        return self._process.watched()

    def take(self, file: int) -> None:
        """Read what one of them has."""
        with self._changed:
            if file in self._process.watched():
                self._process.take(file)
                if self._process.pid and not self.pid:
                    self.pid = self._process.pid
                self._changed.notify_all()

    def settle(self) -> bool:
        """Whether nothing of it is left; notes how it ended."""
        process = self._process
        if not process.gone:
            if process.exit_code is not None and not process.left and self.exit_code is None:
                self.exit_code = process.exit_code
            return False
        process_listing.take_down(self._notice)
        with self._changed:
            process.drain()
            process.close()
            self._close_input()
            self.exit_code = process.exit_code
            self.ended_at = time.time()
            if process.lost:
                if not self.detached:
                    process.owner.sweep(self.task, self.pid)
                self.state = "lost"
            else:
                self.state = self._outcome()
            self._changed.notify_all()
        return True

    def _outcome(self) -> State:
        """How it ended, now that it has."""
        who = self.killed_by or process_listing.who_ended(self._held_by)
        killed = (self.exit_code or 0) in (128 + 9, 128 + 15)
        if not who and not killed:
            return "exited"
        self.killed_by = who or ("process signal" if self._signalled else OUTSIDE)
        return "killed"

    def _feed(self, stream: int, data: memoryview) -> None:  # noqa: ARG002
        self.last_output_at = time.time()
        self._log.feed(data)

    # -- everybody's --------------------------------------------------------------------------

    def log(self, offset: int | None = None, *, limit: int = 20_000) -> tuple[str, int, int]:
        """Text from a byte on (the newest when None); where it starts; how many bytes there are."""
        with self._changed:
            wanted = max(0, self._log.total - limit) if offset is None else offset
            data, start = self._log.read(wanted, limit)
            return clean(decode(data, cut=True), ansi=self._ansi), start, self._log.total

    def recent(self, size: int = 2000) -> str:
        """The end of the log, as it would be seen."""
        with self._changed:
            return clean(decode(self._log.tail(size), cut=True))

    def wait(
        self,
        seconds: float,
        *,
        until: Callable[[], bool] | None = None,
        cancellation: Cancellation | None = None,
    ) -> bool:
        """Wait until it has ended, or until what is asked for holds; whether that came."""
        deadline = time.monotonic() + seconds
        forget = None
        if cancellation is not None:
            forget = cancellation.on_cancel(self._wake)
        try:
            with self._changed:
                while True:
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
        """Type something."""
        file = self._process.master if self._process.master >= 0 else self._input
        if file < 0 or self.state != "running":
            raise ToolError(
                f"{self.name} takes no input",
                hint="Start it with pty=True, or with process start, to be able to write to it.",
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
        """Let it read the end of its input."""
        if self._process.master >= 0:
            # On a terminal the end of the input is a character.
            self.write(b"\x04")
            return
        if self._input < 0:
            raise ToolError(f"the input of {self.name} is closed already")
        self._close_input()

    def _close_input(self) -> None:
        # What it ends may end it at once, and the pump would close the file too.
        file, self._input = self._input, -1
        if file >= 0:
            os.close(file)

    def signal(self, number: int) -> None:
        """Signal everything that belongs to it."""
        if self.state == "running":
            self._signalled = True
            self._process.owner.signal(self.id, number)

    def kill(self, by: str) -> None:
        """End everything that belongs to it, and note who wanted that."""
        if self.state == "running":
            self.killed_by = self.killed_by or by
            self._process.owner.stop(self.id)

    def detach(self) -> None:
        """Let it live on when the task ends."""
        self.detached = True
        self._process.owner.detach(self.id)

    def waits(self) -> bool:
        """Whether one of its processes is seen to wait for somebody to type."""
        places = ["/dev/pts/", "/dev/tty"]
        with self._changed:
            if self._input >= 0:
                # Not just any pipe: those between the programs of a pipeline are theirs.
                places.append(f"pipe:[{os.fstat(self._input).st_ino}]")
        return bool(waits_for_input(self.here(), tuple(places)))

    def hides(self) -> bool:
        """Whether what is typed now is not shown."""
        with self._changed:
            return self._process.master >= 0 and hides_typing(self._process.master)

    def pids(self) -> list[int]:
        """Its processes that are alive, by the numbers that commands know."""
        return self._process.owner.numbers(self.task).get(self.id, [])

    def here(self) -> list[int]:
        """The same by their numbers on this machine."""
        return self._process.owner.members(self.task).get(self.id, [])

    def ports(self) -> list[str]:
        """Where they listen, as `address:port`."""
        import psutil

        found: set[str] = set()
        for pid in self.here():
            try:
                connections = psutil.Process(pid).net_connections("inet")
            except psutil.Error:
                continue
            found |= {
                f"{one.laddr.ip}:{one.laddr.port}"
                for one in connections
                if one.status == psutil.CONN_LISTEN
            }
        return sorted(found)

    def discard(self) -> None:
        """Let go of the log's file."""
        with self._changed:
            self._log.discard()
