"""What a look at the disk adds to a call: how a file begins and ends, and which is the newest."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.agent.providers.embedded.surroundings import place
from hermes.runtime.disk import DiskError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, BinaryIO

    from hermes.runtime.disk import Disk

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

    from hermes.agent.providers.embedded.listing import paths_of

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
