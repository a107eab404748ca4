"""One command as it was asked for: made once, at the front, and handed on as it is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hermes.core.context import Cancellation

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
