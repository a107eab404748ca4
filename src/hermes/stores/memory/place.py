"""The file itself: one writer of ours at a time, and nothing of anybody else's written over.

Editors know nothing of our lock. So a new state is not put over the old one but swapped with it, in
one step of the system: what was there at that instant is in our hands afterwards, and when it is
not what we had read, it is put back and read again.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hermes.core.errors import ToolError
from hermes.core.home import make_private, write_private

if TYPE_CHECKING:
    from collections.abc import Iterator

# Long: several may wait in a row, on a machine that is busy.
_PATIENCE = 60.0
_SETTLING = 0.1
_HERE = -100  # AT_FDCWD
_EXCHANGE = 2  # RENAME_EXCHANGE


@contextmanager
def alone(folder: str) -> Iterator[None]:
    """Keep every other process and thread of ours off a folder's files."""
    try:
        import fcntl
    except ImportError:  # Windows: two programs at the same instant are not kept apart there
        yield
        return
    handle = os.open(
        os.path.join(make_private(folder), ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
    )
    try:
        until, pause = time.monotonic() + _PATIENCE, 0.001
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise ToolError(
                        f"the memory was in use for {_PATIENCE:g} s", hint="Try again later."
                    ) from None
            time.sleep(pause)
            pause = min(pause * 1.5, 0.02)
        yield
    finally:
        os.close(handle)


def read(path: str) -> bytes | None:
    """What a file holds; None when there is none."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def read_settled(path: str) -> bytes | None:
    """The same; a file that has just been emptied gets a moment to be filled again."""
    until = time.monotonic() + _SETTLING
    while not (data := read(path)) and time.monotonic() < until:
        try:
            if time.time() - os.stat(path).st_mtime > _SETTLING:
                return data
        except FileNotFoundError:
            return data
        time.sleep(0.002)
    return data


def swap(draft: str, path: str, seen: bytes | None) -> bool:
    """Put a draft in a file's place, and what was there in the draft's.

    False, and nothing is changed, when the file does not hold what was seen.
    """
    if seen is None:
        return _put_new(draft, path)
    if not _exchange(draft, path):
        # The small gap between looking and replacing is the best that such a system offers.
        if read(path) != seen:
            return False
        with open(draft, "rb") as file:
            write_private(path, file.read())
        write_private(draft, seen)
        return True
    if read(draft) == seen:
        return True
    _exchange(draft, path)
    return False


def _put_new(draft: str, path: str) -> bool:
    try:
        os.link(draft, path)
    except FileExistsError:
        return False
    except OSError:  # no links here
        if os.path.lexists(path):
            return False
        os.replace(draft, path)
        return True
    os.unlink(draft)
    return True


def _exchange(one: str, other: str) -> bool:
    """Swap two files in one step; False where the system can't."""
    import ctypes

    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    done: int = rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE)
    return done == 0
