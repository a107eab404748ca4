"""Change notifications of the kernel (fanotify): the names below a folder that changed.

No thread and no rights are needed: the kernel collects the events of marked folders, and `changes`
reads them. Where it can't be used (another system, an older kernel, a file system over the network,
too many folders) `reason` says why, and the caller looks at everything instead.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    # By folder the changed names, each with the inodes that had it.
    Changes = dict[bytes, dict[bytes, set[int]]]

# From <linux/fanotify.h>. Events name the folder, the entry, and the file itself; a process without
# rights gets them like any other since Linux 5.17.
_CLOEXEC, _NONBLOCK = 0x1, 0x2
_REPORT = 0x200 | 0x400 | 0x800 | 0x1000
_MARK_ADD, _MARK_DONT_FOLLOW, _MARK_ONLYDIR = 0x1, 0x4, 0x8
_MODIFY, _ATTRIB, _CLOSE_WRITE, _MOVED_FROM, _MOVED_TO = 0x2, 0x4, 0x8, 0x40, 0x80
_CREATE, _DELETE, _ON_CHILD, _ON_FOLDER = 0x100, 0x200, 0x08000000, 0x40000000
_WANTED = _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
_WANTED |= _ON_CHILD | _ON_FOLDER
_OVERFLOW = 0x4000
_FILE_ID, _FOLDER_ID_AND_NAME = 1, 2
_EVENT, _INFO, _HANDLE = struct.Struct("=IBBHQii"), struct.Struct("=BBH"), struct.Struct("=Ii")
_FSID = 8
_LONGEST_HANDLE = 128
_BUFFER = 256 * 1024
_AT_CWD = -100
# File systems whose changes all pass through this kernel: ext, xfs, btrfs, tmpfs, f2fs, zfs,
# bcachefs, overlay.
_LOCAL = frozenset(
    (0xEF53, 0x58465342, 0x9123683E, 0x01021994, 0xF2F52010, 0x2FC12FC1, 0xCA451A4E, 0x794C7630)
)


# A user may have 128 of them in all processes together; beyond a few, the oldest ones are closed.
_MOST = 4
_open: list[ChangeWatch] = []
_CLOSED = "closed"


class ChangeWatch:
    """The folders below one root that are watched by this process; a fork does not watch them."""

    def __init__(self) -> None:
        self.reason = ""
        self._process = os.getpid()
        self._handle = -1
        self._lock = threading.Lock()
        self._device: int | None = None
        self._folders: dict[bytes, bytes] = {}
        # Where in the identity of a file its inode number is, as far as is known.
        self._inode_at: set[tuple[int, int]] = set()
        self._libc = ctypes.CDLL(None, use_errno=True)
        try:
            flags = _CLOEXEC | _NONBLOCK | _REPORT
            self._handle = self._libc.fanotify_init(flags, os.O_RDONLY | os.O_CLOEXEC)
        except AttributeError:
            self.reason = "this system has no fanotify"
            return
        if self._handle < 0:
            self._fail("fanotify_init")
            return
        _open.append(self)
        if len(_open) > _MOST:
            _open[0].close()

    @property
    def closed(self) -> bool:
        """Whether it was closed, by itself or for a newer one, and not by a failure."""
        return self.reason == _CLOSED

    @property
    def inherited(self) -> bool:
        """Whether another process made it, of which this one is a fork."""
        return self._process != os.getpid()

    @property
    def works(self) -> bool:
        """Whether every folder that was added is watched, by this process."""
        return not self.reason and not self.inherited

    def add(self, folder: bytes) -> None:
        """Watch a folder, but not those in it; from now on, so look at it afterwards."""
        with self._lock:
            if self.works:
                self._add(folder)

    def _add(self, folder: bytes) -> None:
        flags = _MARK_ADD | _MARK_DONT_FOLLOW | _MARK_ONLYDIR
        mask = ctypes.c_uint64(_WANTED)
        if self._libc.fanotify_mark(self._handle, flags, mask, _AT_CWD, folder):
            self._fail("fanotify_mark")
            return
        try:
            status = os.lstat(folder)
        except OSError:
            return
        if self._device is None:
            self._device = status.st_dev
            if _file_system(self._libc, folder) not in _LOCAL:
                self.reason = "a file system that others may change unseen"
        if status.st_dev != self._device:
            self.reason = f"{os.fsdecode(folder)} is another file system"
        buffer = ctypes.create_string_buffer(_HANDLE.pack(_LONGEST_HANDLE, 0), 8 + _LONGEST_HANDLE)
        mount = ctypes.c_int()
        if self._libc.name_to_handle_at(_AT_CWD, folder, buffer, ctypes.byref(mount), 0):
            self._fail("name_to_handle_at")
            return
        identity = _identity(buffer.raw, 0)
        known = not self._folders
        self._folders[identity] = folder
        found = _places_of(status.st_ino, identity)
        self._inode_at = found if known else self._inode_at & found
        if not self._inode_at:
            self.reason = "its identities of files hold no inode numbers"

    def changes(self) -> Changes | None:
        """The names that changed since the last call; None when some may be missing."""
        with self._lock:
            return self._changes()

    def _changes(self) -> Changes | None:
        found: Changes = {}
        complete = self.works
        while self.works:
            try:
                data = os.read(self._handle, _BUFFER)
            except BlockingIOError:
                break
            for folder, name, inode in self._events(data):
                if name is None:
                    complete = False
                elif (path := self._folders.get(folder)) is not None:
                    names = found.setdefault(path, {})
                    inodes = names.setdefault(name, set())
                    if inode is not None:
                        inodes.add(inode)
        return found if complete else None

    def close(self) -> None:
        """Stop watching."""
        with self._lock:
            if self._handle >= 0:
                os.close(self._handle)
                self._handle = -1
                self.reason = self.reason or _CLOSED
        if self in _open:
            _open.remove(self)

    def _events(self, data: bytes) -> Iterator[tuple[bytes, bytes | None, int | None]]:
        """Folder, name and inode of each event; no name after an overflow."""
        start = 0
        while start < len(data):
            length, _, _, at, mask, _, _ = _EVENT.unpack_from(data, start)
            at, end = start + at, start + length
            folder, name, inode = b"", None, None
            while at < end:
                kind, _, size = _INFO.unpack_from(data, at)
                identity = _identity(data, at + _INFO.size + _FSID)
                if kind == _FOLDER_ID_AND_NAME:
                    folder = identity
                    begins = at + _INFO.size + _FSID + 4 + len(identity)
                    name = data[begins : at + size].partition(b"\0")[0]
                elif kind == _FILE_ID:
                    inode = self._inode(identity)
                at += size
            if mask & _OVERFLOW:
                name = None
            elif name is None:
                name = b"."
            yield folder, name, inode
            start = end

    def _inode(self, identity: bytes) -> int | None:
        for offset, width in self._inode_at:
            return int.from_bytes(identity[offset : offset + width], "little")
        return None

    def _fail(self, call: str) -> None:
        number = ctypes.get_errno()
        if self._folders and number in (errno.EACCES, errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            # A closed folder is looked at each time; one that is gone is no matter.
            return
        limit = " (fs.fanotify.max_user_marks)" if number == errno.ENOSPC else ""
        self.reason = f"{call}: {os.strerror(number)}{limit}"


def _identity(data: bytes, at: int) -> bytes:
    """Type and bytes of a `struct file_handle`."""
    length, _ = _HANDLE.unpack_from(data, at)
    return data[at + 4 : at + _HANDLE.size + length]


def _places_of(inode: int, identity: bytes) -> set[tuple[int, int]]:
    return {
        (offset, width)
        for width in (8, 4)
        for offset in range(4, len(identity) - width + 1, 4)
        if int.from_bytes(identity[offset : offset + width], "little") == inode
    }


def _file_system(libc: ctypes.CDLL, folder: bytes) -> int:
    """The type of the file system of a folder, as `statfs` gives it."""
    buffer = ctypes.create_string_buffer(256)
    if libc.statfs(folder, buffer):
        return 0
    kind = int.from_bytes(buffer.raw[: ctypes.sizeof(ctypes.c_long)], "little")
    return kind & 0xFFFFFFFF
