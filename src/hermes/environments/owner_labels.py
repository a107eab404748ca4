"""Owner labels: mark containers and sandboxes with their owner's pid and start time, so that
orphans can be found.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.environments.host.process_table import start_time

if TYPE_CHECKING:
    from collections.abc import Mapping

TASK, PID, STARTED, MACHINE = "hermes.task", "hermes.pid", "hermes.started", "hermes.machine"


def labels(task: str) -> dict[str, str]:
    """Labels of a container or sandbox that this process makes for a task."""
    pid = os.getpid()
    return {TASK: task, PID: str(pid), STARTED: start_time(pid), MACHINE: _machine()}


def is_stale(owner: Mapping[str, str]) -> bool:
    """Whether the process named by some labels ran on this machine and is gone."""
    pid = owner.get(PID, "")
    if not pid.isdigit() or owner.get(MACHINE) != _machine():
        return False
    return start_time(int(pid)) != owner.get(STARTED)


def _machine() -> str:
    """The boot id: process ids of another machine, or of an earlier boot, mean nothing here."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        import platform

        return platform.node()
