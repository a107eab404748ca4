"""Process listing for `hermes ps`: processes of all Hermes programs of this user, and the notices
that name them.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.home import home_path, make_private, write_private
from hermes.environments.env_vars import MARK
from hermes.environments.owner_labels import MACHINE, is_stale, labels

if TYPE_CHECKING:
    from collections.abc import Sequence

    import psutil


_numbers = count(1)
_LONGEST = 500


class Notice(NamedTuple):
    """One command: what it is called, and the processes here that are it or hold it."""

    name: str
    task: str
    command: str
    # Where it runs, when that is not here.
    place: str
    pids: list[int]


def put_up(name: str, task: str, command: str, *, place: str, pids: Sequence[int]) -> str:
    """Tell of a command; what to take down when it has ended, empty where the disk is full."""
    import json

    from hermes.safety.redaction import redact

    said = {
        "name": name,
        "task": task.partition("/")[0],
        "command": redact(command[:_LONGEST]),
        "place": place,
        "pids": list(pids),
        "labels": labels(task),
    }
    path = home_path("run", f"beside.{os.getpid()}.{next(_numbers)}")
    try:
        make_private(os.path.dirname(path))
        with open(path, "w", encoding="utf-8", errors="surrogateescape", opener=_private) as file:
            json.dump(said, file)
    except OSError:
        # A full disk is no reason not to run anything.
        return ""
    return path


def take_down(path: str) -> None:
    """The command has ended."""
    if path:
        with suppress(OSError):
            os.unlink(path)


def notices() -> list[Notice]:
    """What all running Hermes programs of this person tell of."""
    folder = home_path("run")
    try:
        names = sorted(name for name in os.listdir(folder) if name.startswith("beside."))
    except OSError:
        return []
    found = (_read(os.path.join(folder, name)) for name in names)
    return [one for one in found if one is not None]


def leave_word(pid: int, who: str) -> None:
    """Say who is about to end a process, for the program that it belongs to."""
    write_private(home_path("run", f"killed.{pid}"), who.encode())


def who_ended(pids: Sequence[int]) -> str:
    """Who ended one of some processes, where they left word; all of that is taken down."""
    found = ""
    for pid in pids:
        path = home_path("run", f"killed.{pid}")
        with suppress(OSError):
            with open(path, encoding="utf-8") as file:
                found = found or file.read(200).strip()
            take_down(path)
    return found


def _read(path: str) -> Notice | None:
    import json

    try:
        with open(path, encoding="utf-8") as file:
            said = json.load(file)
        if said["labels"][MACHINE] != labels("")[MACHINE]:
            # Of another machine, or from before this one was started: their numbers mean nothing.
            return None
        if is_stale(said["labels"]):
            take_down(path)
            return None
        return Notice(*(said[field] for field in Notice._fields))
    except (OSError, ValueError, KeyError, TypeError):
        # Taken down meanwhile, or just being written.
        return None


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


_FOLDER = os.path.join("environments", "host")
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
