"""Background commands: the `Background` protocol, and the set of a task's background commands with
its limits.
"""

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

# Who killed a process, when nobody that is known did: the system for want of memory, a person.
OUTSIDE = "somebody outside this task (SIGTERM or SIGKILL)"
# So many commands may run beside others, and so many processes may be left running by one.
MOST = 32
MOST_LEFT = 100


class Background(Protocol):
    """A command that runs while others do, and everything that it started."""

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
    # Not started as one, but left running by a command that ended.
    left_behind: bool
    # Whether it is certainly over when it is lost, unless it was detached.
    ends_with_place: bool

    @property
    def takes_input(self) -> bool:
        """Whether something can be typed."""
        ...

    @property
    def log_path(self) -> str | None:
        """A file with the whole log, once it is long."""
        ...

    @property
    def last_output_at(self) -> float:
        """When it last printed something."""
        ...

    def recent(self, size: int = 2000) -> str:
        """The end of what it printed."""
        ...

    def log(self, offset: int | None = None, *, limit: int = 20_000) -> tuple[str, int, int]:
        """Text from a byte on (the newest when None); where it starts; how many bytes there are."""
        ...

    def wait(
        self,
        seconds: float,
        *,
        until: Callable[[], bool] | None = None,
        cancellation: Cancellation | None = None,
    ) -> bool:
        """Wait until it has ended, or until what is asked for holds; whether that came."""
        ...

    def write(self, data: bytes) -> None:
        """Type something; raises `ToolError` when it takes no input."""
        ...

    def close_input(self) -> None:
        """Let it read the end of its input."""
        ...

    def signal(self, number: int) -> None:
        """Signal everything that belongs to it."""
        ...

    def kill(self, by: str) -> None:
        """End everything that belongs to it, and note who wanted that."""
        ...

    def detach(self) -> None:
        """Let it live on when the task ends."""
        ...

    def waits(self) -> bool:
        """Whether one of its processes is seen to wait for somebody to type."""
        ...

    def hides(self) -> bool:
        """Whether what is typed now is not shown, as that of a password is not."""
        ...

    def pids(self) -> list[int]:
        """Its processes that are alive, by the numbers that commands know."""
        ...

    def here(self) -> list[int]:
        """The same by their numbers on this machine; none where they are on another."""
        ...

    def ports(self) -> list[str]:
        """Where they listen, as `address:port`."""
        ...

    def discard(self) -> None:
        """Let go of its log."""
        ...


class Beside:
    """Those of one task, the oldest first; of those that have ended only the newest are kept."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all: list[Background] = []
        self._count = 0

    def all(self) -> list[Background]:
        """Everything that runs or ran."""
        with self._lock:
            return list(self._all)

    def running(self) -> list[Background]:
        """What has not ended, as far as is known."""
        return [one for one in self.all() if one.state == "running"]

    def check(self, name: str) -> None:
        """Raise `ToolError` where no more may be started, or not by that name."""
        running = self.running()
        if len(running) >= MOST:
            raise ToolError(
                f"{len(running)} commands run in the background already",
                hint="End some with the process tool first.",
            )
        if name and any(one.name == name for one in running):
            raise ToolError(f"{name} runs already", hint="Choose another name, or kill it first.")

    def add(self, make: Callable[[str], Kind], name: str = "") -> Kind:
        """Take in what `make` gives for a name: the one that was wanted, or the next number."""
        with self._lock:
            self._count += 1
            one = make(name or f"p{self._count}")
            ended = [old for old in self._all if old.state != "running"]
            for old in ended[: max(0, len(ended) - MOST)]:
                self._all.remove(old)
                old.discard()
            self._all.append(one)
        return one

    def doom(self) -> list[Background]:
        """Note that the task's end ends what still runs; all that ends by it."""
        ended = [one for one in self.all() if not one.detached]
        for one in ended:
            if one.state == "running":
                one.killed_by = one.killed_by or "the end of the task"
        return ended


def too_many(left: Background, pids: tuple[int, ...], most: int) -> list[str]:
    """Stop what a command left running when that is too much; what there is to say of it."""
    if len(pids) <= most:
        return []
    left.kill(f"a limit: no more than {most} processes may be left running")
    return [f"{len(pids)} processes were left running and stopped"]
