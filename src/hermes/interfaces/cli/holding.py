"""Which program has a session open: whoever opens it a second time is told.

Nothing forbids it, and nothing that is said gets lost. But neither of the two sees what is said in
the other, and a call that one of them has under way looks cut off to whoever opens it later.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextlib import ExitStack

_FOLDER = "open"


def opened_elsewhere(session: str, until: ExitStack) -> str:
    """Note that this program has a session open; what to tell the person if another has it, too.

    The note lasts until the stack is closed. It is a lock, which ends with its program, however
    that ends.
    """
    try:
        import fcntl
    except ImportError:
        # Not on this system.
        return ""
    from hermes.core.home import home_path, make_private

    path = home_path(_FOLDER, session)
    try:
        make_private(os.path.dirname(path))
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        # Where no note can be made none can be read.
        return ""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        who = os.read(handle, 20).decode("ascii", "replace").strip()
        os.close(handle)
        return (
            f"session {session} is open elsewhere, too (process {who or 'unknown'}): "
            "what is said there is not seen here"
        )
    until.callback(_close, handle, path)
    try:
        os.ftruncate(handle, 0)
        os.write(handle, str(os.getpid()).encode())
    except OSError:
        # It is held all the same.
        return ""
    return ""


def _close(handle: int, path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        # Somebody tidied up.
        pass
    finally:
        os.close(handle)
