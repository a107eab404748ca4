"""Race-free open: opens exactly the file that was checked; a swapped link makes it fail."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

from hermes.core.errors import ToolError
from hermes.safety.paths.check import check_path
from hermes.safety.paths.guards import split

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from hermes.safety.paths.check import PathRules

_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | _NOFOLLOW | _CLOEXEC
# A pipe that was swapped in must not block the opening.
_FILE = _NOFOLLOW | _CLOEXEC | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_FILE |= getattr(os, "O_BINARY", 0)
_SWAPPED = frozenset((errno.ELOOP, errno.ENOTDIR, errno.EMLINK))


class PathRefusedError(ToolError):
    """A path was not opened because the rules don't allow its place."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"not opened: {reason}")
        self.path = path
        self.reason = reason


def open_checked(
    path: str | os.PathLike[str],
    mode: str,
    *,
    rules: PathRules | Mapping[str, Any] | None,
    cwd: str | os.PathLike[str],
    home: str | os.PathLike[str],
) -> int:
    """A descriptor of the file that `check_path` allows; raises `PathRefusedError` or `OSError`.

    `"read"` opens for reading, a folder too. `"write"` opens for reading and writing, creates a
    missing file, and truncates nothing.

    The path is walked from the root by descriptors that follow no link, so the opened file is the
    checked one. Without such a walk (Windows) only the last part is compared: a folder on the way
    that is swapped in that instant is not noticed.
    """
    decision = check_path(path, mode, rules=rules, cwd=cwd, home=home)
    if not decision.allowed or decision.resolved is None:
        raise PathRefusedError(os.fspath(path), decision.reason)
    flags = (os.O_RDWR | os.O_CREAT if mode == "write" else os.O_RDONLY) | _FILE
    try:
        if os.open in os.supports_dir_fd and _NOFOLLOW:
            descriptor = _walk(decision.resolved, flags)
        else:
            descriptor = _open_plainly(decision.resolved, flags)
    except OSError as error:
        if error.errno in _SWAPPED:
            raise PathRefusedError(decision.resolved, "it was swapped meanwhile") from None
        raise
    try:
        _check_opened(descriptor, decision.resolved, mode)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _walk(path: str, flags: int) -> int:
    parts = split(path)
    folder = os.open("/", _FOLDER)
    try:
        for part in parts[:-1]:
            following = os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = following
        return os.open(parts[-1] if parts else ".", flags, 0o666, dir_fd=folder)
    finally:
        os.close(folder)


def _open_plainly(path: str, flags: int) -> int:
    descriptor = os.open(path, flags, 0o666)
    try:
        opened, named = os.fstat(descriptor), os.lstat(path)
        if (opened.st_dev, opened.st_ino) != (named.st_dev, named.st_ino):
            raise PathRefusedError(path, "it was swapped meanwhile")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _check_opened(descriptor: int, path: str, mode: str) -> None:
    status = os.fstat(descriptor)
    folder = stat.S_ISDIR(status.st_mode)
    if not stat.S_ISREG(status.st_mode) and not (folder and mode == "read"):
        raise PathRefusedError(path, "it is not a file")
    if mode == "write" and status.st_nlink > 1:
        raise PathRefusedError(path, "it has another name (a hard link)")
    if hasattr(os, "set_blocking"):
        os.set_blocking(descriptor, True)
