"""Where each Hermes puts up what runs beside its commands, for a person to see: `hermes ps`.

The processes of this machine can be seen without it, but not what they are called, nor what a
connection to another place is good for. A notice is a small file, taken down when its command has
ended; those of a Hermes that is gone are taken down by whoever reads them.
"""

from __future__ import annotations

import os
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.home import home_path, make_private, write_private
from hermes.environments.owning import MACHINE, is_stale, labels

if TYPE_CHECKING:
    from collections.abc import Sequence

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
