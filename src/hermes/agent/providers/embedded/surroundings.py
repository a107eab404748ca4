"""The files of a workspace, as many as a small model can be told of."""

from __future__ import annotations

import os
import shlex
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes.runtime.disk import Disk

# So many are looked at, and so many are named in a request.
LOOKED, NAMED = 400, 30
# Folders that hold what programs made, not what people ask about.
_MADE = frozenset({"node_modules", "__pycache__", "venv", "target", "dist", "build"})

# What runs a script that may not be run by its name.
_RUNNERS = {".sh": "bash", ".py": "python3", ".js": "node", ".rb": "ruby", ".pl": "perl"}


def files_below(disk: Disk, root: str) -> list[str]:
    """Paths of files relative to a folder, those nearest to it first; hidden ones left out."""
    found: list[str] = []
    waiting = deque([""])
    while waiting and len(found) < LOOKED:
        lead = waiting.popleft()
        try:
            entries = sorted(disk.scan(f"{root}/{lead}".rstrip("/")))
        except OSError:
            continue
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.kind == "folder":
                if entry.name not in _MADE:
                    waiting.append(f"{lead}{entry.name}/")
            elif entry.kind in ("file", "link"):
                found.append(f"{lead}{entry.name}")
    return found[:LOOKED]


def file_list(files: list[str]) -> str:
    """The line that tells the model what is there."""
    if not files:
        return "(There are no files here.)"
    shown = ", ".join(files[:NAMED])
    more = f", and {len(files) - NAMED} more" if len(files) > NAMED else ""
    return f"(Files here: {shown}{more})"


def there(disk: Disk, root: str, path: str) -> bool:
    """Whether there is anything at a path."""
    return disk.status(place(root, path)) is not None


def runnable(command: str, disk: Disk, root: str) -> str:
    """A command that begins with a script, with what runs it before it if the script can't be."""
    first, space, rest = command.partition(" ")
    if not first or shlex.quote(first) != first:
        return command
    runner = _RUNNERS.get(os.path.splitext(first)[1])
    if runner is None:
        # `git` is the program of that name, whatever lies here, and a text is no script.
        return command
    status = disk.status(place(root, first))
    if status is None or status.kind != "file" or status.mode & 0o111:
        return command
    return f"{runner} {first}{space}{rest}"


def place(root: str, path: str) -> str:
    """Where a path of the model leads."""
    return os.path.normpath(os.path.join(root, os.path.expanduser(path)))
