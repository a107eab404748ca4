"""`LocalEnvironment`: commands on this machine; `HostedEnvironment` is its base, shared with the
sandbox.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Protocol

from hermes.environments.background import MOST_LEFT, too_many
from hermes.environments.command import CommandResult, Isolation
from hermes.environments.command_wait import follow
from hermes.environments.disk import LocalDisk
from hermes.environments.env_vars import passed_variables
from hermes.environments.environment import Environment
from hermes.environments.host.background_process import LocalBackground
from hermes.environments.host.guardian_client import guardian
from hermes.environments.host.launch import Launcher, not_started, plain_words, shell
from hermes.environments.host.process import Process, Ready, answer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hermes.environments.background import Background
    from hermes.environments.command import Order
    from hermes.environments.command_output import Collector
    from hermes.environments.command_wait import End
    from hermes.environments.disk import Disk
    from hermes.environments.environment import Shared
    from hermes.environments.host.guardian_client import Guardian


_LITTLE = 200 * 1024 * 1024
_PERCENT = 0.01
# A background command that took more of a core than this, for so long, is worth a word.
BUSY_SHARE = 0.9
BUSY_SECONDS = 30.0


def disk_note(folder: str) -> list[str]:
    """A warning when the disk below a folder is nearly full."""
    try:
        state = os.statvfs(folder)
    except OSError:
        return []
    free = state.f_bavail * state.f_frsize
    whole = state.f_blocks * state.f_frsize
    if not whole or free >= max(_LITTLE, min(_PERCENT * whole, 5 * _LITTLE)):
        return []
    return [f"the disk is nearly full: {free // 1_000_000} MB free"]


def burning(running: Sequence[Background], seen: dict[int, tuple[float, float]]) -> list[str]:
    """A word on each background command that has kept a core busy since it was last looked at.

    `seen` is the caller's to keep: when each was looked at, and the CPU time it had used by then.
    """
    notes = []
    now = time.monotonic()
    for one in running:
        before = seen.get(one.pid)
        if before is not None and now - before[0] < BUSY_SECONDS:
            continue
        used = sum(map(_cpu_seconds, one.here()))
        seen[one.pid] = now, used
        if before is not None and (used - before[1]) / (now - before[0]) > BUSY_SHARE:
            notes.append(f"{one.name} (pid {one.pid}) in the background keeps a CPU core busy")
    return notes


def _cpu_seconds(pid: int) -> float:
    import psutil

    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)


class Place(Protocol):
    """Where commands are started, by whom, and with what."""

    @property
    def owner(self) -> Guardian:
        """Whoever starts commands there and ends them."""
        ...

    def shell(self) -> tuple[bytes, bool]:
        """The shell to run commands with, and whether it is bash."""
        ...

    def is_folder(self, path: str) -> bool:
        """Whether a command could start there."""
        ...

    def variables(self, named: Sequence[str]) -> dict[str, str]:
        """Those of our own variables that commands may see."""
        ...

    def plain(self, command: str, variables: Mapping[str, str]) -> tuple[bytes, list[bytes]] | None:
        """Program and words of a command that needs no shell; None where that is not sure."""
        ...


class ThisMachine:
    """Commands run here as we do."""

    @property
    def owner(self) -> Guardian:
        """The guardian of this program."""
        return guardian

    def shell(self) -> tuple[bytes, bool]:
        """The shell of this machine."""
        return shell()

    def is_folder(self, path: str) -> bool:
        """Whether there is such a folder."""
        return os.path.isdir(path)

    def variables(self, named: Sequence[str]) -> dict[str, str]:
        """The allow-list, and what is named."""
        return passed_variables(named)

    def plain(self, command: str, variables: Mapping[str, str]) -> tuple[bytes, list[bytes]] | None:
        """The program as a shell would find it."""
        return plain_words(command, variables)


class HostedEnvironment(Environment):
    """Runs commands, each in a fresh shell with the folder and variables of the last one.

    A backend names the place, its files (`_files`) and what is kept apart there.
    """

    _files: Disk
    _most_left = MOST_LEFT

    def __init__(
        self,
        cwd: str,
        place: Place,
        shared: Shared | None,
        *,
        rest: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(cwd, shared, rest=rest)
        self._place = place
        self._launcher = Launcher(place, self._task, self._shared.passed)
        self._busy: dict[int, tuple[float, float]] = {}
        self._last_state: tuple[bytes, Mapping[str, str]] | None = None

    @property
    def disk(self) -> Disk:
        """The files that commands see."""
        return self._files

    def run_script(self, script: str, data: bytes = b"") -> tuple[int, bytes, bytes]:
        """Run a script of ours: its exit code, standard output and standard error."""
        path, _ = self._place.shell()
        words = [path, b"-c", script.encode("utf-8", "surrogateescape")]
        with self._idle:
            return answer(self._place.owner, words, data=data)

    def cleanup(self) -> None:
        """End everything that was started here and was not detached."""
        self._idle.close()
        self._end_beside(lambda: self._place.owner.stop_task(self._task))

    def _run(self, order: Order) -> CommandResult:
        folder = self._launcher.folder(order, self.cwd)
        notes = []
        if order.cwd is None and folder != self.cwd:
            notes.append(f"{self.cwd} is gone; the command ran in {folder}")
            self.cwd = folder
        collector = self._collector()
        given = self._launcher.variables(order, self.env, folder)
        begun = time.monotonic()
        process, end = self._followed(order, collector, folder, given)
        if process.failure is not None:
            process.close()
            raise not_started(process.failure, folder)
        left = None
        if end.alive:
            left = self._listen(process, order, folder, left=end.why != "needs input")
            left.started_at -= time.monotonic() - begun
            if left.left_behind:
                notes += too_many(left, process.left, self._most_left)
            else:
                left.seed(collector.recent().encode())
        else:
            process.close()
        if process.lost:
            process.owner.sweep(self._task, process.pid)
        if end.why == "exited":
            self._carry(process.state, given, folder if order.cwd is None else None)
            notes += self._unkept(order.command, process.state)
        return CommandResult(
            process.exit_code,
            self._output(collector),
            cwd=self.cwd,
            duration=time.monotonic() - begun,
            ended=end.why,
            cpu_seconds=process.cpu_seconds,
            background=left,
            background_pids=process.left,
            prompt=end.prompt,
            ordered=process.ordered,
            notes=[*notes, *end.notes, *disk_note(folder), *self._burning()],
        )

    def _followed(
        self, order: Order, collector: Collector, folder: str, given: dict[str, str]
    ) -> tuple[Process, End]:
        """Start a command and follow it until it is over, one way or another."""
        for plain in (True, False):
            process = Process(collector.feed, self._place.owner, ordered=True)
            ready = Ready()
            try:
                by_shell = self._launcher.start(
                    process, order, folder, given, self.definitions,
                    keep=True, plain=plain, ready=ready,
                )  # fmt: skip
                end = follow(process, collector, order, task=self._task, ready=ready)
            except BaseException:
                if process.id:
                    process.owner.stop(process.id)
                process.close()
                collector.discard()
                raise
            finally:
                ready.close()
            if process.failure is None or by_shell:
                break
            # The shell knows best what to make of a program that can't be started.
            process.close()
        return process, end

    def _begin(self, order: Order) -> LocalBackground:
        folder = self._launcher.folder(order, self.cwd)
        process = Process(lambda *_: None, self._place.owner)
        given = self._launcher.variables(order, self.env, folder)
        theirs = input_file = -1
        if order.stdin is None and not order.pty:
            theirs, input_file = os.pipe()
            os.set_blocking(input_file, False)
        try:
            self._launcher.start(process, order, folder, given, self.definitions, input_file=theirs)
        except BaseException:
            if input_file >= 0:
                os.close(input_file)
            raise
        finally:
            if theirs >= 0:
                os.close(theirs)
        started = self._listen(process, order, folder, input_file=input_file)
        started.wait(5.0, until=lambda: bool(process.pid or process.gone))
        if process.failure is not None:
            raise not_started(process.failure, folder)
        return started

    def _listen(
        self,
        process: Process,
        order: Order,
        folder: str,
        *,
        left: bool = False,
        input_file: int = -1,
    ) -> LocalBackground:
        """Go on listening to a command that nobody follows, or to what one left running."""
        background = self._beside.add(
            lambda name: LocalBackground(
                process,
                name=name,
                command=order.command,
                cwd=folder,
                task=self._task,
                input_file=input_file,
                make_spill=self._spill,
                ansi=self._shared.ansi,
            ),
            order.name,
        )
        background.left_behind = left
        if left and process.left:
            background.pid = process.left[0]
        background.listen()
        return background

    def _carry(self, data: bytes, given: Mapping[str, str], folder: str | None) -> bool:
        if (data, given) != self._last_state:
            unchanged = super()._carry(data, given, folder)
            self._last_state = (data, given) if unchanged else None
        return self._last_state is not None

    def _burning(self) -> list[str]:
        running = self._beside.running()
        return burning(running, self._busy) if running else []


class LocalEnvironment(HostedEnvironment):
    """Runs commands here, with all that we may do ourselves."""

    label = "this machine"

    def __init__(
        self, cwd: str = "", *, shared: Shared | None = None, place: Place | None = None
    ) -> None:
        super().__init__(os.path.abspath(cwd or os.getcwd()), place or ThisMachine(), shared)
        self._files = LocalDisk()

    def info(self) -> Isolation:
        """Nothing is kept from a command here but its escape."""
        missing = ["files", "network", "memory"]
        if sys.platform != "linux":
            missing.append("processes that leave their process group are not found again")
        return Isolation(
            "local",
            processes="every process is owned by its task and ended with it",
            not_enforced=tuple(missing),
        )
