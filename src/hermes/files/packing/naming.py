"""Names: which format one asks for, what goes by which in an archive, where one unpacks to."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.core.errors import ToolError

if TYPE_CHECKING:
    from typing import Literal

    Format = Literal["zip", "tar", "tar.gz", "tar.bz2", "tar.xz", "tar.zst", "7z"]

FORMATS: dict[str, Format] = {
    "zip": "zip",
    "tar": "tar",
    "tar.gz": "tar.gz",
    "tgz": "tar.gz",
    "tar.bz2": "tar.bz2",
    "tbz2": "tar.bz2",
    "tbz": "tar.bz2",
    "tar.xz": "tar.xz",
    "txz": "tar.xz",
    "tar.zst": "tar.zst",
    "tzst": "tar.zst",
    "7z": "7z",
}


def format_of(name: str) -> Format:
    """The format that goes with a file's name."""
    ending = _ending(name)
    if ending:
        return FORMATS[ending]
    raise ToolError(
        f"the name {name!r} says no format that can be made",
        hint=f"End it with one of {', '.join('.' + ending for ending in FORMATS)}; or give format.",
    )


def name_for(source: str, workspace: str) -> str:
    """What a source is called in an archive: its path from the workspace, or its own name.

    The workspace itself has none: its content goes to the top.
    """
    top = os.path.normpath(workspace)
    path = os.path.normpath(os.path.join(top, os.path.expanduser(source)))
    if path == top:
        return ""
    below = os.path.join(top, "")
    name = path[len(below) :] if path.startswith(below) else os.path.basename(path)
    return name.replace(os.sep, "/")


def folder_for(archive: str) -> str:
    """The folder that an archive is unpacked into when nobody says another."""
    name = os.path.basename(archive)
    ending = _ending(name)
    return (
        name[: -len(ending) - 1] if ending and len(name) > len(ending) + 1 else f"{name}.unpacked"
    )


def _ending(name: str) -> str:
    lowered = name.lower()
    longest_first = sorted(FORMATS, key=len, reverse=True)
    return next((ending for ending in longest_first if lowered.endswith(f".{ending}")), "")
