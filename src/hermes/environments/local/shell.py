"""The shell of this machine, and how texts are handed to it."""

from __future__ import annotations

import os
import shutil

import hermes.environments.shell_state as shell_state
from hermes.core.errors import ToolError, UnavailableError

# What a terminal holds for a program that does not read yet.
MOST_TYPED = 4000
_scripts: dict[tuple[bool, bool, bool], bytes] = {}
_found: tuple[bytes, bool] | None = None


def script(bash: bool, long: bool, keep_state: bool) -> bytes:
    """What the shell is to run, around the command."""
    key = bash, long, keep_state
    if key not in _scripts:
        _scripts[key] = shell_state.wrapped(bash=bash, long=long, keep=keep_state).encode()
    return _scripts[key]


def shell() -> tuple[bytes, bool]:
    """The shell to run commands with, and whether it is bash."""
    global _found
    if _found is None:
        bash = shutil.which("bash")
        path = bash or shutil.which("sh")
        if path is None:
            raise UnavailableError("there is no shell to run commands with", hint="Install bash.")
        _found = os.fsencode(path), bash is not None
    return _found


def typed_bytes(stdin: str | bytes) -> bytes:
    """What is typed into a terminal at the start."""
    data = as_bytes(stdin) if isinstance(stdin, str) else stdin
    if len(data) > MOST_TYPED:
        raise ToolError(
            f"a terminal takes no more than {MOST_TYPED} bytes at once",
            hint="Leave pty out, or give the rest with process write.",
        )
    return data


def as_bytes(text: str) -> bytes:
    """A text as programs are given it."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise ToolError("the text holds half a character, which no program can be given") from None


def not_started(failure: OSError, folder: str) -> ToolError:
    """What to say when the system would not start a command."""
    return ToolError(f"the command can't be started in {folder}: {failure.strerror}")
