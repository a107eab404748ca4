"""What a small model may write next: the tools that make sense, and what may stand where."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.agent.providers.embedded.doubting import numbers

if TYPE_CHECKING:
    from typing import Any

    from hermes.agent.providers.embedded.task import Task

_PACKED = (".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".zst", ".7z")
# With more files than this the model spells paths itself.
_SPELLED = 200
# What a request that names files is not about before these were looked at: a number that is worked
# out is made up, and so is one that belongs to the machine.
_AFTERWARDS = ("calculate", "system_info")


def signatures(task: Task) -> dict[str, dict[str, Any]]:
    """The tools with what may stand for each argument: paths there are, or that were named."""
    special = _words(task)
    archives = special["file_extract", "archive"] != "string"
    return {
        tool.name: {
            argument: special.get((tool.name, argument), "string") for argument in tool.arguments
        }
        for tool in task.tools.values()
        if not (task.only_looking and tool.writes)
        and tool.name != task.barred
        and task.only in ("", tool.name)
        and (tool.name != "file_extract" or archives)
        and not (tool.name in _AFTERWARDS and task.unread())
        and (tool.name != "calculate" or _has_numbers(task))
    }


def _words(task: Task) -> dict[tuple[str, str], Any]:
    """What may stand for an argument of a tool, where that is known."""
    named = task.named
    known = list(dict.fromkeys([*task.files, *named.paths]))
    few = 0 < len(known) <= _SPELLED
    existing: Any = known if few else "string"
    meant = {*named.files, *named.paths}
    edited: Any = [path for path in task.files if path in meant] or existing
    added = list(dict.fromkeys([*named.files, *named.targets]))
    packed = [path for path in named.paths if path.lower().endswith(_PACKED)]
    archives = [path for path in known if path.lower().endswith(_PACKED)]
    folders = sorted({path.rpartition("/")[0] for path in task.files if "/" in path})
    listed = [".", *folders, *(path for path in named.paths if path not in task.files)]
    sources: Any = [*folders, *known] if few else "string"
    goals: Any = destinations(task) or "string"
    return {
        ("directory_list", "path"): listed if few else "string",
        ("read_file", "path"): existing,
        ("count_lines", "paths"): tuple(named.spelled or known) if few else "array",
        ("patch", "path"): edited,
        ("delete_file", "path"): edited,
        ("write_file", "path"): named.targets or "string",
        ("append_file", "path"): added or existing,
        ("calculate", "expression"): "expression",
        ("file_compress", "sources"): tuple(sources) if few else "array",
        ("file_compress", "archive"): packed or "string",
        ("file_extract", "archive"): archives or "string",
        ("copy_file", "path"): sources,
        ("copy_file", "to"): goals,
        ("move_file", "path"): sources,
        ("move_file", "to"): goals,
    }


def destinations(task: Task) -> list[str]:
    """Where a file can go by the words of the request: a name that is free, a folder, both."""
    named = task.named
    folders = list(named.folders)
    free = [path for path in named.paths if not _is_one_of(path, [*named.spelled, *folders])]
    beside = [os.path.dirname(path) for path in named.spelled if "/" in path]
    both = [
        f"{folder}/{path}"
        for folder in dict.fromkeys([*folders, *beside])
        for path in free
        if "/" not in path.rstrip("/")
    ]
    if not free and not folders:
        # Nothing but files that are there: one of them is to be replaced.
        return named.paths if len(named.paths) > 1 else []
    out = any(os.path.dirname(path) in named.folders for path in named.files)
    return [*free, *folders, *both, *(["."] if out else [])]


def _is_one_of(path: str, known: list[str]) -> bool:
    bare = path.casefold().removeprefix("./").strip("/")
    return any(f"/{one.casefold()}".endswith(f"/{bare}") for one in known)


def _has_numbers(task: Task) -> bool:
    """Whether there is anything to work with at the beginning."""
    text = task.text
    for path in task.named.paths:
        text = text.replace(path, "")
    return bool(task.results or task.doubted or numbers(text))
