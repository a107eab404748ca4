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
        """A command, as far as its mark is concerned."""

        mark: int
        pid: int

    Owner = TypeVar("Owner", bound=Marked)


LINUX = sys.platform == "linux"


# A mark has this bit, the guardian's number and the end of the time it began at, and a count. Where
# the number is 0 there is no guardian: what was detached, and what runs in a sandbox.
_MARK = 1 << 62
_PID, _BEGUN, _COUNT = 22, 20, 20
_LIMIT = "Max realtime timeout"


class Marks:
    """A number in a limit that nobody reaches, inherited by all that a command starts.

    It tells whose a process is when it has left its session and cleared its environment, and even
    when we are gone.
    """

    def __init__(self, pid: int) -> None:
        import resource

        self._set = resource.setrlimit
        self._set_of = resource.prlimit
        self._kind = resource.RLIMIT_RTTIME
        self._no_limit = resource.RLIM_INFINITY
        self._usual = resource.getrlimit(self._kind)
        self._prefix = prefix(pid) if pid else _MARK
        self._last = 0

    def next(self, commands: Iterable[Marked]) -> int:
        """Give what is started next a mark of its own; 0 where that can't be."""
        if self._usual != (self._no_limit, self._no_limit):
            return 0
        used = {command.mark for command in commands}
        while True:
            self._last = self._last % ((1 << _COUNT) - 1) + 1
            if self._prefix + self._last not in used:
                break
        self._set(self._kind, (self._prefix + self._last, self._no_limit))
        return self._prefix + self._last

    def done(self) -> None:
        """Start nothing more with the last mark."""
        self._set(self._kind, self._usual)

    def free(self, mark: int, pids: Iterable[int]) -> int:
        """Let processes live on when we are gone; the mark that they have from now on."""
        freed = _MARK + mark % (1 << _COUNT) if mark else 0
        for pid in pids if mark else ():
            try:
                self._set_of(pid, self._kind, (freed, self._no_limit))
            except (ProcessLookupError, PermissionError):
                continue
        return freed

    def owner(self, pid: int, commands: Collection[Owner]) -> Owner | None:
        """Whose a process is: by its mark, else by its session."""
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
    """What the marks of a guardian begin with."""
    begun = int(begun_at(pid) or 0) % (1 << _BEGUN)
    return _MARK + ((pid << _BEGUN) + begun << _COUNT)


def mark_of(pid: int) -> int:
    """The mark of a process; 0 when it has none."""
    try:
        with open(f"/proc/{pid}/limits", encoding="ascii", errors="replace") as file:
            text = file.read()
    except OSError:
        return 0
    at = text.find(_LIMIT)
    words = text[at + len(_LIMIT) : at + 60].split()
    return int(words[0]) if at >= 0 and words and words[0].isdigit() else 0


def begun_at(pid: int) -> str:
    """When a process began, as the system counts; empty when there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            words = file.read().rpartition(b")")[2].split()
    except OSError:
        return ""
    return "" if words[0] in (b"Z", b"X") else words[19].decode()


def sweep(first: int = 0) -> list[int]:
    """Kill what has marks that begin so, or those of guardians that are gone; which that was."""
    killed: list[int] = []
    while LINUX:
        # Whoever is killed may just have started another.
        found = [pid for pid in _pids() if pid not in killed and _is_left(pid, first)]
        if not found:
            break
        for pid in found:
            kill(pid, 9)
        killed += found
    return killed


def _is_left(pid: int, first: int) -> bool:
    mark = mark_of(pid)
    begin = mark >> _COUNT << _COUNT
    guardian = begin >> _BEGUN + _COUNT & (1 << _PID) - 1
    if not mark & _MARK or not guardian or pid == os.getpid():
        return False
    if first:
        return begin == first
    try:
        # A guardian in a container is not seen by its own number from out here.
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
    """Each process and its parent; what has ended and was not reaped is left out."""
    found: dict[int, int] = {}
    if not LINUX:
        return {pid: parent for pid, parent, _ in _ps()}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                # The name of the program, in parentheses, may hold anything.
                state, above, *_ = file.read().rpartition(b")")[2].split(None, 2)
        except OSError:
            continue
        if state not in (b"Z", b"X"):
            found[int(name)] = int(above)
    return found


def group(leader: int) -> set[int]:
    """The processes of a group; only asked where there are no subreapers."""
    return {pid for pid, _, group in _ps() if group == leader}


def _ps() -> list[tuple[int, int, int]]:
    with os.popen("ps -axo pid=,ppid=,pgid=,stat=") as answer:
        rows = [line.split() for line in answer]
    return [(int(r[0]), int(r[1]), int(r[2])) for r in rows if len(r) == 4 and r[3][0] != "Z"]


def kill(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def become_subreaper() -> None:
    import ctypes

    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
