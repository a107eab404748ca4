"""Command request and command result: the values that enter and leave every backend."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Literal

    from hermes.core.context import Cancellation
    from hermes.environments.background import Background
    from hermes.environments.command_output import Output


# What a terminal holds for a program that does not read yet.
MOST_TYPED = 4000
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NONE: Mapping[str, str] = {}


class Order(NamedTuple):
    """What to run, where, with what, and for how long."""

    command: str
    # In seconds; None is without end.
    timeout: float | None = None
    # For this command alone; None is where the last one left off.
    cwd: str | None = None
    env: Mapping[str, str] = _NONE
    # What it reads; None is nothing at all.
    stdin: bytes | None = None
    pty: bool = False
    # What it is called when it runs beside others.
    name: str = ""
    on_output: Callable[[str], None] | None = None
    cancellation: Cancellation | None = None

    @property
    def cancelled(self) -> bool:
        """Whether nobody wants it any more."""
        return self.cancellation is not None and self.cancellation.cancelled

    @property
    def typed(self) -> bytes:
        """What is typed at the start, on a terminal; raises `ToolError` when it is too much."""
        if len(self.stdin or b"") > MOST_TYPED:
            raise ToolError(
                f"a terminal takes no more than {MOST_TYPED} bytes at once",
                hint="Leave pty out, or give the rest with process write.",
            )
        return self.stdin or b""

    def check(self) -> None:
        """Raise `ToolError` for what no program can be given."""
        as_bytes(self.command)
        if "\0" in self.command:
            raise ToolError("a command can't hold a zero character")
        for name, value in self.env.items():
            if not name or "=" in name or "\0" in name + value:
                raise no_variable(name)

    def check_names(self) -> None:
        """Raise `ToolError` for variables that a shell can't set."""
        for name in self.env:
            if not is_name(name):
                raise no_variable(name)


def is_name(name: str) -> bool:
    """Whether a shell can have a variable of that name."""
    return _NAME.fullmatch(name) is not None


def no_variable(name: str) -> ToolError:
    """What to say of a variable that can't be."""
    return ToolError(f"{name!r:.80} can't be a variable, or not with that value")


def as_bytes(text: str) -> bytes:
    """A text as programs are given it."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise ToolError("the text holds half a character, which no program can be given") from None


def as_data(stdin: str | bytes | None) -> bytes | None:
    """What a command is to read, as bytes."""
    return as_bytes(stdin) if isinstance(stdin, str) else stdin


if TYPE_CHECKING:
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
