"""Background commands: the `Background` protocol, and the set of a task's background commands."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Protocol

from hermes.core.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal, TypeVar

    from hermes.core.context import Cancellation

    State = Literal["running", "exited", "killed", "lost"]
    Kind = TypeVar("Kind", bound="Background")

# The killer of a process when it is not known: the OOM killer, a person.
OUTSIDE = "somebody outside this task (SIGTERM or SIGKILL)"
# Limits of a task: background commands, and processes that one command may leave running.
MAX_BACKGROUND = 32
MAX_LEFT_RUNNING = 100


class Background(Protocol):
    """A background command with all its processes."""

    name: str
    command: str
    cwd: str
    pid: int
    # In seconds since the epoch.
    started_at: float
    ended_at: float | None
    state: State
    exit_code: int | None
    killed_by: str
    detached: bool
    # Not started in the background, but left running by a command that ended.
    left_behind: bool
    # Whether a lost one has ended for certain, unless it was detached.
    dies_with_backend: bool

    @property
    def takes_input(self) -> bool:
        """Whether its stdin is open."""
        ...

    @property
    def log_path(self) -> str | None:
        """The file with the whole log, once it is long."""
        ...

    @property
    def last_output_at(self) -> float:
        """Time of the last output."""
        ...

    def recent(self, size: int = 2000) -> str:
        """The end of its output."""
        ...

    def log(self, offset: int | None = None, *, limit: int = 20_000) -> tuple[str, int, int]:
        """Text from a byte offset on (the newest for None), its real offset, the total size."""
        ...

    def wait(
        self,
        seconds: float,
        *,
        until: Callable[[], bool] | None = None,
        cancellation: Cancellation | None = None,
    ) -> bool:
        """Wait until it has ended, or until the condition holds; whether that happened."""
        ...

    def write(self, data: bytes) -> None:
        """Write to its stdin; raises `ToolError` when it is closed."""
        ...

    def close_input(self) -> None:
        """Close its stdin."""
        ...

    def signal(self, number: int) -> None:
        """Send a signal to all its processes."""
        ...

    def kill(self, by: str) -> None:
        """End all its processes; `by` is recorded as the killer."""
        ...

    def detach(self) -> None:
        """Let it outlive the task."""
        ...

    def waits_for_input(self) -> bool:
        """Whether one of its processes is blocked on a read of the terminal or stdin."""
        ...

    def hides_input(self) -> bool:
        """Whether the terminal's echo is off, as for a password."""
        ...

    def pids(self) -> list[int]:
        """Its live processes, in their own pid namespace."""
        ...

    def host_pids(self) -> list[int]:
        """The same in the pid namespace of this machine; none if they run on another."""
        ...

    def ports(self) -> list[str]:
        """The addresses that its processes listen on, as `address:port`."""
        ...

    def discard(self) -> None:
        """Delete its log."""
        ...


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
