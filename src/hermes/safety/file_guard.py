"""File guard: keeps the content of some files, and puts back those that a command changed.

`HomeGuard` does so for the files in the home folder that decide what may happen. Confined commands
can't reach them; around every other command they are compared.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.paths import DECIDING, home_path, on_write, write_private

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

# Larger files are noticed, but not kept.
_LARGEST = 1_000_000
# As many files of a folder as are guarded.
_MOST = 500


class Kept(NamedTuple):
    """A file as it was: its signature, its mode, its content or target (None: not kept)."""

    signature: tuple[int, int, int, int]
    mode: int
    content: bytes | None


class FileGuard:
    """Remembers files; `restore` puts back those that changed in a way that is not allowed.

    Args:
        paths: The files to guard that are there now.
        judge: What is wrong with a changed file, given its path and how it was (None: new). An
            empty text accepts the change.
    """

    def __init__(
        self, paths: Callable[[], Iterable[str]], judge: Callable[[str, Kept | None], str]
    ) -> None:
        self._paths = paths
        self._judge = judge
        self._kept: dict[str, Kept] = {}
        self.keep()

    def keep(self) -> None:
        """Take the files as they are now for good."""
        before = self._kept
        self._kept = {path: _kept(path, before.get(path)) for path in self._paths()}

    def accept(self, path: str) -> None:
        """Take one file as it is now for good."""
        if path in self._kept or path in self._paths():
            self._kept[path] = _kept(path, None)

    def restore(self) -> list[str]:
        """Put back what was changed; one line for each file."""
        notes = []
        for path in sorted({*self._kept, *self._paths()}):
            before = self._kept.get(path)
            if before is not None and _signature(path) == before.signature:
                continue
            problem = self._judge(path, before)
            if problem:
                back = "was put back" if _write(path, before) else "could NOT be put back"
                notes.append(f"{path} {back}: {problem}")
        self.keep()
        return notes


class HomeGuard:
    """Guards the deciding files while commands run; those that Hermes itself writes are accepted.

    Args:
        project: The folder whose `.hermes/hermes_permissions.yaml` restricts calls.
    """

    def __init__(self, project: str) -> None:
        self._project = os.path.join(project, ".hermes", "hermes_permissions.yaml")
        self._lock = threading.RLock()
        self._running = 0
        self._files = FileGuard(self._paths, self._problem)

    def begin(self) -> None:
        """A command starts: what is there now is right, unless another one is running."""
        with self._lock:
            if not self._running:
                self._files.keep()
                on_write.append(self._accept)
            self._running += 1

    def end(self) -> list[str]:
        """A command ended: put back what was changed; one line for each file."""
        with self._lock:
            self._running -= 1
            if not self._running:
                on_write.remove(self._accept)
            return self._files.restore()

    def _accept(self, path: str) -> None:
        with self._lock:
            self._files.accept(path)

    def _paths(self) -> Iterator[str]:
        for path in (*map(home_path, DECIDING), self._project):
            if os.path.isdir(path) and not os.path.islink(path):
                files = (
                    os.path.join(folder, name)
                    for folder, _, names in os.walk(path)
                    for name in names
                    if not folder.endswith("__pycache__")
                )
                yield from (name for name, _ in zip(files, range(_MOST), strict=False))
            elif os.path.lexists(path):
                yield path

    @staticmethod
    def _problem(path: str, before: Kept | None) -> str:  # noqa: ARG004
        aside = home_path("put-back", f"{time.time_ns()}-{os.path.basename(path)}")
        with suppress(OSError):
            if is_regular(path):
                with open(path, "rb") as file:
                    write_private(aside, file.read(_LARGEST))
        return (
            "a command may not change what decides over commands. If you did it yourself just "
            f"now, do it again; the changed version is kept in {os.path.dirname(aside)}"
        )


def is_regular(path: str) -> bool:
    """Whether a path is a regular file, and no link to one."""
    return stat.S_ISREG(_signature(path)[1])


def _signature(path: str) -> tuple[int, int, int, int]:
    try:
        status = os.lstat(path)
    except OSError:
        return 0, 0, 0, 0
    return status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns


def _kept(path: str, before: Kept | None) -> Kept:
    signature = _signature(path)
    if before is not None and before.signature == signature:
        return before
    content = None
    with suppress(OSError):
        if stat.S_ISLNK(signature[1]):
            content = os.fsencode(os.readlink(path))
        elif stat.S_ISREG(signature[1]) and signature[2] <= _LARGEST:
            with open(path, "rb") as file:
                content = file.read()
    return Kept(signature, stat.S_IMODE(signature[1]), content)


def _write(path: str, before: Kept | None) -> bool:
    """Restore a file by name; a link or folder that stands in its place goes."""
    draft = f"{path}.hermes-restored"
    with suppress(OSError):
        os.unlink(draft)
    try:
        if os.path.isdir(path) and not os.path.islink(path):
            os.rename(path, f"{path}.sample")
        elif before is None:
            os.unlink(path)
        if before is None:
            return True
        if before.content is None:
            return False
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        if stat.S_ISLNK(before.signature[1]):
            os.symlink(before.content, os.fsencode(draft))
            os.replace(draft, path)
            return True
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(before.content)
            os.fchmod(file.fileno(), before.mode)
        os.replace(draft, path)
    except OSError:
        return False
    return True
