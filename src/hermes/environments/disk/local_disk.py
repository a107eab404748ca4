"""`LocalDisk`: the files of this machine, opened by directory handles that follow no symbolic
link.

Every path is walked from the root, directory by directory (`openat`, `O_NOFOLLOW`), so that a link
that was swapped in after the check makes the call fail. Windows has no such walk: there a directory
swapped at that instant goes unnoticed.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from hermes.environments.disk.protocol import DiskError, Entry, Status, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO

_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_BINARY = getattr(os, "O_BINARY", 0)
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | _NOFOLLOW | _CLOEXEC
# A pipe that was put there must not block the opening.
_READ = os.O_RDONLY | _NOFOLLOW | _CLOEXEC | _BINARY | getattr(os, "O_NONBLOCK", 0)
_MAKE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW | _CLOEXEC | _BINARY
_NAMELESS = getattr(os, "O_TMPFILE", 0) and os.O_TMPFILE | os.O_WRONLY | _CLOEXEC
_WALKS = bool(_NOFOLLOW) and os.open in os.supports_dir_fd
# Extended attributes that stay with a file when it is replaced: its user's, and access lists.
_ATTRIBUTES = ("user.", "system.posix_acl_")
_SWAPPED = frozenset((errno.ELOOP, errno.ENOTDIR, errno.EMLINK))
# From this size on a piece of zeros takes no room.
_HOLE = 64 * 1024
# Modes of new files and folders, before the umask.
_NEW_FILE, _NEW_FOLDER = 0o666, 0o777


class LocalDisk:
    """The files of this machine."""

    label = "local"

    def status(self, place: str) -> Status | None:
        """The status of a path; None if there is nothing."""
        try:
            with open_parent(place) as (folder, name):
                return Status.of(os.stat(name, dir_fd=folder, follow_symlinks=False))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def open(self, place: str) -> BinaryIO:
        """A file for reading, positioned at its start; only plain files are opened."""
        with open_parent(place) as (folder, name), _unswapped(place):
            handle = os.open(name, _READ, dir_fd=folder)
        try:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode):
                raise DiskError(f"{place} is not a file but a {kind_of(found.st_mode)}")
            return os.fdopen(handle, "rb", buffering=0)
        except BaseException:
            os.close(handle)
            raise

    def read(self, place: str) -> bytes:
        """A whole file."""
        with self.open(place) as file:
            return file.read()

    def write(self, place: str, data: bytes | Iterable[bytes], *, mode: int | None = None) -> None:
        """Replace or make a file as a whole, durably: old bytes or new ones, never a mixture."""
        with open_parent(place) as (folder, name), _unswapped(place):
            try:
                old = os.stat(name, dir_fd=folder, follow_symlinks=False)
            except FileNotFoundError:
                old = None
            if old is not None and not stat.S_ISREG(old.st_mode):
                raise DiskError(f"{place} is not a file but a {kind_of(old.st_mode)}")
            with _Draft(folder, place, _NEW_FILE if old is None else 0o600) as draft:
                if isinstance(data, bytes):
                    _write_all(draft.handle, data)
                else:
                    _write_pieces(draft.handle, data)
                if old is not None and folder is not None:
                    _keep_attributes(f"/proc/self/fd/{folder}/{name}", draft.handle)
                _dress(draft.handle, old, mode)
                os.fsync(draft.handle)
                if not draft.named:
                    os.link(f"/proc/self/fd/{draft.handle}", draft.name, dst_dir_fd=folder)
                os.replace(draft.name, name, src_dir_fd=folder, dst_dir_fd=folder)
            _settle(place)

    def make_folder(self, place: str) -> list[str]:
        """Make a folder and its missing parents; the made ones, outermost first."""
        missing: list[str] = []
        above = place
        while self.status(above) is None:
            missing.append(above)
            above = os.path.dirname(above)
        made = []
        for one in reversed(missing):
            with open_parent(one) as (folder, name), _unswapped(one), suppress(FileExistsError):
                os.mkdir(name, _NEW_FOLDER, dir_fd=folder)
                made.append(one)
        found = self.status(place)
        if found is None or found.kind != "folder":
            raise NotADirectoryError(errno.ENOTDIR, "not a folder", place)
        return made

    def make_link(self, place: str, target: str) -> None:
        """Make a symbolic link."""
        with open_parent(place) as (folder, name):
            os.symlink(target, name, dir_fd=folder)
        _settle(place)

    def link_target(self, place: str) -> str:
        """Where a symbolic link points."""
        with open_parent(place) as (folder, name):
            return os.readlink(name, dir_fd=folder)

    def set_mode(self, place: str, mode: int) -> None:
        """Change the permission bits of a file or folder."""
        with open_parent(place) as (folder, name), _unswapped(place):
            # Where there is a way to hold a file that may not be read, its mode can be changed.
            handle = os.open(name, getattr(os, "O_PATH", _READ) | _NOFOLLOW, dir_fd=folder)
            try:
                if stat.S_ISLNK(os.fstat(handle).st_mode):
                    raise DiskError(f"{place} is a link, which has no mode")
                if hasattr(os, "O_PATH"):
                    os.chmod(f"/proc/self/fd/{handle}", mode)
                else:
                    os.fchmod(handle, mode)
            finally:
                os.close(handle)

    def remove(self, place: str) -> None:
        """Remove a file or link, or an empty folder."""
        with open_parent(place) as (folder, name):
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISDIR(found.st_mode):
                os.rmdir(name, dir_fd=folder)
            else:
                os.unlink(name, dir_fd=folder)

    def scan(self, place: str) -> Iterator[Entry]:
        """The entries of a folder, in no order."""
        if not _WALKS or os.scandir not in os.supports_fd:
            yield from _entries(place)
            return
        with open_parent(place) as (folder, name), _unswapped(place):
            flags = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NOFOLLOW | _CLOEXEC
            handle = os.open(name, flags, dir_fd=folder)
        try:
            yield from _entries(handle)
        finally:
            os.close(handle)


def _entries(folder: str | int) -> Iterator[Entry]:
    with os.scandir(folder) as found:
        for one in found:
            if one.is_symlink():
                yield Entry(one.name, "link")
            elif one.is_file(follow_symlinks=False):
                yield Entry(one.name, "file")
            elif one.is_dir(follow_symlinks=False):
                yield Entry(one.name, "folder")
            else:
                yield Entry(one.name, kind_of(one.stat(follow_symlinks=False).st_mode))


@contextmanager
def open_parent(place: str) -> Iterator[tuple[int | None, str]]:
    """A descriptor of the parent folder of a path, and the name in it."""
    if not _WALKS:
        yield None, place
        return
    parts = [part for part in place.split("/") if part]
    if not place.startswith("/") or ".." in parts or "." in parts:
        raise DiskError(f"{place} is not a resolved place")
    with _unswapped(place):
        folder = os.open("/", _FOLDER)
        try:
            for part in parts[:-1]:
                following = os.open(part, _FOLDER, dir_fd=folder)
                os.close(folder)
                folder = following
        except BaseException:
            os.close(folder)
            raise
    try:
        yield folder, parts[-1] if parts else "."
    finally:
        os.close(folder)


@contextmanager
def _unswapped(place: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in _SWAPPED and os.path.islink(_first_link(place)):
            message = f"not opened: a link was put in the way of {place}"
            raise DiskError(
                message, hint="Name the file by the place that it is really in."
            ) from None
        raise


def _first_link(place: str) -> str:
    """The outermost component of a path that is a link; the path itself without one."""
    above = place
    found = place
    while above != os.path.dirname(above):
        if os.path.islink(above):
            found = above
        above = os.path.dirname(above)
    return found


def add_name(place: str, name: str) -> None:
    """Make `name` another name of a file (hard link), in place of what it is now."""
    with open_parent(place) as (folder, old), open_parent(name) as (other, new):
        draft = f".hermes-{os.urandom(8).hex()}"
        os.link(old, draft, src_dir_fd=folder, dst_dir_fd=other, follow_symlinks=False)
        os.replace(draft, new, src_dir_fd=other, dst_dir_fd=other)
    _settle(name)


class _Draft:
    """A temporary file in the folder of the file that it replaces; deleted unless it did.

    Where the system allows (`O_TMPFILE`) it has no name until it is complete, so that not even a
    kill leaves a part of it behind.
    """

    def __init__(self, folder: int | None, place: str, mode: int) -> None:
        self._folder = folder
        # Short: a name may be as long as the system allows already.
        self.name = f".hermes-{os.urandom(8).hex()}"
        if folder is None:
            self.name = os.path.join(os.path.dirname(place), self.name)
        self.named = False
        if _NAMELESS and folder is not None:
            with suppress(OSError):
                self.handle = os.open(".", _NAMELESS, mode, dir_fd=folder)
                return
        self.handle = os.open(self.name, _MAKE, mode, dir_fd=folder)
        self.named = True

    def __enter__(self) -> _Draft:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        os.close(self.handle)
        if kind is not None:
            with suppress(FileNotFoundError):
                os.unlink(self.name, dir_fd=self._folder)


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _write_pieces(handle: int, pieces: Iterable[bytes]) -> None:
    """Write pieces one after the other; a long one of zeros becomes a hole."""
    size = 0
    for piece in pieces:
        size += len(piece)
        if len(piece) >= _HOLE and piece == bytes(len(piece)):
            os.lseek(handle, len(piece), os.SEEK_CUR)
        else:
            _write_all(handle, piece)
    os.ftruncate(handle, size)


def _dress(handle: int, old: os.stat_result | None, mode: int | None) -> None:
    """Copy owner and mode of the replaced file."""
    if old is not None and hasattr(os, "fchown"):
        drafted = os.fstat(handle)
        if (drafted.st_uid, drafted.st_gid) != (old.st_uid, old.st_gid):
            # Only the superuser can; for others the group alone may work.
            try:
                os.fchown(handle, old.st_uid, old.st_gid)
            except PermissionError:
                with suppress(PermissionError):
                    os.fchown(handle, -1, old.st_gid)
    if mode is None and old is not None:
        mode = stat.S_IMODE(old.st_mode)
    if mode is not None and hasattr(os, "fchmod"):
        os.fchmod(handle, mode)


def _keep_attributes(old: str, handle: int) -> None:
    """Copy the extended attributes of the replaced file, but no privileges."""
    try:
        names = os.listxattr(old, follow_symlinks=False)
    except (OSError, AttributeError):
        # Not every file system has them, nor every system.
        return
    for name in names:
        if name.startswith(_ATTRIBUTES):
            with suppress(OSError):
                os.setxattr(handle, name, os.getxattr(old, name, follow_symlinks=False))


def _settle(place: str) -> None:
    """Flush the folder, so that a new name is durable."""
    if os.name == "nt":
        return
    folder = os.open(os.path.dirname(place), os.O_RDONLY | _CLOEXEC | _NOFOLLOW)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
