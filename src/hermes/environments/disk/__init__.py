"""Disks: files as bytes, here or on a remote.

    protocol.py        `Disk`, `Status`, `Entry`
    local_disk.py      this machine, by system calls that follow no symbolic link
    shell_disk.py      files that only a shell can reach; with one folder of this machine

Paths are absolute and free of links, as the gate resolved them (`ToolContext.resolve_path`). A disk
checks no permissions; it opens exactly that path, and fails if a link was put in its way since.
"""
