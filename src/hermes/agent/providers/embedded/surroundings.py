"""The files of a workspace, as many as a small model can be told of."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes.runtime.disk import Disk

# So many are looked at, and so many are named in a request.
LOOKED, NAMED = 400, 30
# Folders that hold what programs made, not what people ask about.
_MADE = frozenset({"node_modules", "__pycache__", "venv", "target", "dist", "build"})


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
