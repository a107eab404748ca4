"""What the system says of processes: parents, groups, and whose a process is.

For the guardian, which imports it by its short name; so nothing of Hermes is imported here.
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


class Marks:
    """A number in a limit that nobody uses, inherited by all that a command starts.

    It tells whose a process is when it has left its session and cleared its environment.
    """

    def __init__(self) -> None:
        import resource

        self._set = resource.setrlimit
        self._kind = resource.RLIMIT_MSGQUEUE
        _, self._hard = resource.getrlimit(self._kind)
        self._top = self._hard if self._hard != resource.RLIM_INFINITY else 1 << 40
        self._last = 0

    def next(self, commands: Iterable[Marked]) -> int:
        """Give what is started next a mark of its own; 0 where that can't be."""
        if self._top < 100_000:
            return 0
        used = {command.mark for command in commands}
        while True:
            self._last = self._last % (self._top // 2) + 1
            if self._top - self._last not in used:
                break
        mark = self._top - self._last
        self._set(self._kind, (mark, self._hard))
        return mark

    def owner(self, pid: int, commands: Collection[Owner]) -> Owner | None:
        """Whose a process is: by its mark, else by its session."""
        try:
            with open(f"/proc/{pid}/limits", encoding="ascii", errors="replace") as file:
                text = file.read()
            session = os.getsid(pid)
        except OSError:
            return None
        at = text.find("Max msgqueue size")
        words = text[at : at + 60].split()
        mark = int(words[3]) if at >= 0 and len(words) > 3 and words[3].isdigit() else -1
        for command in commands:
            if command.mark and command.mark == mark:
                return command
        for command in commands:
            if command.pid == session:
                return command
        return None


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
