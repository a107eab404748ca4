"""Process table: parents, groups, start times and marks of processes, from `/proc` or `ps`.

The guardian imports it by its short name, so nothing of Hermes is imported here.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from typing import Protocol, TypeVar

    class Marked(Protocol):
        """A command with a mark."""

        mark: int
        pid: int

    Owner = TypeVar("Owner", bound=Marked)


LINUX = sys.platform == "linux"


# Bits of a mark: this one, the guardian's pid, the low bits of its start time, a counter. The pid
# is 0 for detached commands and for those in a sandbox, which no guardian out here owns.
_MARK = 1 << 62
_PID, _START, _COUNT = 22, 20, 20
_LIMIT = "Max realtime timeout"


class Marks:
    """Marks: numbers in a resource limit (RLIMIT_RTTIME) that all children of a command inherit.

    A mark identifies the command of a process that has left its session and cleared its
    environment, even after the guardian was killed. The values are too large to limit anything.
    """

    def __init__(self, pid: int) -> None:
        import resource

        self._set = resource.setrlimit
        self._set_of = resource.prlimit
        self._kind = resource.RLIMIT_RTTIME
        self._no_limit = resource.RLIM_INFINITY
        self._initial = resource.getrlimit(self._kind)
        self._prefix = prefix(pid) if pid else _MARK
        self._last = 0

    def next(self, commands: Iterable[Marked]) -> int:
        """Set an unused mark for the next child; 0 where the limit is in use already."""
        if self._initial != (self._no_limit, self._no_limit):
            return 0
        used = {command.mark for command in commands}
        while True:
            self._last = self._last % ((1 << _COUNT) - 1) + 1
            if self._prefix + self._last not in used:
                break
        self._set(self._kind, (self._prefix + self._last, self._no_limit))
        return self._prefix + self._last

    def done(self) -> None:
        """Reset the limit after the child was started."""
        self._set(self._kind, self._initial)

    def free(self, mark: int, pids: Iterable[int]) -> int:
        """Give processes a mark without a guardian, so that they may outlive it; the new mark."""
        freed = _MARK + mark % (1 << _COUNT) if mark else 0
        for pid in pids if mark else ():
            try:
                self._set_of(pid, self._kind, (freed, self._no_limit))
            except (ProcessLookupError, PermissionError):
                continue
        return freed

    def owner(self, pid: int, commands: Collection[Owner]) -> Owner | None:
        """The command of a process: by its mark, else by its session."""
        try:
            session = os.getsid(pid)
        except OSError:
            return None
        mark = mark_of(pid)
        for command in commands:
            if command.mark and command.mark == mark:
                return command
        for command in commands:
            if command.pid == session:
                return command
        return None


def prefix(pid: int) -> int:
    """The common high bits of all marks of a guardian."""
    start = start_time(pid)
    low_bits = int(start) % (1 << _START) if start.isdigit() else 0
    return _MARK + ((pid << _START) + low_bits << _COUNT)


def mark_of(pid: int) -> int:
    """The mark of a process; 0 without one."""
    try:
        with open(f"/proc/{pid}/limits", encoding="ascii", errors="replace") as file:
            text = file.read()
    except OSError:
        return 0
    at = text.find(_LIMIT)
    words = text[at + len(_LIMIT) : at + 60].split()
    return int(words[0]) if at >= 0 and words and words[0].isdigit() else 0


def start_time(pid: int) -> str:
    """Start time of a process in clock ticks; empty when it is gone, `unknown` without `/proc`."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The program's name, in parentheses, may contain anything.
            fields = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return "" if os.path.isdir("/proc/self") else "unknown"
    except OSError:
        return "unknown"
    return "" if fields[0] in (b"Z", b"X") else fields[19].decode()


def sweep(wanted: int = 0) -> list[int]:
    """Kill the orphans of the guardian with that prefix, or of all that are gone; their pids."""
    killed: list[int] = []
    while LINUX:
        # A killed process may have forked just before: look again until none is left.
        orphans = [pid for pid in _pids() if pid not in killed and _is_orphan(pid, wanted)]
        if not orphans:
            break
        for pid in orphans:
            kill(pid, 9)
        killed += orphans
    return killed


def _is_orphan(pid: int, wanted: int) -> bool:
    mark = mark_of(pid)
    begin = mark >> _COUNT << _COUNT
    guardian = begin >> _START + _COUNT & (1 << _PID) - 1
    if not mark & _MARK or not guardian or pid == os.getpid():
        return False
    if wanted:
        return begin == wanted
    try:
        # A guardian in a container has another pid out here.
        if os.readlink(f"/proc/{pid}/ns/pid") != os.readlink("/proc/self/ns/pid"):
            return False
    except OSError:
        return False
    return prefix(guardian) != begin


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def children() -> list[int]:
    me = os.getpid()
    try:
        with open(f"/proc/self/task/{me}/children", encoding="ascii") as file:
            return [int(pid) for pid in file.read().split()]
    except OSError:
        return [pid for pid, parent in parent_of_each().items() if parent == me]


def parent_of_each() -> dict[int, int]:
    """The parent of each live process; zombies are left out."""
    parents: dict[int, int] = {}
    if not LINUX:
        return {pid: parent for pid, parent, _ in _ps()}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                state, parent, *_ = file.read().rpartition(b")")[2].split(None, 2)
        except OSError:
            continue
        if state not in (b"Z", b"X"):
            parents[int(name)] = int(parent)
    return parents


def group(leader: int) -> set[int]:
    """The members of a process group; for systems without a subreaper."""
    return {pid for pid, _, group in _ps() if group == leader}


def _ps() -> list[tuple[int, int, int]]:
    with os.popen("ps -axo pid=,ppid=,pgid=,stat=") as listing:
        rows = [line.split() for line in listing]
    return [(int(r[0]), int(r[1]), int(r[2])) for r in rows if len(r) == 4 and r[3][0] != "Z"]


def kill(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def become_subreaper() -> None:
    import ctypes

    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
