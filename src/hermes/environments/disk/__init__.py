"""Disks: files as bytes, here or on a remote.

    protocol.py        `Disk`, `Status`, `Entry`
    local_disk.py      this machine, by system calls that follow no symbolic link
    shell_disk.py      files that only a shell can reach
    shared_folder.py   a remote disk with one folder of this machine

Paths are absolute and free of links, as the gate resolved them (`ToolContext.place`). A disk checks
no permissions; it opens exactly that path, and fails if a link was put in its way since.
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
