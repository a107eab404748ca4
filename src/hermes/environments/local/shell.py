"""The shell of this machine, and how texts are handed to it."""

from __future__ import annotations

import os
import shutil

import hermes.environments.shell_state as shell_state
from hermes.core.errors import ToolError, UnavailableError

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


def not_started(failure: OSError, folder: str) -> ToolError:
    """What to say when the system would not start a command."""
    return ToolError(f"the command can't be started in {folder}: {failure.strerror}")
