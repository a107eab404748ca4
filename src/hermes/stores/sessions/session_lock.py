"""Session lock: one process at a time has a session open."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from hermes.core.errors import HermesError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import ExitStack

    from hermes.stores.sessions import Session, Sessions

_FOLDER = "open"


@contextmanager
def created_session(
    sessions: Sessions, until: ExitStack, *, workspace: str, front_door: str
) -> Iterator[Session]:
    """A new session, locked until the stack is closed; deleted when the block raises."""
    session = sessions.begin(workspace=workspace, front_door=front_door, model="")
    locked_session(session, until)
    try:
        yield session
    except BaseException:
        with suppress(HermesError):
            sessions.delete(session.id)
        raise


def locked_session(session: Session, until: ExitStack) -> tuple[Session, str]:
    """The session, locked until the stack is closed, or a fork of it when another process has it.

    The second value is a remark for the person, empty without a fork. The lock is released when
    its process ends, however it ends.
    """
    owner = _lock(session.id, until)
    if not owner:
        return session, ""
    copy = session.fork()
    _lock(copy.id, until)
    return copy, (
        f"session {session.id} is open in another process ({owner}): "
        f"this continues as {copy.id}, a copy of its current state"
    )


def _lock(session: str, until: ExitStack) -> str:
    """Take the lock of a session; the process id of its owner when another process has it."""
    from hermes.core.paths import flock, home_path, is_current, open_lock

    path = home_path(_FOLDER, session)
    while True:
        try:
            handle = open_lock(path)
        except OSError:
            # No lock file can be created here.
            return ""
        try:
            if not flock(handle, wait=False):
                owner = os.read(handle, 20).decode("ascii", "replace").strip()
                os.close(handle)
                return owner or "unknown"
        except OSError:
            # The file system has no locks.
            os.close(handle)
            return ""
        if is_current(handle, path):
            break
        # The last owner removed the file meanwhile: no other process would see this lock.
        os.close(handle)
    until.callback(_release, handle, path)
    try:
        os.ftruncate(handle, 0)
        os.write(handle, str(os.getpid()).encode())
    except OSError:
        # Locked all the same.
        return ""
    return ""


def _release(handle: int, path: str) -> None:
    try:
        # While it is locked, the file is surely our own.
        os.unlink(path)
    except OSError:
        # Removed already.
        pass
    finally:
        os.close(handle)
