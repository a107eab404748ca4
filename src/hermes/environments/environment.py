"""`Environment`: base class of all backends, with the settings they share and the idle timer.

A backend implements a few methods that take one `CommandRequest`:

    _run, _begin     run a command to its end; start a background command
    run_script       run an internal script, outside the task's shell state
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
from hermes.environments.background import Background, BackgroundSet
from hermes.environments.command import (
    Collector,
    CommandRequest,
    CommandResult,
    Isolation,
    Spill,
    stdin_bytes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hermes.core.context import Cancellation
    from hermes.environments.command import Output
    from hermes.environments.disk.protocol import Disk
    from hermes.environments.sync import Synced

TIMEOUT = 180.0


class SharedSettings:
    """Settings that all backends share.

    Args:
        env: The task's variables, which commands change; None removes one.
        task: Name of the task, for labels and listings.
        workspace: The task's folder as file tools name it. Where it is not mounted, the folder that
            commands start in takes its place.
        pass_env: Names of variables of this program that commands inherit besides the usual ones.
        spill_folder: Folder for output that is too large for memory.
        ansi: Keep colours and other escape sequences in the output.
        idle_seconds: Release the backend's resources after so long without use; 0 is never.
    """

    __slots__ = ("ansi", "env", "idle_seconds", "pass_env", "spill_folder", "task", "workspace")

    def __init__(
        self,
        *,
        env: dict[str, str | None] | None = None,
        task: str = "main",
        workspace: str = "",
        pass_env: Sequence[str] = (),
        spill_folder: str | None = None,
        ansi: bool = False,
        idle_seconds: float = 0.0,
    ) -> None:
        self.env = {} if env is None else env
        self.task = task
        self.workspace = workspace
        self.pass_env = tuple(pass_env)
        self.spill_folder = spill_folder
        self.ansi = ansi
        self.idle_seconds = idle_seconds

    def passed_env(self) -> dict[str, str]:
        """The current values of the variables in `pass_env`."""
        return {name: os.environ[name] for name in self.pass_env if name in os.environ}

    def named(self, path: str, start: str) -> str:
        """A remote path by its name in the workspace, if it is below the start folder.

        The root folder of a system never stands for the workspace.
        """
        if not self.workspace or start.strip("/") == "" or not is_below(path, start):
            return path
        return moved(path, start, self.workspace)


def moved(path: str, folder: str, target: str) -> str:
    """The path below `target` that corresponds to one below `folder`."""
    rest = path[len(folder.rstrip("/")) :]
    return f"{target.rstrip('/')}{rest}" or "/"


class IdleTimer:
    """Context manager around each use; calls `release` after a time without use.

    Args:
        seconds: That time; 0 is never.
        busy: Whether background work forbids the release.
        release: Frees the resources. Uses that begin meanwhile wait for it.
    """

    def __init__(
        self, seconds: float, *, busy: Callable[[], bool], release: Callable[[], None]
    ) -> None:
        self.seconds = seconds
        self._busy = busy
        self._release = release
        self._lock = threading.Lock()
        self._users = 0
        self._last_use = 0.0
        self._timer: threading.Timer | None = None
        self._released = False

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
            self._last_use = time.monotonic()

    def take_released(self) -> bool:
        """Whether `release` was called since the last time this was asked."""
        released, self._released = self._released, False
        return released

    def close(self) -> None:
        """Cancel the timer."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def _arm(self, seconds: float) -> None:
        # Not one timer thread for each command: it re-arms itself when it fires.
        self._timer = threading.Timer(seconds, self._check)
        self._timer.daemon = True
        self._timer.start()

    def _check(self) -> None:
        # Outside of the lock, since it may take a while.
        busy = not self._users and self._busy()
        with self._lock:
            if self._timer is None:
                return
            left = self._last_use + self.seconds - time.monotonic()
            if self._users or busy:
                self._arm(self.seconds)
            elif left > 0:
                self._arm(left)
            else:
                self._timer = None
                self._released = True
                self._release()


class Environment(ABC):
    """Runs the commands of one task. Directory, variables and functions persist between them.

    Args:
        cwd: The folder to start in.
        shared: Settings that all backends share.
        release: Frees resources that can be made again, after a time without use.
    """

    # For people: the kind, the host, the container.
    label = ""
    # Note for the first result after a release; empty where nothing was lost by it.
    idle_note = ""

    def __init__(
        self, cwd: str, shared: SharedSettings | None, *, release: Callable[[], None] | None = None
    ) -> None:
        self._shared = shared or SharedSettings()
        # The working directory of the next command, and the variables that the task has set.
        self.cwd = cwd
        self.env = self._shared.env
        # The folder that takes the workspace's place where that is not mounted.
        self._first_folder = ""
        # Functions and aliases of earlier commands, as shell text.
        self.definitions = ""
        # Unique: two tasks may have the same name.
        self._task = f"{self._shared.task}/{os.urandom(4).hex()}"
        self._backgrounds = BackgroundSet()
        self._lock = threading.Lock()
        self._idle = IdleTimer(
            self._shared.idle_seconds if release is not None else 0.0,
            busy=lambda: any(each.state == "running" for each in self.processes()),
            release=release or (lambda: None),
        )

    # -- for callers --------------------------------------------------------------------------

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
        """Run a command to its end, or stop it with all its processes.

        Directory and exported variables carry over to the next command, unless `cwd` is given,
        which is for this one alone. Raises `ToolError` when it can't be started.
        """
        request = CommandRequest(
            command, timeout, cwd, env or {}, stdin_bytes(stdin), pty,
            on_output=on_output, cancellation=cancellation,
        )  # fmt: skip
        request.check()
        with self._idle:
            released = self._idle.take_released() and self.idle_note
            result = self._run(request)
            if released:
                result.notes.insert(0, self.idle_note)
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
        """Start a background command; it ends with the task at the latest."""
        request = CommandRequest(command, None, cwd, env or {}, stdin_bytes(stdin), pty, name)
        request.check()
        with self._idle:
            self.processes()
            self._backgrounds.check(name)
            return self._begin(request)

    def processes(self) -> Sequence[Background]:
        """All background commands, and processes that commands left running; ended ones too."""
        return self._backgrounds.all()

    def upload(self, local: str, remote: str) -> Synced:
        """Copy a local folder there; only changed files are sent."""
        from hermes.environments.sync import upload

        return upload(self, local, self.absolute(remote))

    def download(self, remote: str, local: str) -> None:
        """Fetch a file or folder from there into a local folder."""
        from hermes.environments.sync import download

        download(self, self.absolute(remote), local)

    def open(self) -> list[str]:
        """Connect or start the backend, if need be; notes for the model. Raises `BackendError`."""
        return []

    def workspace_name(self, path: str) -> str:
        """The name of a path there for the gate and for file tools."""
        return self._shared.named(path, self._first_folder)

    def absolute(self, folder: str) -> str:
        """The absolute path of a folder there."""
        return os.path.normpath(os.path.join(self.cwd, os.path.expanduser(folder)))

    # -- implemented by backends --------------------------------------------------------------

    @property
    @abstractmethod
    def disk(self) -> Disk:
        """The files there."""

    @abstractmethod
    def run_script(self, script: str, data: bytes = b"") -> tuple[int, bytes, bytes]:
        """Run an internal script there: its exit code, stdout and stderr.

        It neither uses nor changes the task's shell state.
        """

    @abstractmethod
    def info(self) -> Isolation:
        """The isolation that is enforced."""

    @abstractmethod
    def cleanup(self) -> None:
        """End all commands that were not detached."""

    @abstractmethod
    def _run(self, request: CommandRequest) -> CommandResult:
        """Run a command to its end, or stop it with all its processes."""

    @abstractmethod
    def _begin(self, request: CommandRequest) -> Background:
        """Start a background command."""

    # -- for backends -------------------------------------------------------------------------

    def _collector(self) -> Collector:
        return Collector(make_spill=self._spill)

    def _output(self, collector: Collector) -> Output:
        """The collected output; its spill file belongs to the caller."""
        output = collector.output(ansi=self._shared.ansi)
        collector.keep_spill()
        return output

    def _spill(self) -> Spill:
        return Spill(self._shared.spill_folder)

    def _carry(self, data: bytes, given: Mapping[str, str], folder: str | None) -> bool:
        """Carry over the shell state of a command; whether nothing had changed.

        `given` are the variables it started with, `folder` its directory, or None to ignore it.
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

    def _state_notes(self, command: str, state: bytes) -> list[str]:
        """A note when a command meant to change the shell state, and its shell wrote none."""
        if not shell_state.state_was_lost(command, state):
            return []
        early = "its shell was replaced or ended early (exec, a trap of its own on EXIT, a signal)"
        return [f"{early}: working directory and variables are as before"]

    def _remote_path(self, path: str) -> str:
        """The path there: the workspace maps to the folder that commands start in."""
        if not is_below(path, self._shared.workspace):
            return path
        self.open()
        return moved(path, self._shared.workspace, self._first_folder)

    def _end_backgrounds(self, end: Callable[[], object]) -> None:
        """End all background commands by calling `end`, and discard their logs."""
        ending = self._backgrounds.mark_ending()
        end()
        for background in ending:
            background.wait(1.0)
            background.discard()
