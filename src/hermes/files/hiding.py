"""Private keys in files: a piece of one is as secret as the whole.

A key is recognised by its first and last line. A page, a hit or a difference may hold neither, so
its lines are made known to the runtime as secrets as soon as a tool has seen the file.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes.core.context import ToolContext
    from hermes.runtime.disk import Disk

_MARK = b"PRIVATE KEY-----"
_KEY = re.compile(rb"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----(.*?)(?:-----END|\Z)", re.DOTALL)
# Shorter lines say too little, and might be words.
_SHORTEST = 20
_LARGEST = 1024 * 1024


def hide_keys(ctx: ToolContext, data: bytes) -> None:
    """Have the lines of the private keys in some content masked from now on."""
    if _MARK not in data:
        return
    runtime = ctx.services.get("runtime")
    if runtime is None:
        return
    for key in _KEY.finditer(data):
        for line in key[1].split():
            if len(line) >= _SHORTEST:
                runtime.redactor.add(line.decode("ascii", "replace"))


def hide_keys_at(ctx: ToolContext, disk: Disk, place: str) -> None:
    """The same for a file, where it is one and not too large to hold keys."""
    found = disk.status(place)
    if found is not None and found.kind == "file" and found.size <= _LARGEST:
        hide_keys(ctx, disk.read(place))
