"""The few tools a small model works with: short signatures for it, real calls for the runtime.

A signature has only arguments that are always needed. What comes back is put into plain words:
the text first, what was counted after it, so that nothing has to be counted by the model.
"""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    Arguments = Mapping[str, Any]

_NUMBER = re.compile(r"-?\d{1,12}(?:\.\d{1,9})?")
# Sums and averages of numbers one after the other, as people write them.
_FUNCTIONS = (
    "from math import *; all_of = sum; sum = lambda *n: all_of(n); "
    "average = lambda *n: all_of(n) / len(n)"
)
# How a shell says that it knows no such command.
_NOT_FOUND = 127
# As many characters of a result as a small model reads in a few seconds.
MOST = 2400


class SmallTool:
    """One tool as the model sees it. `real` is the tool that is called, `call` its arguments."""

    __slots__ = ("about", "arguments", "call", "name", "real", "show", "writes")

    def __init__(
        self,
        name: str,
        arguments: tuple[str, ...],
        about: str,
        call: Callable[[Arguments], dict[str, Any]],
        show: Callable[[dict[str, Any], Arguments], str],
        *,
        real: str = "",
        writes: Mapping[str, bool] | None = None,
    ) -> None:
        self.name = name
        self.arguments = arguments
        self.about = about
        self.call = call
        self.show = show
        self.real = real or name
        # The arguments that name what is written, and whether it is replaced as a whole.
        self.writes = dict(writes or {})

    @property
    def line(self) -> str:
        """How the model is told of it."""
        return f"- {self.name}({', '.join(self.arguments)}): {self.about}"


# -- what the results say -------------------------------------------------------------------------


def cut(text: str, most: int = MOST) -> str:
    """A text with its middle left out when it is long."""
    if len(text) <= most:
        return text
    head, tail = text[: most * 3 // 4], text[-most // 4 :]
    return f"{head}\n[… {len(text) - most} characters left out …]\n{tail}"


def _read(data: dict[str, Any], given: Arguments) -> str:
    content = re.sub(r"(?m)^ *\d+\|", "", str(data.get("content", "")))
    lines = data.get("total_lines", 0)
    words = len(content.split())
    counted = f"{given['path']} has {_number(lines, 'line')}, {_number(words, 'word')}"
    return f"{cut(content)}\n\n({counted}.{sums(content)})"


def sums(content: str) -> str:
    """What the columns of a table of numbers add up to, in words; nothing if it is none."""
    rows = [re.split(r"[,;\t]", line) for line in content.strip().splitlines()]
    width = len(rows[0]) if rows else 0
    if len(rows) < 2 or any(len(row) != width for row in rows):
        return ""
    told = []
    for column in zip(*rows, strict=True):
        cells = [cell.strip() for cell in column]
        head = "" if _NUMBER.fullmatch(cells[0]) else cells[0]
        body = cells[1:] if head else cells
        if len(body) > 1 and all(_NUMBER.fullmatch(cell) for cell in body):
            numbers = [float(cell) for cell in body]
            name = f"the column {head}" if head else "its numbers"
            told.append(f" In {name} the sum is {sum(numbers):.12g}, the largest {max(numbers):g}.")
    return "".join(told[:4])


def _listed(data: dict[str, Any], _: Arguments) -> str:
    tree = str(data.get("tree", ""))
    names = [line.strip().split("  ")[0] for line in tree.splitlines() if line.strip()]
    kinds = Counter(os.path.splitext(name)[1] or "no ending" for name in names if name[-1] != "/")
    counted = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common(8))
    files, folders = int(data.get("files", 0)), int(data.get("folders", 0))
    first = f"{_number(files, 'file')} ({counted}), {_number(folders, 'folder')}"
    return f"{first}:\n{cut(tree)}" if tree else "The folder is empty: 0 files."


def _found(data: dict[str, Any], given: Arguments) -> str:
    matches = str(data.get("matches", ""))
    if not matches:
        return f"No file contains {given['text']!r}."
    total, files = int(data.get("total_matches", 0)), int(data.get("files_matched", 0))
    times = "once" if total == 1 else f"{total} times"
    return f"{cut(matches)}\n\n(Found {times} in {_number(files, 'file')}.)"


def _wrote(data: dict[str, Any], _: Arguments) -> str:
    done = "made" if data.get("created") else "replaced"
    return f"{data.get('path')} was {done}, {_number(int(data.get('lines', 0)), 'line')}."


def _patched(data: dict[str, Any], _: Arguments) -> str:
    changed = [
        line
        for line in str(data.get("diff", "")).splitlines()
        if line[:1] in "+-" and not line.startswith(("+++", "---")) and not line.endswith(" lines")
    ]
    return f"{data.get('path')} was changed:\n" + cut("\n".join(changed), 800)


def _ran(data: dict[str, Any], _: Arguments) -> str:
    out = "\n".join(
        str(data[key]).rstrip() for key in ("stdout", "output", "stderr") if data.get(key)
    )
    code = data.get("exit_code", 0)
    end = "" if code == 0 else f"\n\n(It failed with exit code {code}.)"
    if code == _NOT_FOUND:
        end += " There is no such program here; another one may do, such as python3 for python."
    return f"{cut(out) or '(It printed nothing.)'}{end}"


def _added(data: dict[str, Any], given: Arguments) -> str:
    if data.get("exit_code"):
        return _ran(data, given)
    return f"The text was added at the end of {given['path']}."


def _moved(data: dict[str, Any], given: Arguments) -> str:
    done = f"{given['path']} is now at {given['to']}."
    return _ran(data, given) if data.get("exit_code") else done


def _deleted(data: dict[str, Any], given: Arguments) -> str:
    return _ran(data, given) if data.get("exit_code") else f"{given['path']} was deleted."


def _measured(data: dict[str, Any], _: Arguments) -> str:
    system, cpu, memory = (data.get(key) or {} for key in ("system", "cpu", "memory"))
    load = ", ".join(str(one) for one in cpu.get("load_average") or ())
    lines = [
        f"CPU: {cpu.get('percent')} % used, {cpu.get('cores')} cores, load average {load}",
        f"Memory: {_share(memory, 'available_gb')}",
    ]
    lines += [f"Disk: {_share(disk, 'free_gb')}" for disk in (data.get("disk") or [])[:1]]
    lines.append(
        f"System: {system.get('os')}, Python {system.get('python')}, "
        f"up for {system.get('uptime_hours')} hours"
    )
    busiest = (data.get("processes") or {}).get("busiest") or []
    if busiest:
        named = ", ".join(f"{one.get('name')} ({one.get('cpu_percent')} %)" for one in busiest[:3])
        lines.append(f"Busiest: {named}")
    return "\n".join(lines)


def _share(one: Arguments, free: str) -> str:
    return f"{one.get('used_percent')} % used, {one.get(free)} GB free of {one.get('total_gb')} GB"


def _packed(data: dict[str, Any], given: Arguments) -> str:
    name = os.path.basename(str(data.get("archive", "")))
    return f"{name} was made: {given['source']} is packed in it, {data.get('size')} bytes."


def _unpacked(data: dict[str, Any], given: Arguments) -> str:
    paths = ", ".join(map(str, (data.get("paths") or [])[:20]))
    files = _number(int(data.get("files", 0)), "file")
    return f"{files} unpacked into {given['folder']}: {cut(paths, 600)}"


def _append(given: Arguments) -> dict[str, Any]:
    path = shlex.quote(str(given["path"]))
    text = shlex.quote(str(given["content"]).rstrip("\n"))
    # The last line may lack its end; the new text still begins a line of its own.
    ended = f'[ ! -s {path} ] || [ -z "$(tail -c1 {path})" ] || echo >> {path}'
    return {"command": f"{ended}; printf '%s\\n' {text} >> {path}"}


def _moving(command: str, given: Arguments) -> dict[str, Any]:
    """Copy or move, with the folder made that it goes to."""
    path, to = str(given["path"]), str(given["to"])
    # `backup` is meant as a folder when what goes there has an ending and it has none.
    named = os.path.splitext(path)[1] and not os.path.splitext(to)[1]
    folder = to if to.endswith("/") or named else os.path.dirname(to)
    made = f"mkdir -p -- {shlex.quote(folder)} && " if folder else ""
    return {"command": f"{made}{command} -- {shlex.quote(path)} {shlex.quote(to)}"}


def _calculate(given: Arguments) -> dict[str, Any]:
    # The grammar lets only numbers and their functions in.
    expression = str(given["expression"]).replace("^", "**")
    code = shlex.quote(f"{_FUNCTIONS}; print({expression})")
    return {"command": f"python3 -c {code}", "timeout": 20}


def _write(given: Arguments) -> dict[str, Any]:
    content = str(given["content"])
    return {"path": given["path"], "content": content if content.endswith("\n") else f"{content}\n"}


TOOLS = (
    SmallTool(
        "directory_list",
        ("path",),
        'list and count the files of a folder; "." is here',
        lambda given: {"path": given["path"], "depth": 3, "limit": 80},
        _listed,
    ),
    SmallTool(
        "read_file",
        ("path",),
        "show the text of a file, how many lines and words it has, and sums of its columns",
        lambda given: {"path": given["path"], "limit": 400, "force": True},
        _read,
    ),
    SmallTool(
        "search_files",
        ("text",),
        "find out which files and lines contain or mention a word, and count them",
        lambda given: {"pattern": given["text"], "literal": True, "ignore_case": True},
        _found,
    ),
    SmallTool(
        "write_file",
        ("path", "content"),
        "make a file with this text",
        _write,
        _wrote,
        writes={"path": True},
    ),
    SmallTool(
        "append_file",
        ("path", "content"),
        "add text at the end of a file, keeping the rest",
        _append,
        _added,
        real="terminal",
        writes={"path": False},
    ),
    SmallTool(
        "patch",
        ("path", "old", "new"),
        "replace old text by new text inside a file",
        lambda given: {
            "path": given["path"],
            "old_string": given["old"],
            "new_string": given["new"],
            "replace_all": True,
        },
        _patched,
        writes={"path": False},
    ),
    SmallTool(
        "copy_file",
        ("path", "to"),
        "copy a file",
        lambda given: _moving("cp -r", given),
        _moved,
        real="terminal",
        writes={"to": True},
    ),
    SmallTool(
        "move_file",
        ("path", "to"),
        "rename a file or move it",
        lambda given: _moving("mv", given),
        _moved,
        real="terminal",
        writes={"path": True, "to": True},
    ),
    SmallTool(
        "delete_file",
        ("path",),
        "delete a file",
        lambda given: {"command": f"rm -- {shlex.quote(str(given['path']))}"},
        _deleted,
        real="terminal",
        writes={"path": True},
    ),
    SmallTool(
        "calculate",
        ("expression",),
        "work out an expression of numbers alone, such as 12 * 7 / 2 or average(4, 6, 11)",
        _calculate,
        _ran,
        real="terminal",
    ),
    SmallTool(
        "terminal",
        ("command",),
        "run a shell command, program or script; also for dates, users, versions and sorting",
        lambda given: {"command": given["command"], "timeout": 120},
        _ran,
    ),
    SmallTool(
        "system_info",
        (),
        "measure this computer: CPU load, memory, disk space, uptime",
        lambda _: {"sections": ["system", "cpu", "memory", "disk", "processes"], "top": 3},
        _measured,
    ),
    SmallTool(
        "file_compress",
        ("source", "archive"),
        "pack a file or folder into an archive such as name.zip or name.tar.gz",
        lambda given: {
            "action": "create",
            "archive": given["archive"],
            "sources": [given["source"]],
        },
        _packed,
        writes={"archive": True},
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
        _unpacked,
        real="file_compress",
    ),
)


def offered(reachable: Iterable[str]) -> dict[str, SmallTool]:
    """The tools of the short list that may be used, by the names that the model uses."""
    allowed = set(reachable)
    return {tool.name: tool for tool in TOOLS if tool.real in allowed}


def _number(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
