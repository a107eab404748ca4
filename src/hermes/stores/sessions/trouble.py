"""What SQLite says went wrong, in words that a person can act on."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from hermes.stores.sessions.values import DamagedError, SessionsError

if TYPE_CHECKING:
    from sqlite3 import Error

_FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
# As much as SQLite wants at once: the file that processes share.
_PROBE_BYTES = 32 * 1024


def is_damage(error: Error) -> bool:
    """Whether the file itself is at fault."""
    text = str(error)
    return "malformed" in text or "not a database" in text or "corrupt" in text


def explained(error: Error, path: str, *, what: str = "") -> SessionsError:
    """The error for a person; `what` could not be done, said of the sessions in `path` if empty."""
    text = str(error)
    if is_damage(error):
        return damaged(path, text)
    if "locked" in text or "busy" in text:
        return SessionsError(
            f"the sessions in {path} are in use by another process for too long",
            hint="Try again in a moment.",
        )
    what = what or f"the sessions in {path} can't be used"
    folder = os.path.dirname(path)
    refused = None if "full" in text else _refusal(folder)
    if "full" in text or (refused is not None and refused.errno in _FULL):
        return SessionsError(
            f"{what}: no room on the disk",
            hint=f"Free some space where {folder} is; what was kept is safe.",
        )
    if refused is not None:
        return SessionsError(
            f"{what}: {text} ({refused.strerror})",
            hint=f"Let {folder} be written to, or set HERMES_HOME to another folder.",
        )
    return SessionsError(f"{what}: {text}")


def damaged(path: str, reason: str) -> DamagedError:
    """The error for whoever wants to write to a damaged file."""
    return DamagedError(
        f"the sessions in {path} are damaged ({reason}): they can be read as far as they go, "
        "and nothing is written to them",
        hint="`hermes sessions doctor` says what is readable; put a backup in its place.",
    )


def _refusal(folder: str) -> OSError | None:
    """Why nothing can be written in a folder, tried out: SQLite does not pass on what it heard."""
    name = os.path.join(folder, f".{os.urandom(8).hex()}")
    try:
        handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.unlink(name)
            os.write(handle, b"\0" * _PROBE_BYTES)
        finally:
            os.close(handle)
    except OSError as error:
        return error
    return None
