"""Tools of the embedded model: short signatures for the model, real calls for the runtime; the
files of the workspace.
"""

from __future__ import annotations

import os
import re
import shlex
from collections import deque
from typing import TYPE_CHECKING

from hermes.embedded import result_text
from hermes.embedded.arithmetic import program
from hermes.embedded.result_text import listed
from hermes.environments.disk.protocol import DiskError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, BinaryIO

    from hermes.core.context import ToolContext
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


# Words up to this length are too common to search for.
_COMMON_LENGTH = 3


def append(arguments: Arguments) -> dict[str, Any]:
    """Append a text as lines of its own."""
    text = shlex.quote(str(arguments["content"]).rstrip("\n"))
    return {"command": f"printf '%s\\n' {text} >> {shlex.quote(str(arguments['path']))}"}


def copy_or_move(command: str, arguments: Arguments) -> dict[str, Any]:
    """Copy or move; the target folder is created."""
    path, to = str(arguments["path"]), str(arguments["to"])
    folder = to if into_folder(arguments) else os.path.dirname(to)
    create = f"mkdir -p -- {shlex.quote(folder)} && " if folder else ""
    return {"command": f"{create}{command} -- {shlex.quote(path)} {shlex.quote(to)}"}


def into_folder(arguments: Arguments) -> bool:
    """Whether the target of a copy or move is a folder, existing or not."""
    path, to = str(arguments["path"]), str(arguments["to"])
    # `backup` is a folder if the source has an extension and it has none.
    is_folder = os.path.splitext(path)[1] and not os.path.splitext(to)[1]
    return to.endswith("/") or bool(is_folder)


def calculate(arguments: Arguments) -> dict[str, Any]:
    """Calculate an expression."""
    # The grammar allows only numbers and functions of them.
    return {
        "command": f"python3 -c {shlex.quote(program(str(arguments['expression'])))}",
        "timeout": 20,
    }


def write(arguments: Arguments) -> dict[str, Any]:
    """Write a file; its last line gets a line end."""
    content = str(arguments["content"])
    return {
        "path": arguments["path"],
        "content": content if content.endswith("\n") else f"{content}\n",
    }


def patch(arguments: Arguments) -> dict[str, Any]:
    """Replace every occurrence of a text."""
    old, new = str(arguments["old"]), str(arguments["new"])
    if " " in old and re.search(r"\w\.$", new) and old[-1:] != "." and new[:-1] != old:
        # Small models add a full stop to a corrected line.
        new = new[:-1]
    return {
        "path": arguments["path"], "old_string": old, "new_string": new, "replace_all": True,
    }  # fmt: skip


def count(arguments: Arguments) -> dict[str, Any]:
    """Count lines and words of each file; `workspace.edges` adds a last line without an end."""
    paths = dict.fromkeys(map(str, arguments["paths"]))
    return {"command": f"wc -lw -- {' '.join(map(shlex.quote, paths))}"}


def search_words(arguments: Arguments) -> dict[str, Any]:
    """Arguments of a search for the longer words of a text; empty if it is one word."""
    words = [
        word
        for word in re.findall(r"[^\W_]+", str(arguments["text"]))
        if len(word) > _COMMON_LENGTH
    ]
    if len(str(arguments["text"]).split()) < 2 or not words:
        return {}
    return {"pattern": "|".join(map(re.escape, words)), "ignore_case": True}


if TYPE_CHECKING:
    Look = Callable[[Disk, str, Arguments, dict[str, Any]], dict[str, Any]]

# Lines of a file that are read.
_LINES = 5_000


class SmallTool:
    """A tool as the model sees it. `real` is the called tool, `call` makes its arguments."""

    __slots__ = ("about", "after", "arguments", "call", "look", "name", "real", "show", "writes")

    def __init__(
        self,
        name: str,
        arguments: tuple[str, ...],
        about: str,
        call: Callable[[Arguments], dict[str, Any]],
        show: Callable[[dict[str, Any], Arguments, str], str],
        *,
        real: str = "",
        writes: Mapping[str, bool] | None = None,
        after: Callable[[Arguments], dict[str, Any]] | None = None,
        look: Look | None = None,
    ) -> None:
        self.name = name
        self.arguments = arguments
        self.about = about
        self.call = call
        # Formats the result as text, from data, arguments and request.
        self.show = show
        self.real = real or name
        # Arguments with paths that it writes, and whether it replaces them.
        self.writes = dict(writes or {})
        # Arguments of a second, read-only call that completes the result.
        self.after = after
        # Adds facts from the disk to the result.
        self.look = look

    @property
    def line(self) -> str:
        """Its line in the prompt."""
        return f"- {self.name}({', '.join(self.arguments)}): {self.about}"


TOOLS = (
    SmallTool(
        "directory_list",
        ("path",),
        'list and count the files of a folder, with the largest and the newest; "." is here',
        lambda arguments: {"path": arguments["path"], "depth": 20, "limit": 400},
        listed,
        look=newest,
    ),
    SmallTool(
        "read_file",
        ("path",),
        "show the text of a file, its size, and sums and averages of its numbers",
        lambda arguments: {"path": arguments["path"], "limit": _LINES, "force": True},
        result_text.read,
    ),
    SmallTool(
        "count_lines",
        ("paths",),
        "count the lines, rows and words of one or more files",
        count,
        result_text.counted,
        real="terminal",
        look=edges,
    ),
    SmallTool(
        "search_files",
        ("text",),
        "find out which files and lines contain or mention a word, and count them",
        lambda arguments: {"pattern": arguments["text"], "literal": True, "ignore_case": True},
        result_text.found,
    ),
    SmallTool(
        "write_file",
        ("path", "content"),
        "make a file with this text",
        write,
        result_text.wrote,
        writes={"path": True},
    ),
    SmallTool(
        "append_file",
        ("path", "content"),
        "add text at the end of a file, keeping the rest",
        append,
        result_text.added,
        real="terminal",
        writes={"path": False},
    ),
    SmallTool(
        "patch",
        ("path", "old", "new"),
        "replace old text by new text inside a file",
        patch,
        result_text.patched,
        writes={"path": False},
    ),
    SmallTool(
        "copy_file",
        ("path", "to"),
        "copy a file, keeping it where it is",
        lambda arguments: copy_or_move("cp -r", arguments),
        result_text.moved,
        real="terminal",
        writes={"to": True},
    ),
    SmallTool(
        "move_file",
        ("path", "to"),
        "rename a file, move it or put it into a folder",
        lambda arguments: copy_or_move("mv", arguments),
        result_text.moved,
        real="terminal",
        writes={"path": True, "to": True},
    ),
    SmallTool(
        "make_folder",
        ("path",),
        "make a new empty folder",
        lambda arguments: {"command": f"mkdir -p -- {shlex.quote(str(arguments['path']))}"},
        result_text.folder_made,
        real="terminal",
        writes={"path": False},
    ),
    SmallTool(
        "delete_file",
        ("path",),
        "delete a file",
        lambda arguments: {"command": f"rm -- {shlex.quote(str(arguments['path']))}"},
        result_text.deleted,
        real="terminal",
        writes={"path": True},
    ),
    SmallTool(
        "calculate",
        ("expression",),
        "work out an expression of numbers with + - * / ** %, sqrt(), factorial(), average()",
        calculate,
        result_text.worked_out,
        real="terminal",
    ),
    SmallTool(
        "terminal",
        ("command",),
        "run a shell command, program or script; also for dates, users, versions and sorting",
        lambda arguments: {"command": arguments["command"], "timeout": 120},
        result_text.ran,
    ),
    SmallTool(
        "system_info",
        (),
        "measure this computer: CPU load, memory, disk space, uptime",
        lambda _: {"sections": ["system", "cpu", "memory", "disk", "processes"], "top": 3},
        result_text.measured,
    ),
    SmallTool(
        "file_compress",
        ("sources", "archive"),
        "pack files or folders into an archive such as name.zip or name.tar.gz",
        lambda arguments: {
            "action": "create",
            "archive": arguments["archive"],
            "sources": list(arguments["sources"]),
        },
        result_text.packed,
        writes={"archive": True},
        after=lambda arguments: {"action": "list", "archive": arguments["archive"], "limit": 2000},
    ),
    SmallTool(
        "file_extract",
        ("archive", "folder"),
        "unpack an archive into a folder",
        lambda arguments: {
            "action": "extract",
            "archive": arguments["archive"],
            "target": arguments["folder"],
        },
        result_text.unpacked,
        real="file_compress",
    ),
)


def available_tools(reachable: Iterable[str]) -> dict[str, SmallTool]:
    """The small tools whose real tool is reachable, by name."""
    allowed = set(reachable)
    return {tool.name: tool for tool in TOOLS if tool.real in allowed}
