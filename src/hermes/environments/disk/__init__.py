"""The files of a place where work is done, as bytes.

    protocol.py   what every disk can do: `Disk`, `Status`, `Entry`
    local.py      this machine's, by plain system calls that follow no link

A disk is given places: absolute paths without links, as the gate resolved them
(`ToolContext.place`). It decides nothing about rights; it opens exactly what it is told, and
fails where a link has been put in the way since.
"""

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.environments.disk.local_disk import LocalDisk
    from hermes.environments.disk.protocol import Disk, DiskError, Entry, Status

__all__ = ["Disk", "DiskError", "Entry", "LocalDisk", "Status"]

__getattr__ = names_from(
    __name__,
    {
        "Disk": "protocol",
        "DiskError": "protocol",
        "Entry": "protocol",
        "LocalDisk": "local_disk",
        "Status": "protocol",
    },
)
