"""Every process on this machine that a Hermes of this person started, whichever program it is."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from hermes.environments.local.noticeboard import leave_word, notices
from hermes.environments.local.owner import MARK

if TYPE_CHECKING:
    from collections.abc import Sequence

    import psutil

_FOLDER = os.path.join("environments", "local")
_GRACE_SECONDS = 1.5


class Found:
    """One process, with what a person wants to know of it."""

    __slots__ = (
        "called", "command", "cpu_seconds", "memory", "name", "parent", "pid", "place", "seconds",
        "task",
    )  # fmt: skip

    def __init__(self, process: psutil.Process, task: str) -> None:
        with process.oneshot():
            self.pid = process.pid
            self.task = task
            self.name = process.name()
            self.command = " ".join(process.cmdline()) or self.name
            times = process.cpu_times()
            self.cpu_seconds = float(times.user + times.system)
            self.memory = int(process.memory_info().rss)
            self.seconds = max(0.0, time.time() - process.create_time())
            self.parent = process.ppid()
        # The name that the process tool has for it, and where it runs when that is not here.
        self.called = self.place = ""

    def as_dict(self) -> dict[str, object]:
        """The same for programs."""
        return {name: getattr(self, name) for name in self.__slots__}


def census() -> list[Found]:
    """What guardians watch over, and what carries a mark though its guardian is gone."""
    import psutil

    found: dict[int, Found] = {}
    guardians = []
    for process in psutil.process_iter():
        try:
            words = process.cmdline()
            if len(words) > 2 and words[-2].endswith(_FOLDER) and "guardian.main()" in words[-3]:
                guardians.append(process)
                continue
            mark = process.environ().get(MARK)
            if mark:
                found[process.pid] = Found(process, mark.partition("/")[0])
        except psutil.Error:
            continue
    watchers = {guardian.pid for guardian in guardians}
    for guardian in guardians:
        try:
            below = guardian.children(recursive=True)
        except psutil.Error:
            continue
        for process in below:
            # A sandbox has a guardian of its own inside.
            if process.pid in watchers:
                continue
            try:
                found.setdefault(process.pid, Found(process, "?"))
            except psutil.Error:
                continue
    _name(found)
    return sorted(found.values(), key=lambda one: one.pid)


def _name(found: dict[int, Found]) -> None:
    """Add what the running programs tell of their commands."""
    told = {pid: notice for notice in notices() for pid in notice.pids}
    for one in found.values():
        above: Found | None = one
        while above is not None and above.pid not in told:
            above = found.get(above.parent)
        if above is None:
            continue
        notice = told[above.pid]
        one.called, one.place, one.task = notice.name, notice.place, notice.task
        if notice.place:
            one.command = notice.command


def end(wanted: Sequence[Found]) -> list[int]:
    """End processes and everything below them; those that could not be ended."""
    import psutil

    doomed: dict[int, psutil.Process] = {}
    awaited = {pid for notice in notices() for pid in notice.pids}
    for one in wanted:
        # For whoever started it: they will want to know. Nobody reads what is left of others.
        if one.pid in awaited:
            leave_word(one.pid, "a person, with hermes ps kill")
        try:
            process = psutil.Process(one.pid)
            below = process.children(recursive=True)
        except psutil.Error:
            continue
        doomed.update({each.pid: each for each in (process, *below)})
    for process in doomed.values():
        _send(process, kill=False)
    _, alive = psutil.wait_procs(list(doomed.values()), timeout=_GRACE_SECONDS)
    for process in alive:
        _send(process, kill=True)
    _, alive = psutil.wait_procs(alive, timeout=_GRACE_SECONDS)
    return sorted(process.pid for process in alive)


def _send(process: psutil.Process, *, kill: bool) -> None:
    import psutil

    try:
        if kill:
            process.kill()
        else:
            process.terminate()
    except psutil.Error:
        return
