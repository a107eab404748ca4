"""Home directory of one user, and private files: owner-only modes, atomic writes, file locks."""

from __future__ import annotations

import os
from contextlib import contextmanager

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from collections.abc import Iterator

_LOCK_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)


def hermes_home() -> str:
    """`HERMES_HOME`, or `~/.hermes`; it is not created here."""
    # Only the real environment is read, never a project's `.env`.
    return os.path.abspath(os.path.expanduser(os.environ.get("HERMES_HOME") or "~/.hermes"))


def home_path(*parts: str) -> str:
    """A path below the home directory."""
    return os.path.join(hermes_home(), *parts)


def make_private(folder: str) -> str:
    """Create a directory with mode 0700, its parents too, if it is missing; the same path."""
    above = os.path.dirname(folder)
    if above not in ("", folder) and not os.path.isdir(above):
        # `makedirs` would give the parents the usual mode, and the home itself is one of them.
        make_private(above)
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        if not os.path.isdir(folder):
            raise
    return folder


def write_private(path: str, data: bytes) -> None:
    """Write a file atomically with mode 0600: readers see the old bytes or the new ones.

    The temporary file has a random name and is created exclusively, so that no link can be
    planted there.
    """
    make_private(os.path.dirname(path) or os.curdir)
    draft = f"{path}.{os.urandom(8).hex()}.new"
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)
        raise


def flock(handle: int, *, exclusive: bool = True, wait: bool = True) -> bool:
    """Lock an open file between processes; False when another holds it and `wait` is off.

    Closing the file releases the lock. On Windows nothing is locked.
    """
    try:
        import fcntl
    except ImportError:
        return True
    kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
    try:
        fcntl.flock(handle, kind if wait else kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def open_lock(path: str) -> int:
    """Open a lock file; it and its directory are created when they are missing."""
    try:
        return os.open(path, _LOCK_FLAGS, 0o600)
    except FileNotFoundError:
        make_private(os.path.dirname(path))
        return os.open(path, _LOCK_FLAGS, 0o600)


def is_current(handle: int, path: str) -> bool:
    """Whether an open file is still the one at `path`: a lock on a removed file has no effect."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False


@contextmanager
def locked(path: str, *, timeout: float | None = None, directory: bool = False) -> Iterator[None]:
    """Hold an exclusive lock on a lock file, or with `directory` on a directory itself.

    Raises `TimeoutError` when another process holds it for `timeout` seconds.
    """
    handle = os.open(make_private(path), os.O_RDONLY) if directory else open_lock(path)
    try:
        if timeout is None:
            flock(handle)
        else:
            _poll(handle, timeout)
        yield
    finally:
        os.close(handle)


def _poll(handle: int, timeout: float) -> None:
    import time

    deadline, pause = time.monotonic() + timeout, 0.001
    while not flock(handle, wait=False):
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(pause)
        pause = min(pause * 1.5, 0.02)
