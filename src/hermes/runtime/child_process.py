"""Child processes: the allow-list of environment variables they inherit, and killing all that
carry a marker variable.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


_PASSED = ("PATH", "HOME", "LANG", "LANGUAGE", "TERM", "TMPDIR", "USER", "LOGNAME", "SHELL")
# Without these a process on Windows does not even start.
_PASSED_WINDOWS = ("SYSTEMROOT", "PATHEXT", "COMSPEC", "TEMP", "TMP", "USERPROFILE", "WINDIR")


def child_environment(
    declared: Iterable[str], task_env: Mapping[str, str | None]
) -> dict[str, str]:
    """Environment of a child process: allow-listed and declared variables, and the task's own."""
    passed = {*_PASSED, *declared, *(_PASSED_WINDOWS if os.name == "nt" else ())}
    env = {
        name: value
        for name, value in os.environ.items()
        if name in passed or name.startswith("LC_")
    }
    for name, setting in task_env.items():
        if setting is None:
            env.pop(name, None)
        else:
            env[name] = setting
    return env


# Windows has one way to end a process.
KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
# How often in a row nothing has to be seen, how long between two looks, and how often at most.
_LOOKS, _BETWEEN_LOOKS, _MOST_LOOKS = 3, 0.004, 100


def marked(variable: str, value: str) -> list[int]:
    """The processes that have this variable."""
    wanted = f"{variable}={value}".encode()
    found: list[int] = []
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except FileNotFoundError:
        return found
    for pid in pids:
        # One may have ended meanwhile, or be somebody else's.
        with suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
            if wanted in file.read().split(b"\0"):
                found.append(pid)
    return found


def kill_marked(variable: str, value: str) -> None:
    """Kill all of them, until looking again and again shows nothing more.

    A process that is just becoming another program shows no mark for an instant.
    """
    unseen = 0
    for _ in range(_MOST_LOOKS):
        found = marked(variable, value)
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, KILL)
        unseen = 0 if found else unseen + 1
        if unseen == _LOOKS:
            return
        time.sleep(_BETWEEN_LOOKS)
