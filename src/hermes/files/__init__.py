"""Files: read, write, edit, search, compare, watch, pack and unpack, on any disk.

    read, notebooks   a page of a text file; Jupyter notebooks as text
    write, edit       whole files; replaced text and patches
    edit_transaction  lock, read, compute, keep for undo, write, put back on failure
    seen_files        versions that a task has seen: stale-write check, private keys to redact
    command_undo      snapshot of the workspace before a shell command
    programs          programs of YAML tools: confined and undoable
    file_type         file type by magic number
    listing           directory listing
    search            content and file-name search
    archives          tar, zip, 7z: read and write
    compare           differences between files and folders
    watch             file system changes

All of it works on a `Disk`, so the same code serves this machine, a container and a remote
host. The tools in `hermes.tools` are thin front ends of this package.
"""
