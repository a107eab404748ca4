"""Tools of the embedded model: short signatures for the model, real calls for the runtime."""

from __future__ import annotations

import os
import re
import shlex
from typing import TYPE_CHECKING

from hermes.embedded import result_text
from hermes.embedded import workspace as looking
from hermes.embedded.arithmetic import program
from hermes.embedded.result_text import listed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from hermes.environments.disk import Disk


if TYPE_CHECKING:
    Arguments = Mapping[str, Any]

# Shorter words are in every text.
_LONG = 3


def append(given: Arguments) -> dict[str, Any]:
    """Add a text as lines of its own."""
    text = shlex.quote(str(given["content"]).rstrip("\n"))
    return {"command": f"printf '%s\\n' {text} >> {shlex.quote(str(given['path']))}"}


def moving(command: str, given: Arguments) -> dict[str, Any]:
    """Copy or move, with the folder made that it goes to."""
    path, to = str(given["path"]), str(given["to"])
    folder = to if into_folder(given) else os.path.dirname(to)
    made = f"mkdir -p -- {shlex.quote(folder)} && " if folder else ""
    return {"command": f"{made}{command} -- {shlex.quote(path)} {shlex.quote(to)}"}


def into_folder(given: Arguments) -> bool:
    """Whether what is copied or moved goes into a folder of this name, be there one or not."""
    path, to = str(given["path"]), str(given["to"])
    # `backup` is meant as a folder when what goes there has an ending and it has none.
    named = os.path.splitext(path)[1] and not os.path.splitext(to)[1]
    return to.endswith("/") or bool(named)


def calculate(given: Arguments) -> dict[str, Any]:
    """Work out an expression."""
    # The grammar lets only numbers and their functions in.
    return {
        "command": f"python3 -c {shlex.quote(program(str(given['expression'])))}",
        "timeout": 20,
    }


def write(given: Arguments) -> dict[str, Any]:
    """Make a file whose last line has an end."""
    content = str(given["content"])
    return {"path": given["path"], "content": content if content.endswith("\n") else f"{content}\n"}


def patch(given: Arguments) -> dict[str, Any]:
    """Replace a text wherever it stands."""
    old, new = str(given["old"]), str(given["new"])
    if " " in old and re.search(r"\w\.$", new) and old[-1:] != "." and new[:-1] != old:
        # A corrected line tends to get a full stop that nobody asked for.
        new = new[:-1]
    return {
        "path": given["path"], "old_string": old, "new_string": new, "replace_all": True,
    }  # fmt: skip


def count(given: Arguments) -> dict[str, Any]:
    """Lines and words of each file; `looking.edges` knows of a last line without an end."""
    paths = dict.fromkeys(map(str, given["paths"]))
    return {"command": f"wc -lw -- {' '.join(map(shlex.quote, paths))}"}


def search_words(given: Arguments) -> dict[str, Any]:
    """Search for any of the longer words of a text; nothing where it is one word."""
    words = [word for word in re.findall(r"[^\W_]+", str(given["text"])) if len(word) > _LONG]
    if len(str(given["text"]).split()) < 2 or not words:
        return {}
    return {"pattern": "|".join(map(re.escape, words)), "ignore_case": True}


if TYPE_CHECKING:
    Look = Callable[[Disk, str, Arguments, dict[str, Any]], dict[str, Any]]

# So many lines of a file are looked at.
_LINES = 5_000


class SmallTool:
    """One tool as the model sees it. `real` is the tool that is called, `call` its arguments."""

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
        # What came of it in words, given what was asked for and what the request is about.
        self.show = show
        self.real = real or name
        # The arguments that name what is written, and whether it is replaced as a whole.
        self.writes = dict(writes or {})
        # A second call of the same tool that only looks, to say more about the first.
        self.after = after
        # What a look at the disk adds to the result, given the workspace.
        self.look = look

    @property
    def line(self) -> str:
        """How the model is told of it."""
        return f"- {self.name}({', '.join(self.arguments)}): {self.about}"


TOOLS = (
    SmallTool(
        "directory_list",
        ("path",),
        'list and count the files of a folder, with the largest and the newest; "." is here',
        lambda given: {"path": given["path"], "depth": 20, "limit": 400},
        listed,
        look=looking.newest,
    ),
    SmallTool(
        "read_file",
        ("path",),
        "show the text of a file, its size, and sums and averages of its numbers",
        lambda given: {"path": given["path"], "limit": _LINES, "force": True},
        result_text.read,
    ),
    SmallTool(
        "count_lines",
        ("paths",),
        "count the lines, rows and words of one or more files",
        count,
        result_text.counted,
        real="terminal",
        look=looking.edges,
    ),
    SmallTool(
        "search_files",
        ("text",),
        "find out which files and lines contain or mention a word, and count them",
        lambda given: {"pattern": given["text"], "literal": True, "ignore_case": True},
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
        lambda given: moving("cp -r", given),
        result_text.moved,
        real="terminal",
        writes={"to": True},
    ),
    SmallTool(
        "move_file",
        ("path", "to"),
        "rename a file, move it or put it into a folder",
        lambda given: moving("mv", given),
        result_text.moved,
        real="terminal",
        writes={"path": True, "to": True},
    ),
    SmallTool(
        "make_folder",
        ("path",),
        "make a new empty folder",
        lambda given: {"command": f"mkdir -p -- {shlex.quote(str(given['path']))}"},
        result_text.folder_made,
        real="terminal",
        writes={"path": False},
    ),
    SmallTool(
        "delete_file",
        ("path",),
        "delete a file",
        lambda given: {"command": f"rm -- {shlex.quote(str(given['path']))}"},
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
        lambda given: {"command": given["command"], "timeout": 120},
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
        lambda given: {
            "action": "create",
            "archive": given["archive"],
            "sources": list(given["sources"]),
        },
        result_text.packed,
        writes={"archive": True},
        after=lambda given: {"action": "list", "archive": given["archive"], "limit": 2000},
    ),
    SmallTool(
        "file_extract",
        ("archive", "folder"),
        "unpack an archive into a folder",
        lambda given: {
            "action": "extract",
            "archive": given["archive"],
            "target": given["folder"],
        },
        result_text.unpacked,
        real="file_compress",
    ),
)


def offered(reachable: Iterable[str]) -> dict[str, SmallTool]:
    """The tools of the short list that may be used, by the names that the model uses."""
    allowed = set(reachable)
    return {tool.name: tool for tool in TOOLS if tool.real in allowed}
