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

    EndReason = Literal["exited", "timeout", "cancelled", "needs input", "lost"]

# Capacity of a terminal's input queue.
MAX_TYPED = 4000
# Exit code after a timeout.
TIMED_OUT = 124
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NO_VARIABLES: Mapping[str, str] = {}


class BackendError(ToolError):
    """A backend can't be reached, or can't start a command."""


class CommandRequest(NamedTuple):
    """One command with its options."""

    command: str
    # In seconds; None is without limit.
    timeout: float | None = None
    # For this command alone; None is the directory of the last one.
    cwd: str | None = None
    env: Mapping[str, str] = _NO_VARIABLES
    # None: stdin is closed.
    stdin: bytes | None = None
    pty: bool = False
    # Name of a background command.
    name: str = ""
    on_output: Callable[[str], None] | None = None
    cancellation: Cancellation | None = None

    @property
    def cancelled(self) -> bool:
        return self.cancellation is not None and self.cancellation.cancelled

    @property
    def typed(self) -> bytes:
        """The bytes to type at the start, on a terminal; raises `ToolError` for too many."""
        if len(self.stdin or b"") > MAX_TYPED:
            raise ToolError(
                f"a terminal takes no more than {MAX_TYPED} bytes at once",
                hint="Leave pty out, or give the rest with process write.",
            )
        return self.stdin or b""

    def check(self) -> None:
        """Raise `ToolError` for text that the system can't pass to a program."""
        encode_text(self.command)
        if "\0" in self.command:
            raise ToolError("a command can't hold a zero character")
        for name, value in self.env.items():
            if not name or "=" in name or "\0" in name + value:
                raise variable_error(name)

    def check_names(self) -> None:
        """Raise `ToolError` for variables that a shell can't set."""
        for name in self.env:
            if not is_variable_name(name):
                raise variable_error(name)


class CommandResult(NamedTuple):
    """Outcome and output of a command."""

    code: int | None
    output: Output
    cwd: str
    duration: float
    # Remarks for the model.
    notes: list[str]
    ended: EndReason = "exited"
    cpu_seconds: float = 0.0
    # The processes that it left running, or the command itself while it waits for input.
    background: Background | None = None
    background_pids: tuple[int, ...] = ()
    # The line in which it asked for input.
    prompt: str = ""
    # Whether the order of the two streams is reliable.
    ordered: bool = False

    @property
    def exit_code(self) -> int:
        """As a shell has it: 128 + N for a signal, 124 after a timeout; -1 when it is not known."""
        if self.ended == "timeout":
            return TIMED_OUT
        return -1 if self.code is None else self.code

    @property
    def stdout(self) -> str:
        """Standard output; a line marks where bytes were left out."""
        return self.output.stdout

    @property
    def stderr(self) -> str:
        return self.output.stderr

    @property
    def timed_out(self) -> bool:
        return self.ended == "timeout"

    @property
    def spill(self) -> str | None:
        """The file with the whole output, when it was too large for memory."""
        return self.output.spill

    @property
    def truncated(self) -> int:
        """The number of output bytes left out."""
        return self.output.left_out


class Isolation(NamedTuple):
    """The isolation that a backend enforces: one sentence per kind, empty where there is none."""

    backend: str
    files: str = ""
    network: str = ""
    processes: str = ""
    memory: str = ""
    # Isolation that one might expect here, and why it is missing.
    not_enforced: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """The same for JSON and listings."""
        return {
            "backend": self.backend,
            "files": self.files or "not isolated",
            "network": self.network or "not isolated",
            "processes": self.processes or "not isolated",
            "memory": self.memory or "not limited",
            "not_enforced": list(self.not_enforced),
        }


def is_variable_name(name: str) -> bool:
    """Whether a shell can have a variable of that name."""
    return _NAME.fullmatch(name) is not None


def variable_error(name: str) -> ToolError:
    """The error for an invalid variable."""
    return ToolError(f"{name!r:.80} can't be a variable, or not with that value")


def encode_text(text: str) -> bytes:
    """Text as UTF-8; surrogates from undecodable bytes become those bytes again."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise ToolError("the text holds half a character, which no program can be given") from None


def stdin_bytes(stdin: str | bytes | None) -> bytes | None:
    return encode_text(stdin) if isinstance(stdin, str) else stdin
