"""Processes of this user for `hermes ps`; labels of containers, so that orphans can be found."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.paths import MARK, home_path, make_private, write_private
from hermes.environments.host.process_table import start_time

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import psutil


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


_numbers = count(1)
_PREFIX = "background."
_MAX_COMMAND = 500
_GUARDIAN_FOLDER = os.path.join("environments", "host")
_GRACE_SECONDS = 1.5


class Notice(NamedTuple):
    """A background command: its name, and its processes on this machine."""

    name: str
    task: str
    command: str
    # Label of the machine it runs on, if that is not this one.
    remote: str
    pids: list[int]


def publish_notice(name: str, task: str, command: str, *, remote: str, pids: Sequence[int]) -> str:
    """Publish a notice; its path, empty if it could not be written."""
    import json

    from hermes.safety.redaction import redact

    notice = Notice(
        name, task.partition("/")[0], redact(command[:_MAX_COMMAND]), remote, list(pids)
    )
    path = home_path("run", f"{_PREFIX}{os.getpid()}.{next(_numbers)}")
    try:
        make_private(os.path.dirname(path))
        with open(path, "w", encoding="utf-8", errors="surrogateescape", opener=_private) as file:
            json.dump({**notice._asdict(), "labels": labels(task)}, file)
    except OSError:
        # A full disk must not keep commands from running.
        return ""
    return path


def remove_notice(path: str) -> None:
    if path:
        with suppress(OSError):
            os.unlink(path)


def notices() -> list[Notice]:
    """The notices of all running Hermes programs of this user."""
    folder = home_path("run")
    try:
        names = sorted(name for name in os.listdir(folder) if name.startswith(_PREFIX))
    except OSError:
        return []
    read = (_read(os.path.join(folder, name)) for name in names)
    return [notice for notice in read if notice is not None]


def record_killer(pid: int, killer: str) -> None:
    """Record who is about to kill a process, for the program that owns it."""
    write_private(home_path("run", f"killed.{pid}"), killer.encode())


def take_killer(pids: Sequence[int]) -> str:
    """The recorded killer of one of some processes; the records are removed."""
    killer = ""
    for pid in pids:
        path = home_path("run", f"killed.{pid}")
        with suppress(OSError):
            with open(path, encoding="utf-8") as file:
                killer = killer or file.read(200).strip()
            remove_notice(path)
    return killer


def _read(path: str) -> Notice | None:
    import json

    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
        if data["labels"][MACHINE] != labels("")[MACHINE]:
            # Process ids of another machine, or of an earlier boot.
            return None
        if is_stale(data["labels"]):
            remove_notice(path)
            return None
        return Notice(*(data[field] for field in Notice._fields))
    except (OSError, ValueError, KeyError, TypeError):
        # Removed or being written at this moment.
        return None


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class ListedProcess:
    """One process, as `hermes ps` shows it."""

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
        # From its notice: the name in the process tool, and the machine if it is another.
        self.called = self.place = ""

    def as_dict(self) -> dict[str, object]:
        """The same for JSON."""
        return {name: getattr(self, name) for name in self.__slots__}


def list_processes() -> list[ListedProcess]:
    """All processes below a guardian, and those with a mark whose guardian is gone."""
    import psutil

    listed: dict[int, ListedProcess] = {}
    guardians = []
    for process in psutil.process_iter():
        try:
            argv = process.cmdline()
            if (
                len(argv) > 2
                and argv[-2].endswith(_GUARDIAN_FOLDER)
                and "guardian.main()" in argv[-3]
            ):
                guardians.append(process)
                continue
            mark = process.environ().get(MARK)
            if mark:
                listed[process.pid] = ListedProcess(process, mark.partition("/")[0])
        except psutil.Error:
            continue
    guardian_pids = {guardian.pid for guardian in guardians}
    for guardian in guardians:
        try:
            below = guardian.children(recursive=True)
        except psutil.Error:
            continue
        for process in below:
            # A sandbox has a guardian of its own inside.
            if process.pid in guardian_pids:
                continue
            try:
                listed.setdefault(process.pid, ListedProcess(process, "?"))
            except psutil.Error:
                continue
    _add_notices(listed)
    return sorted(listed.values(), key=lambda process: process.pid)


def _add_notices(listed: dict[int, ListedProcess]) -> None:
    """Add name, task and machine from the notice of each process or of its nearest ancestor."""
    by_pid = {pid: notice for notice in notices() for pid in notice.pids}
    for process in listed.values():
        ancestor: ListedProcess | None = process
        while ancestor is not None and ancestor.pid not in by_pid:
            ancestor = listed.get(ancestor.parent)
        if ancestor is None:
            continue
        notice = by_pid[ancestor.pid]
        process.called, process.place, process.task = notice.name, notice.remote, notice.task
        if notice.remote:
            process.command = notice.command


def terminate(wanted: Sequence[ListedProcess]) -> list[int]:
    """End processes with all their descendants; the pids that could not be ended."""
    import psutil

    targets: dict[int, psutil.Process] = {}
    noticed = {pid for notice in notices() for pid in notice.pids}
    for listed in wanted:
        # Only for processes with a notice: no program reads the record of others.
        if listed.pid in noticed:
            record_killer(listed.pid, "a person, with hermes ps kill")
        try:
            process = psutil.Process(listed.pid)
            below = process.children(recursive=True)
        except psutil.Error:
            continue
        targets.update({each.pid: each for each in (process, *below)})
    for process in targets.values():
        with suppress(psutil.Error):
            process.terminate()
    _, alive = psutil.wait_procs(list(targets.values()), timeout=_GRACE_SECONDS)
    for process in alive:
        with suppress(psutil.Error):
            process.kill()
    _, alive = psutil.wait_procs(alive, timeout=_GRACE_SECONDS)
    return sorted(process.pid for process in alive)
