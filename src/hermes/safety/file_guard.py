"""File guard: keeps the content of some files, and puts back those that a command changed.

`HomeGuard` does so for the files in the home folder that decide what may happen. Confined commands
can't reach them; around every other command they are compared.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.paths import DECIDING, home_path, is_below, on_write, write_private

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

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
        roots: Folders that commands may write to. Below them no link is followed: it could lead to
            files that the command itself can't reach.
    """

    def __init__(
        self,
        paths: Callable[[], Iterable[str]],
        judge: Callable[[str, Kept | None], str],
        *,
        roots: Sequence[str] = (),
    ) -> None:
        self._paths = paths
        self._judge = judge
        self._roots = roots
        self._kept: dict[str, Kept] = {}
        self.keep()

    def keep(self) -> None:
        """Take the files as they are now for good."""
        before = self._kept
        self._kept = {path: _kept(path, before.get(path), self._roots) for path in self._paths()}

    def accept(self, path: str) -> None:
        """Take one file as it is now for good."""
        if path in self._kept or path in self._paths():
            self._kept[path] = _kept(path, None, self._roots)

    def restore(self) -> list[str]:
        """Put back what was changed; one line for each file."""
        notes: list[str] = []
        gone = {}
        changed = False
        for path in sorted({*self._kept, *self._paths()}):
            before = self._kept.get(path)
            if before is not None and _signature(path, self._roots) == before.signature:
                continue
            changed = True
            problem = self._judge(path, before)
            if problem:
                back = (
                    "was put back" if _write(path, before, self._roots) else "could NOT be put back"
                )
                notes.append(f"{path} {back}: {problem}")
            elif before is not None:
                gone[path] = before
        if not changed:
            return notes
        self.keep()
        # A file that was moved away is known when it comes back.
        self._kept = {**gone, **self._kept}
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


def is_regular(path: str, roots: Sequence[str] = ()) -> bool:
    """Whether a path is a regular file, and no link to one."""
    return stat.S_ISREG(_signature(path, roots)[1])


def listed(folder: str, roots: Sequence[str]) -> dict[str, int]:
    """Type of each entry of a folder by its name; empty where a link leads to it."""
    found = {}
    with suppress(OSError), _opened(folder, roots) as opened, os.scandir(opened) as entries:
        for entry in entries:
            plain = stat.S_IFDIR if entry.is_dir(follow_symlinks=False) else stat.S_IFREG
            found[entry.name] = stat.S_IFLNK if entry.is_symlink() else plain
    return found


def content(path: str, roots: Sequence[str], *, limit: int = _LARGEST) -> bytes | None:
    """The bytes of a file, or where a link leads; None for anything else, or a larger file."""
    name = os.path.basename(path)
    with suppress(OSError), _opened(os.path.dirname(path), roots) as folder:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            return os.fsencode(os.readlink(name, dir_fd=folder))
        if stat.S_ISREG(status.st_mode) and status.st_size <= limit:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
            with os.fdopen(os.open(name, flags, dir_fd=folder), "rb") as file:
                return file.read(limit)
    return None


@contextmanager
def _opened(folder: str, roots: Sequence[str]) -> Iterator[int]:
    """A folder; below one of the roots it is reached without any link. Raises `OSError`."""
    root = next((root for root in roots if is_below(folder, root)), folder)
    file = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for name in folder[len(root) :].split("/"):
            if name:
                inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=file)
                os.close(file)
                file = inner
        yield file
    finally:
        os.close(file)


def _signature(path: str, roots: Sequence[str] = ()) -> tuple[int, int, int, int]:
    try:
        with _opened(os.path.dirname(path), roots) as folder:
            status = os.stat(os.path.basename(path), dir_fd=folder, follow_symlinks=False)
    except OSError:
        return 0, 0, 0, 0
    return status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns


def _kept(path: str, before: Kept | None, roots: Sequence[str]) -> Kept:
    signature = _signature(path, roots)
    if before is not None and before.signature == signature:
        return before
    return Kept(signature, stat.S_IMODE(signature[1]), content(path, roots))


def _write(path: str, before: Kept | None, roots: Sequence[str]) -> bool:
    """Restore a file by name; a link or folder that stands in its place goes."""
    name = os.path.basename(path)
    draft = f"{name}.hermes-restored"
    try:
        if not roots:
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with _opened(os.path.dirname(path), roots) as folder:
            for stale in (draft,) if before is not None else (draft, name):
                with suppress(FileNotFoundError, IsADirectoryError):
                    os.unlink(stale, dir_fd=folder)
            if stat.S_ISDIR(_signature(path, roots)[1]):
                aside = f"{name}.{os.urandom(4).hex()}.sample"
                os.rename(name, aside, src_dir_fd=folder, dst_dir_fd=folder)
            if before is None:
                return True
            if before.content is None:
                return False
            if stat.S_ISLNK(before.signature[1]):
                os.symlink(before.content, os.fsencode(draft), dir_fd=folder)
            else:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
                with os.fdopen(os.open(draft, flags, 0o600, dir_fd=folder), "wb") as file:
                    file.write(before.content)
                    os.fchmod(file.fileno(), before.mode)
            os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        return False
    return True
