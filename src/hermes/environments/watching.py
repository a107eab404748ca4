"""Remarks on the machine that a command should know of: a full disk, a busy background."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.environments.beside import Background

_LITTLE = 200 * 1024 * 1024
_PERCENT = 0.01
# A background command that took more of a core than this, for so long, is worth a word.
BUSY_SHARE = 0.9
BUSY_SECONDS = 30.0


def disk_note(folder: str) -> list[str]:
    """A warning when the disk below a folder is nearly full."""
    try:
        state = os.statvfs(folder)
    except OSError:
        return []
    free = state.f_bavail * state.f_frsize
    whole = state.f_blocks * state.f_frsize
    if not whole or free >= max(_LITTLE, min(_PERCENT * whole, 5 * _LITTLE)):
        return []
    return [f"the disk is nearly full: {free // 1_000_000} MB free"]


def burning(running: Sequence[Background], seen: dict[int, tuple[float, float]]) -> list[str]:
    """A word on each background command that has kept a core busy since it was last looked at.

    `seen` is the caller's to keep: when each was looked at, and the CPU time it had used by then.
    """
    notes = []
    now = time.monotonic()
    for one in running:
        before = seen.get(one.pid)
        if before is not None and now - before[0] < BUSY_SECONDS:
            continue
        used = sum(map(_cpu_seconds, one.here()))
        seen[one.pid] = now, used
        if before is not None and (used - before[1]) / (now - before[0]) > BUSY_SHARE:
            notes.append(f"{one.name} (pid {one.pid}) in the background keeps a CPU core busy")
    return notes


def _cpu_seconds(pid: int) -> float:
    import psutil

    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)
