"""The few tools a small model works with: short signatures for it, real calls for the runtime.

A signature has only arguments that are always needed. `calling.py` makes the real arguments of
them, `showing.py` puts what comes back into plain words.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from hermes.agent.providers.embedded import calling, looking, showing
from hermes.agent.providers.embedded.listing import listed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from hermes.runtime.disk import Disk

    Arguments = Mapping[str, Any]
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
        showing.read,
    ),
    SmallTool(
        "count_lines",
        ("paths",),
        "count the lines, rows and words of one or more files",
        calling.count,
        showing.counted,
        real="terminal",
        look=looking.edges,
    ),
    SmallTool(
        "search_files",
        ("text",),
        "find out which files and lines contain or mention a word, and count them",
        lambda given: {"pattern": given["text"], "literal": True, "ignore_case": True},
        showing.found,
    ),
    SmallTool(
        "write_file",
        ("path", "content"),
        "make a file with this text",
        calling.write,
        showing.wrote,
        writes={"path": True},
    ),
    SmallTool(
        "append_file",
        ("path", "content"),
        "add text at the end of a file, keeping the rest",
        calling.append,
        showing.added,
        real="terminal",
        writes={"path": False},
    ),
    SmallTool(
        "patch",
        ("path", "old", "new"),
        "replace old text by new text inside a file",
        calling.patch,
        showing.patched,
        writes={"path": False},
    ),
    SmallTool(
        "copy_file",
        ("path", "to"),
        "copy a file, keeping it where it is",
        lambda given: calling.moving("cp -r", given),
        showing.moved,
        real="terminal",
        writes={"to": True},
    ),
    SmallTool(
        "move_file",
        ("path", "to"),
        "rename a file, move it or put it into a folder",
        lambda given: calling.moving("mv", given),
        showing.moved,
        real="terminal",
        writes={"path": True, "to": True},
    ),
    SmallTool(
        "make_folder",
        ("path",),
        "make a new empty folder",
        lambda given: {"command": f"mkdir -p -- {shlex.quote(str(given['path']))}"},
        showing.folder_made,
        real="terminal",
        writes={"path": False},
    ),
    SmallTool(
        "delete_file",
        ("path",),
        "delete a file",
        lambda given: {"command": f"rm -- {shlex.quote(str(given['path']))}"},
        showing.deleted,
        real="terminal",
        writes={"path": True},
    ),
    SmallTool(
        "calculate",
        ("expression",),
        "work out an expression of numbers with + - * / ** %, sqrt(), factorial(), average()",
        calling.calculate,
        showing.worked_out,
        real="terminal",
    ),
    SmallTool(
        "terminal",
        ("command",),
        "run a shell command, program or script; also for dates, users, versions and sorting",
        lambda given: {"command": given["command"], "timeout": 120},
        showing.ran,
    ),
    SmallTool(
        "system_info",
        (),
        "measure this computer: CPU load, memory, disk space, uptime",
        lambda _: {"sections": ["system", "cpu", "memory", "disk", "processes"], "top": 3},
        showing.measured,
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
        showing.packed,
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
        showing.unpacked,
        real="file_compress",
    ),
)


def offered(reachable: Iterable[str]) -> dict[str, SmallTool]:
    """The tools of the short list that may be used, by the names that the model uses."""
    allowed = set(reachable)
    return {tool.name: tool for tool in TOOLS if tool.real in allowed}
