"""Workspace of a task: its files, how they begin and end, the newest one."""

from __future__ import annotations

import os
import shlex
from collections import deque
from typing import TYPE_CHECKING

from hermes.environments.disk.protocol import DiskError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, BinaryIO

    from hermes.core.context import ToolContext
    from hermes.embedded.tools import SmallTool
    from hermes.environments.disk.protocol import Disk


# Files that are scanned, and files that are named in a prompt.
MAX_FILES, PROMPT_FILES = 400, 30
# Folders with generated files.
_GENERATED = frozenset({"node_modules", "__pycache__", "venv", "target", "dist", "build"})

# Interpreters for scripts that are not executable.
_RUNNERS = {".sh": "bash", ".py": "python3", ".js": "node", ".rb": "ruby", ".pl": "perl"}


def files_below(disk: Disk, root: str) -> list[str]:
    """Paths of files relative to a folder, breadth first, without hidden ones."""
    paths: list[str] = []
    waiting = deque([""])
    while waiting and len(paths) < MAX_FILES:
        lead = waiting.popleft()
        try:
            entries = sorted(disk.scan(f"{root}/{lead}".rstrip("/")))
        except OSError:
            continue
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.kind == "folder":
                if entry.name not in _GENERATED:
                    waiting.append(f"{lead}{entry.name}/")
            elif entry.kind in ("file", "link"):
                paths.append(f"{lead}{entry.name}")
    return paths[:MAX_FILES]


def file_list(files: list[str]) -> str:
    """The list of files for the prompt."""
    if not files:
        return "(There are no files here.)"
    shown = ", ".join(files[:PROMPT_FILES])
    more = f", and {len(files) - PROMPT_FILES} more" if len(files) > PROMPT_FILES else ""
    return f"(Files here: {shown}{more})"


def exists(disk: Disk, root: str, path: str) -> bool:
    """Whether a path exists."""
    return disk.status(absolute(root, path)) is not None


def runnable(command: str, disk: Disk, root: str) -> str:
    """The command, with an interpreter before a script that is not executable."""
    first, space, rest = command.partition(" ")
    if not first or shlex.quote(first) != first:
        return command
    runner = _RUNNERS.get(os.path.splitext(first)[1])
    if runner is None:
        # Not a script: `git` is the program, also if a file has this name.
        return command
    status = disk.status(absolute(root, first))
    if status is None or status.kind != "file" or status.mode & 0o111:
        return command
    return f"{runner} {first}{space}{rest}"


def absolute(root: str, path: str) -> str:
    """The absolute path of a path that the model wrote."""
    return os.path.normpath(os.path.join(root, os.path.expanduser(path)))


if TYPE_CHECKING:
    Arguments = Mapping[str, Any]
    Data = dict[str, Any]

# Characters of a first line.
_FIRST = 500
# Only local disks: a request per file takes too long on a remote one.
_NEAR = "local"
_NEWEST = 3


def edges(disk: Disk, root: str, arguments: Arguments, _: Data) -> Data:
    """The first line of each counted file, and whether its last line has no end."""
    return {
        "edges": {str(path): _edges(disk, absolute(root, str(path))) for path in arguments["paths"]}
    }


def _edges(disk: Disk, path: str) -> tuple[str, bool]:
    try:
        with _opened(disk, path) as file:
            first = file.readline(_FIRST).decode(errors="replace").rstrip("\r\n")
            return first, _unended(file)
    except (OSError, DiskError):
        return "", False


def lacks_end(disk: Disk, root: str, path: str) -> bool:
    """Whether the last line of a file has no end: an appended text would continue it."""
    try:
        with _opened(disk, absolute(root, path)) as file:
            return _unended(file)
    except (OSError, DiskError):
        return False


def _opened(disk: Disk, path: str) -> BinaryIO:
    # A disk does not follow links.
    return disk.open(os.path.realpath(path) if disk.label == _NEAR else path)


def _unended(file: BinaryIO) -> bool:
    if file.seek(0, os.SEEK_END) == 0:
        return False
    file.seek(-1, os.SEEK_END)
    return file.read(1) != b"\n"


def newest(disk: Disk, root: str, arguments: Arguments, data: Data) -> Data:
    """The files of a listing that were changed last, with the time."""
    from datetime import datetime

    from hermes.embedded.result_text import paths_of

    if disk.label != _NEAR:
        return {}
    folder = absolute(root, str(arguments["path"]))
    paths = []
    for path, _ in paths_of(str(data.get("tree", ""))):
        status = None if path.endswith("/") else disk.status(os.path.join(folder, path))
        if status is not None:
            paths.append((status.mtime_ns, path))
    paths.sort(key=lambda file: (-file[0], file[1]))
    times = [
        (path, f"{datetime.fromtimestamp(when / 1e9).astimezone():%Y-%m-%d %H:%M}")
        for when, path in paths[:_NEWEST]
    ]
    return {"newest": times} if len(paths) > 1 else {}


def files_of(context: ToolContext) -> list[str]:
    """The files of the workspace."""
    from hermes.environments.for_task import disk_of

    return files_below(disk_of(context), os.path.realpath(context.workspace))


def path_exists(context: ToolContext, path: str) -> bool:
    """Whether a path exists."""
    from hermes.environments.for_task import disk_of

    return exists(disk_of(context), os.path.realpath(context.workspace), path)


def adjusted(context: ToolContext, tool: SmallTool, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments, adjusted to the files: interpreter before a script, line end before a text."""
    from hermes.environments.for_task import disk_of

    disk, root = disk_of(context), os.path.realpath(context.workspace)
    if tool.name == "terminal":
        return {**arguments, "command": runnable(str(arguments["command"]), disk, root)}
    if tool.name == "append_file" and lacks_end(disk, root, str(arguments["path"])):
        # The new text starts on a line of its own.
        return {**arguments, "content": f"\n{arguments['content']}"}
    return arguments


def with_disk_facts(
    context: ToolContext, tool: SmallTool, arguments: dict[str, Any], data: dict[str, Any]
) -> dict[str, Any]:
    """A result with facts from the disk, such as the newest file."""
    from hermes.environments.for_task import disk_of

    if tool.look is None or data.get("exit_code"):
        return data
    return data | tool.look(disk_of(context), os.path.realpath(context.workspace), arguments, data)
