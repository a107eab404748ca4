"""Text for a command to read: a file that ends, so that nobody has to feed a pipe."""

from __future__ import annotations

import os


def readable(data: bytes) -> int:
    """A file without a name that holds `data`, at its start; the caller closes it."""
    if hasattr(os, "memfd_create"):
        handle = os.memfd_create("stdin")
    else:
        import tempfile

        handle, path = tempfile.mkstemp()
        os.unlink(path)
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
    os.lseek(handle, 0, os.SEEK_SET)
    return handle
