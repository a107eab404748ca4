"""Owner labels: mark containers and sandboxes with their owner's pid and start time, so that
orphans can be found.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

TASK, PID, STARTED, MACHINE = "hermes.task", "hermes.pid", "hermes.started", "hermes.machine"


def labels(task: str) -> dict[str, str]:
    """What tells one of ours from others, and whose it is."""
    pid = os.getpid()
    return {TASK: task, PID: str(pid), STARTED: _started(pid), MACHINE: _machine()}


def is_stale(found: Mapping[str, str]) -> bool:
    """Whether the program that made it ran on this machine and is gone."""
    pid = found.get(PID, "")
    if not pid.isdigit() or found.get(MACHINE) != _machine():
        return False
    return _started(int(pid)) != found.get(STARTED)


def _started(pid: int) -> str:
    """When a process began, as the system counts; empty when there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            words = file.read().rpartition(b")")[2].split()
    except FileNotFoundError:
        return ""
    except OSError:
        return "unknown"
    return "" if words[0] in (b"Z", b"X") else words[19].decode()


def _machine() -> str:
    """This machine since it was last started; process numbers mean nothing elsewhere."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        import platform

        return platform.node()
