"""What every place where commands run can do, and the words for how a command ended.

A backend implements `Environment`; nothing has to be inherited. What backends share is beside:
`variables.py` (what a command sees of the environment), `shell_state.py` (folder and variables
carried from one command to the next), `output/` (bounded, readable output), `exits.py`,
`prompts.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from hermes.core.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Literal

    from hermes.core.context import Cancellation
    from hermes.environments.output import Output
    from hermes.runtime.disk import Disk

    Ended = Literal["exited", "timeout", "cancelled", "needs input", "lost"]
    State = Literal["running", "exited", "killed", "lost"]


# Who killed a process, when nobody that is known did: the system for want of memory, a person.
OUTSIDE = "somebody outside this task (SIGTERM or SIGKILL)"


class PlaceError(ToolError):
    """The place where commands run can't be reached, or can't start one."""


class CommandResult:
    """How a command ended, and what it printed.

    `exit_code` is the shell's: 128 + N for a signal, 124 when its time was up. `ended` says why it
    ended; `notes` are remarks for the model; `background_pids` still run.
    """

    __slots__ = (
        "background",
        "background_pids",
        "cpu_seconds",
        "cwd",
        "duration",
        "ended",
        "exit_code",
        "notes",
        "output",
        "prompt",
        "spill",
    )

    def __init__(
        self,
        exit_code: int,
        output: Output,
        *,
        cwd: str,
        duration: float,
        ended: Ended = "exited",
        cpu_seconds: float = 0.0,
        background: Background | None = None,
        background_pids: tuple[int, ...] = (),
        prompt: str = "",
        notes: list[str] | None = None,
        spill: str | None = None,
    ) -> None:
        self.exit_code = exit_code
        self.output = output
        self.cwd = cwd
        self.duration = duration
        self.ended: Ended = ended
        self.cpu_seconds = cpu_seconds
        # What it left running, as a process of the task's.
        self.background = background
        self.background_pids = background_pids
        # The line in which it asked for input.
        self.prompt = prompt
        self.notes = notes or []
        # A file with all it printed, when that was too much to be held here.
        self.spill = spill

    @property
    def stdout(self) -> str:
        """What it printed to standard output; where much was left out, a line says so."""
        return self.output.stdout

    @property
    def stderr(self) -> str:
        """What it printed to standard error."""
        return self.output.stderr

    @property
    def timed_out(self) -> bool:
        """Whether it was stopped because its time was up."""
        return self.ended == "timeout"

    @property
    def truncated(self) -> int:
        """How many bytes of output were left out."""
        return self.output.left_out


class Isolation:
    """What is really enforced: for each kind of thing, what keeps a command from it."""

    __slots__ = ("backend", "files", "memory", "network", "not_enforced", "processes")

    def __init__(
        self,
        backend: str,
        *,
        files: str = "",
        network: str = "",
        processes: str = "",
        memory: str = "",
        not_enforced: tuple[str, ...] = (),
    ) -> None:
        self.backend = backend
        # Empty where nothing is kept from the command.
        self.files = files
        self.network = network
        self.processes = processes
        self.memory = memory
        # What one might expect here, and why it is not so.
        self.not_enforced = not_enforced

    def as_dict(self) -> dict[str, object]:
        """The same for people and programs to read."""
        return {
            "backend": self.backend,
            "files": self.files or "not isolated",
            "network": self.network or "not isolated",
            "processes": self.processes or "not isolated",
            "memory": self.memory or "not limited",
            "not_enforced": list(self.not_enforced),
        }


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

    def pids(self) -> list[int]:
        """Its processes that are alive."""
        ...

    def ports(self) -> list[str]:
        """Where they listen, as `address:port`."""
        ...


class Environment(Protocol):
    """A place where commands run and files lie, for one task."""

    # The folder that the next command starts in, and the variables that the task has set.
    cwd: str
    env: dict[str, str | None]

    @property
    def disk(self) -> Disk:
        """The files there."""
        ...

    def execute(
        self,
        command: str,
        *,
        timeout: float | None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: str | bytes | None = None,
        on_output: Callable[[str], None] | None = None,
        cancellation: Cancellation | None = None,
        pty: bool = False,
    ) -> CommandResult:
        """Run a command to its end, or stop it and everything it started.

        Folder and exported variables carry over to the next command, unless `cwd` is given: that is
        for this one alone. Raises `ToolError` when it can't be started.
        """
        ...

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
        ...

    def processes(self) -> Sequence[Background]:
        """What runs or ran beside: started so, or left behind by commands."""
        ...

    def info(self) -> Isolation:
        """What is really isolated here."""
        ...

    def cleanup(self) -> None:
        """End everything that was started here and was not detached."""
        ...
