"""Ends what carries a task's mark, for when the guardian that would have done so was killed."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

from hermes.environments.local.owner import MARK
from hermes.runtime.marked import kill_marked


def sweep(task: str, leader: int) -> None:
    """Kill a command's process group, and whatever else has the task's mark in its environment."""
    if leader > 1:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGKILL)
    kill_marked(MARK, task)
