"""The words for how a command ended, and for what is kept from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.errors import ToolError

if TYPE_CHECKING:
    from typing import Literal

    from hermes.environments.beside import Background
    from hermes.environments.output import Output

    Ended = Literal["exited", "timeout", "cancelled", "needs input", "lost"]

# The exit code of one whose time was up.
TIMED_OUT = 124


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
        "ordered",
        "output",
        "prompt",
    )

    def __init__(
        self,
        exit_code: int | None,
        output: Output,
        *,
        cwd: str,
        duration: float,
        ended: Ended = "exited",
        cpu_seconds: float = 0.0,
        background: Background | None = None,
        background_pids: tuple[int, ...] = (),
        prompt: str = "",
        ordered: bool = False,
        notes: list[str] | None = None,
    ) -> None:
        # -1 where nobody knows.
        known = -1 if exit_code is None else exit_code
        self.exit_code = TIMED_OUT if ended == "timeout" else known
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
        # Whether the two streams are known to have taken turns as the output says.
        self.ordered = ordered
        self.notes = notes or []

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
    def spill(self) -> str | None:
        """A file with all it printed, when that was too much to be held here; whose it is now."""
        return self.output.spill

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
