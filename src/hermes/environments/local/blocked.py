"""Whether a process waits for somebody to type, as far as the system says."""

from __future__ import annotations

import os

# Calls in which a program waits for input on a file that it names first.
_READS = frozenset({"0", "45", "63", "207"})  # read, recvfrom on x86-64; read, recvfrom on arm64


def waits_for_input(pids: list[int], places: tuple[str, ...]) -> bool | None:
    """Whether one of the processes is blocked reading a file whose name begins with a place.

    None where the system does not say.
    """
    known = False
    for pid in pids:
        try:
            with open(f"/proc/{pid}/syscall", encoding="ascii") as file:
                number, *arguments = file.read().split()
            if number == "running":
                known = True
                continue
            if number not in _READS or not arguments:
                known = known or bool(arguments)
                continue
            known = True
            target = os.readlink(f"/proc/{pid}/fd/{int(arguments[0], 16)}")
        except (OSError, ValueError):
            continue
        if target.startswith(places):
            return True
    return False if known else None


def hides_typing(terminal: int) -> bool:
    """Whether a terminal shows nothing of the line that is typed, as for a password."""
    import termios

    modes: int = termios.tcgetattr(terminal)[3]
    # Editors and shells show nothing either, but don't take whole lines.
    return bool(modes & termios.ICANON) and not modes & termios.ECHO


def idle(pids: list[int]) -> bool:
    """Whether all of the processes sleep; False where the system does not say."""
    seen = False
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                state = file.read().rpartition(b")")[2].split(None, 1)[0]
        except OSError:
            continue
        if state not in (b"S", b"Z", b"T"):
            return False
        seen = True
    return seen
