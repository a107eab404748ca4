"""`Environment`: a place where commands run and files lie, for one task.

What all places have in common is here: how a command is asked for, what carries over from one to
the next, what runs beside. A backend says the rest, in a few methods on one value (`Order`):

    _run, _begin     run a command to its end; start one beside others
    run_script       run a script of ours, apart from the task's commands
    disk             the files there
    info, cleanup    what is kept apart; the end of it all
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import hermes.environments.shell_state as shell_state
from hermes.environments.beside import Background, Beside
from hermes.environments.idling import Idle
from hermes.environments.order import Order, as_data
from hermes.environments.output.collector import Collector
from hermes.environments.output.spill import Spill
from hermes.environments.results import CommandResult, Isolation, PlaceError
from hermes.environments.sharing import Shared, inside, moved

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hermes.core.context import Cancellation
    from hermes.environments.output import Output
    from hermes.environments.sync import Synced
    from hermes.runtime.disk import Disk

__all__ = ["Background", "CommandResult", "Environment", "Isolation", "Order", "PlaceError"]

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
        if not inside(place, self._shared.workspace):
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
