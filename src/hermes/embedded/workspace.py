"""Workspace of a task: its files, how they begin and end, the newest one."""

from __future__ import annotations

import os
import shlex
from collections import deque
from typing import TYPE_CHECKING

from hermes.environments.disk import DiskError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, BinaryIO

    from hermes.core.context import ToolContext
    from hermes.embedded.tools import SmallTool
    from hermes.environments.disk import Disk


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


if TYPE_CHECKING:
    Arguments = Mapping[str, Any]
    Data = dict[str, Any]

# As much of a first line as tells whether it is a heading.
_FIRST = 500
# Looking at each file of a far disk would take longer than the call.
_NEAR = "local"
_NEWEST = 3


def edges(disk: Disk, root: str, given: Arguments, _: Data) -> Data:
    """The first line of each file that was counted, and whether its last line lacks an end."""
    return {"edges": {str(path): _edges(disk, place(root, str(path))) for path in given["paths"]}}


def _edges(disk: Disk, where: str) -> tuple[str, bool]:
    try:
        with _opened(disk, where) as file:
            first = file.readline(_FIRST).decode(errors="replace").rstrip("\r\n")
            return first, _unended(file)
    except (OSError, DiskError):
        return "", False


def lacks_end(disk: Disk, root: str, path: str) -> bool:
    """Whether the last line of a file has no end, so that what is added would continue it."""
    try:
        with _opened(disk, place(root, path)) as file:
            return _unended(file)
    except (OSError, DiskError):
        return False


def _opened(disk: Disk, where: str) -> BinaryIO:
    # A disk opens no links.
    return disk.open(os.path.realpath(where) if disk.label == _NEAR else where)


def _unended(file: BinaryIO) -> bool:
    if file.seek(0, os.SEEK_END) == 0:
        return False
    file.seek(-1, os.SEEK_END)
    return file.read(1) != b"\n"


def newest(disk: Disk, root: str, given: Arguments, data: Data) -> Data:
    """Which of the files in a listing were changed last, and when."""
    from datetime import datetime

    from hermes.embedded.result_text import paths_of

    if disk.label != _NEAR:
        return {}
    folder = place(root, str(given["path"]))
    found = []
    for path, _ in paths_of(str(data.get("tree", ""))):
        status = None if path.endswith("/") else disk.status(os.path.join(folder, path))
        if status is not None:
            found.append((status.mtime_ns, path))
    found.sort(key=lambda one: (-one[0], one[1]))
    times = [
        (path, f"{datetime.fromtimestamp(when / 1e9).astimezone():%Y-%m-%d %H:%M}")
        for when, path in found[:_NEWEST]
    ]
    return {"newest": times} if len(found) > 1 else {}


def files_of(context: ToolContext) -> list[str]:
    """The files of the workspace."""
    from hermes.environments import disk_of

    return files_below(disk_of(context), os.path.realpath(context.workspace))


def is_there(context: ToolContext, path: str) -> bool:
    """Whether there is anything at a path."""
    from hermes.environments import disk_of

    return there(disk_of(context), os.path.realpath(context.workspace), path)


def fitted(context: ToolContext, tool: SmallTool, given: dict[str, Any]) -> dict[str, Any]:
    """What is given, as it has to be for the files there are."""
    from hermes.environments import disk_of

    disk, root = disk_of(context), os.path.realpath(context.workspace)
    if tool.name == "terminal":
        return {**given, "command": runnable(str(given["command"]), disk, root)}
    if tool.name == "append_file" and lacks_end(disk, root, str(given["path"])):
        # The new text begins a line of its own.
        return {**given, "content": f"\n{given['content']}"}
    return given


def looked(
    context: ToolContext, tool: SmallTool, given: dict[str, Any], data: dict[str, Any]
) -> dict[str, Any]:
    """A result with what a look at the disk adds to it."""
    from hermes.environments import disk_of

    if tool.look is None or data.get("exit_code"):
        return data
    return data | tool.look(disk_of(context), os.path.realpath(context.workspace), given, data)
