"""`Environment`: base class of all backends, with the settings they share and the idle timer.

A backend implements a few methods that take one `CommandRequest`:

    _run, _begin     run a command to its end; start a background command
    run_script       run a script of ours, outside the task's shell state
    disk             the files there
    info, cleanup    isolation that is enforced; shut down
"""

from __future__ import annotations

import os
import threading
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import hermes.environments.shell_state as shell_state
from hermes.core.paths import is_below
from hermes.environments.background import Background, Beside
from hermes.environments.command import CommandResult, Isolation, Order, as_data
from hermes.environments.command_output import Collector, Spill

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hermes.core.context import Cancellation
    from hermes.environments.command_output import Output
    from hermes.environments.disk import Disk
    from hermes.environments.sync import Synced


class Shared:
    """Whose an environment is, what its commands may see of ours, how their output is kept.

    Args:
        env: The task's variables, which commands change; None takes one away.
        task: The task, for people and for labels.
        workspace: The task's folder by the name that file tools know. Where it is not mounted, the
            folder that commands begin in stands for it.
        passed: Names of our own variables that commands may see besides the usual ones.
        spill_folder: Where output is kept that is too much for memory; else with temporary files.
        ansi: Leave colours and other escapes in what commands print.
        idle_seconds: After so long without use, end what can be made again; 0 is never.
    """

    __slots__ = ("ansi", "env", "idle_seconds", "passed", "spill_folder", "task", "workspace")

    def __init__(
        self,
        *,
        env: dict[str, str | None] | None = None,
        task: str = "main",
        workspace: str = "",
        passed: Sequence[str] = (),
        spill_folder: str | None = None,
        ansi: bool = False,
        idle_seconds: float = 0.0,
    ) -> None:
        self.env = {} if env is None else env
        self.task = task
        self.workspace = workspace
        self.passed = tuple(passed)
        self.spill_folder = spill_folder
        self.ansi = ansi
        self.idle_seconds = idle_seconds

    def passed_on(self) -> dict[str, str]:
        """Those of our own variables that are named, as they are now."""
        return {name: os.environ[name] for name in self.passed if name in os.environ}

    def named(self, place: str, begin: str) -> str:
        """A place where commands begin in `begin`, by the workspace's name where it lies in that.

        The root of a system is nobody's workspace.
        """
        if not self.workspace or begin.strip("/") == "" or not is_below(place, begin):
            return place
        return moved(place, begin, self.workspace)


def moved(place: str, folder: str, target: str) -> str:
    """The place in `target` that one in `folder` stands for."""
    rest = place[len(folder.rstrip("/")) :]
    return f"{target.rstrip('/')}{rest}" or "/"


class Idle:
    """In use while entered; when left alone for long, `rest` is called.

    Args:
        seconds: How long that is; 0 is never.
        busy: Whether something goes on beside, so that nothing may be ended.
        rest: Ends it. Whoever enters meanwhile waits until that is done.
    """

    def __init__(
        self, seconds: float, *, busy: Callable[[], bool], rest: Callable[[], None]
    ) -> None:
        self.seconds = seconds
        self._busy = busy
        self._rest = rest
        self._lock = threading.Lock()
        self._users = 0
        self._left_at = 0.0
        self._timer: threading.Timer | None = None
        self._rested = False

    def __enter__(self) -> None:
        if self.seconds <= 0:
            return
        with self._lock:
            self._users += 1
            if self._timer is None:
                self._arm(self.seconds)

    def __exit__(self, *_: object) -> None:
        if self.seconds <= 0:
            return
        with self._lock:
            self._users -= 1
            self._left_at = time.monotonic()

    def rested(self) -> bool:
        """Whether it was ended since this was last asked."""
        rested, self._rested = self._rested, False
        return rested

    def close(self) -> None:
        """Look no more."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def _arm(self, seconds: float) -> None:
        # One thread for all the time, and not one for each command: it looks again when it wakes.
        self._timer = threading.Timer(seconds, self._look)
        self._timer.daemon = True
        self._timer.start()

    def _look(self) -> None:
        # Asked beforehand: that may take a while, and nobody is to wait for it.
        busy = not self._users and self._busy()
        with self._lock:
            if self._timer is None:
                return
            left = self._left_at + self.seconds - time.monotonic()
            if self._users or busy:
                self._arm(self.seconds)
            elif left > 0:
                self._arm(left)
            else:
                self._timer = None
                self._rested = True
                self._rest()


TIMEOUT = 180.0


class Environment(ABC):
    """A place for one task. Folder, variables and functions stay from one command to the next.

    Args:
        cwd: The folder to begin in.
        shared: Whose it is, and what its commands may see.
        rest: Ends what can be made again, when nobody has used it for long.
    """

    # For people: the kind, the host, the container.
    label = ""
    # What to say in the first result after such a rest; empty where nothing was lost by it.
    woken = ""

    def __init__(
        self, cwd: str, shared: Shared | None, *, rest: Callable[[], None] | None = None
    ) -> None:
        self._shared = shared or Shared()
        # The folder that the next command starts in, and the variables that the task has set.
        self.cwd = cwd
        self.env = self._shared.env
        # The folder that stands for the workspace where that itself is not there.
        self._first_folder = ""
        # Functions and aliases that earlier commands defined, as shell text.
        self.definitions = ""
        # Two environments may be of tasks that have the same name.
        self._task = f"{self._shared.task}/{os.urandom(4).hex()}"
        self._beside = Beside()
        self._lock = threading.Lock()
        self._idle = Idle(
            self._shared.idle_seconds if rest is not None else 0.0,
            busy=lambda: any(one.state == "running" for one in self.processes()),
            rest=rest or _nothing,
        )

    # -- everybody's --------------------------------------------------------------------------

    def execute(
        self,
        command: str,
        timeout: float | None = TIMEOUT,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: str | bytes | None = None,
        *,
        on_output: Callable[[str], None] | None = None,
        cancellation: Cancellation | None = None,
        pty: bool = False,
    ) -> CommandResult:
        """Run a command to its end, or stop it and everything it started.

        Folder and exported variables carry over to the next command, unless `cwd` is given: that is
        for this one alone. Raises `ToolError` when it can't be started.
        """
        order = Order(
            command, timeout, cwd, env or {}, as_data(stdin), pty,
            on_output=on_output, cancellation=cancellation,
        )  # fmt: skip
        order.check()
        with self._idle:
            rested = self._idle.rested() and self.woken
            result = self._run(order)
            if rested:
                result.notes.insert(0, self.woken)
            return result

    def start(
        self,
        command: str,
        *,
        name: str = "",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: str | bytes | None = None,
        pty: bool = False,
    ) -> Background:
        """Start a command that runs while others do; it ends with the task at the latest."""
        order = Order(command, None, cwd, env or {}, as_data(stdin), pty, name)
        order.check()
        with self._idle:
            self.processes()
            self._beside.check(name)
            return self._begin(order)

    def open_shell(
        self, *, cwd: str | None = None, env: Mapping[str, str] | None = None
    ) -> Background:
        """A shell on a terminal, to type into; it ends with the task at the latest."""
        return self.start('exec "${BASH:-sh}" -i', cwd=cwd, env=env, pty=True)

    def processes(self) -> Sequence[Background]:
        """What runs or ran beside: started so, or left behind by commands."""
        return self._beside.all()

    def upload(self, local: str, there: str) -> Synced:
        """Make a folder there hold what a local one does; only what changed travels."""
        from hermes.environments.sync import upload

        return upload(self, local, self.absolute(there))

    def download(self, there: str, local: str) -> None:
        """Fetch a file or folder from there into a local folder."""
        from hermes.environments.sync import download

        download(self, self.absolute(there), local)

    def open(self) -> list[str]:
        """Make it ready, if need be; what there is to say of that. Raises `PlaceError`."""
        return []

    def here(self, place: str) -> str:
        """The name that a place there has for the gate and for file tools."""
        return self._shared.named(place, self._first_folder)

    def absolute(self, folder: str) -> str:
        """Where a folder is there, by a name that commands would understand."""
        return os.path.normpath(os.path.join(self.cwd, os.path.expanduser(folder)))

    # -- each backend's -----------------------------------------------------------------------

    @property
    @abstractmethod
    def disk(self) -> Disk:
        """The files there."""

    @abstractmethod
    def run_script(self, script: str, data: bytes = b"") -> tuple[int, bytes, bytes]:
        """Run a script of ours there: its exit code, standard output and standard error.

        Nothing of the task's is used or changed.
        """

    @abstractmethod
    def info(self) -> Isolation:
        """What is really isolated here."""

    @abstractmethod
    def cleanup(self) -> None:
        """End everything that was started here and was not detached."""

    @abstractmethod
    def _run(self, order: Order) -> CommandResult:
        """Run a command to its end, or stop it and everything it started."""

    @abstractmethod
    def _begin(self, order: Order) -> Background:
        """Start a command that runs while others do."""

    # -- for backends -------------------------------------------------------------------------

    def _collector(self) -> Collector:
        """What takes in the output of one command."""
        return Collector(make_spill=self._spill)

    def _output(self, collector: Collector) -> Output:
        """What it took in; the file of a flood is the caller's from now on."""
        output = collector.output(ansi=self._shared.ansi)
        collector.keep_spill()
        return output

    def _spill(self) -> Spill:
        return Spill(self._shared.spill_folder)

    def _carry(self, data: bytes, given: Mapping[str, str], folder: str | None) -> bool:
        """Take over what a shell left; no folder where that was for its command alone.

        Whether it had left everything as it was.
        """
        state = shell_state.read_state(data)
        if state is None:
            return False
        with self._lock:
            if folder is not None and state.cwd != folder:
                self.cwd = state.cwd
            changed = shell_state.changes(given, state.exports)
            self.env.update(changed)
            self.definitions = state.definitions
            return not changed and state.cwd == self.cwd

    def _unkept(self, command: str, state: bytes) -> list[str]:
        """What there is to say of a shell that should have left a state, and left none."""
        if not shell_state.was_lost(command, state):
            return []
        early = "its shell was replaced or ended early (exec, a trap of its own on EXIT, a signal)"
        return [f"{early}: working directory and variables are as before"]

    def _there(self, place: str) -> str:
        """Where a place is there: what lies in the workspace lies where commands begin."""
        if not is_below(place, self._shared.workspace):
            return place
        self.open()
        return moved(place, self._shared.workspace, self._first_folder)

    def _end_beside(self, end: Callable[[], object]) -> None:
        """End what runs beside, by `end`, and let go of its logs."""
        ended = self._beside.doom()
        end()
        for one in ended:
            one.wait(1.0)
            one.discard()


def _nothing() -> None:
    """There is nothing that could be made again."""
