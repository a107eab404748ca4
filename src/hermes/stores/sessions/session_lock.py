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
def begun(sessions: Sessions, until: ExitStack, *, workspace: str, door: str) -> Iterator[Session]:
    """A new session of this program's; where the block fails nothing was said, and it is gone."""
    session = sessions.begin(workspace=workspace, front_door=door, model="")
    held(session, until)
    try:
        yield session
    except BaseException:
        with suppress(HermesError):
            sessions.delete(session.id)
        raise


def held(session: Session, until: ExitStack) -> tuple[Session, str]:
    """The session to go on with, and what to tell the person if it is not the one asked for.

    It is this program's until the stack is closed. That is noted by a lock, which ends with its
    program, however that ends.
    """
    other = _hold(session.id, until)
    if not other:
        return session, ""
    copy = session.fork()
    _hold(copy.id, until)
    return copy, (
        f"session {session.id} is open elsewhere, too (process {other}): "
        f"this goes on as {copy.id}, a copy of how it stands there"
    )


def _hold(session: str, until: ExitStack) -> str:
    """Note that this program has it; which other one does, empty when none is known to."""
    from hermes.core.home import flock, home_path, is_current, open_lock

    path = home_path(_FOLDER, session)
    while True:
        try:
            handle = open_lock(path)
        except OSError:
            # Where no note can be made none can be read.
            return ""
        try:
            if not flock(handle, wait=False):
                who = os.read(handle, 20).decode("ascii", "replace").strip()
                os.close(handle)
                return who or "unknown"
        except OSError:
            # No locks on this disk.
            os.close(handle)
            return ""
        if is_current(handle, path):
            break
        # Whoever had it removed the file in between: nobody else would see this lock.
        os.close(handle)
    until.callback(_let_go, handle, path)
    try:
        os.ftruncate(handle, 0)
        os.write(handle, str(os.getpid()).encode())
    except OSError:
        # It is held all the same.
        return ""
    return ""


def _let_go(handle: int, path: str) -> None:
    try:
        # While it is locked: what is removed is surely our own.
        os.unlink(path)
    except OSError:
        # Somebody tidied up.
        pass
    finally:
        os.close(handle)
