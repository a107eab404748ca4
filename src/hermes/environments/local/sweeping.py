"""Ends what carries a task's mark, for when the guardian that would have done so was killed."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

from hermes.environments.local.owner import MARK


def sweep(task: str, leader: int) -> None:
    """Kill a command's process group, and whatever else has the task's mark in its environment."""
    if leader > 1:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGKILL)
    for pid in marked(task):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def marked(task: str) -> list[int]:
    """The processes that carry a task's mark; seen on Linux only."""
    wanted = f"{MARK}={task}".encode()
    found: list[int] = []
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except FileNotFoundError:
        return found
    for pid in pids:
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if wanted in file.read().split(b"\0"):
                    found.append(pid)
        except OSError:
            # Ended meanwhile, or somebody else's.
            continue
    return found
