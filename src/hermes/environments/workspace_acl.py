"""Access control list of a workspace: lets an unprivileged container user write to root's folder.

The folder gets an entry for that user, and keeps owner and mode. At the end the entry is removed,
and files made by that user are given to the owner of the folder.
"""

from __future__ import annotations

import os
import stat
import struct
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    # Tag, permissions, user or group id.
    Entry = tuple[int, int, int]

# A uid that no other program uses.
CONTAINER_USER = 61_001
_MAX_FILES = 20_000
_ACCESS, _DEFAULT = "system.posix_acl_access", "system.posix_acl_default"
_HEADER = struct.pack("<I", 2)
_ENTRY = struct.Struct("<HHI")
_OWNER, _USER, _GROUP, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x10, 0x20
_NO_ID = 0xFFFFFFFF


def grant_access(folder: str, user: int = CONTAINER_USER) -> bool:
    """Let a user read and write the files of a folder; False without ACLs on its file system.

    Files that only their owner may read stay private.
    """
    if sys.platform != "linux":
        return False
    try:
        _grant_folder(folder, user)
    except OSError:
        return False
    for path in _below(folder):
        try:
            mode = os.lstat(path).st_mode
            if stat.S_ISDIR(mode):
                _grant_folder(path, user)
            elif stat.S_ISREG(mode) and mode & 0o077:
                _add(path, _ACCESS, mode, user, 6 | (mode >> 6 & 1))
        except OSError:
            # Deleted meanwhile, or immutable.
            continue
    return True


def revoke_access(folder: str, user: int = CONTAINER_USER) -> None:
    """Remove the user's entries, and give the user's files to the folder's owner."""
    if sys.platform != "linux":
        return
    try:
        owner = os.lstat(folder)
    except OSError:
        return
    for path in (folder, *_below(folder)):
        try:
            status = os.lstat(path)
            if status.st_uid == user:
                os.lchown(path, owner.st_uid, owner.st_gid)
            if stat.S_ISLNK(status.st_mode):
                continue
            _remove(path, _ACCESS, user)
            if stat.S_ISDIR(status.st_mode):
                _remove(path, _DEFAULT, user)
        except OSError:
            continue


def _below(folder: str) -> Iterator[str]:
    count = 0
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            count += 1
            if count > _MAX_FILES:
                return
            yield os.path.join(parent, name)


def _grant_folder(path: str, user: int) -> None:
    mode = os.lstat(path).st_mode
    _add(path, _ACCESS, mode, user, 7)
    _add(path, _DEFAULT, mode, user, 7)


def _add(path: str, name: str, mode: int, user: int, permissions: int) -> None:
    """Add an entry to one list, which is made from the mode if there is none."""
    try:
        entries = _read(path, name)
    except OSError:
        entries = [
            (_OWNER, mode >> 6 & 7, _NO_ID),
            (_GROUP, mode >> 3 & 7, _NO_ID),
            (_OTHER, mode & 7, _NO_ID),
        ]
    if (_USER, permissions, user) in entries:
        return
    kept = [each for each in _without(entries, user) if each[0] != _MASK]
    mask = permissions | _group_permissions(kept)
    _write(path, name, [*kept, (_USER, permissions, user), (_MASK, mask, _NO_ID)])


def _remove(path: str, name: str, user: int) -> None:
    """Remove a user's entry from one list, and the list when it says no more than the mode."""
    try:
        entries = _read(path, name)
    except OSError:
        return
    kept = _without(entries, user)
    if len(kept) == len(entries):
        return
    # A new file takes its group's permissions from the folder's default list (r-x); only its mask
    # has the mode that its program asked for (rw-).
    mask = next((has for tag, has, _ in kept if tag == _MASK), 7)
    if any(tag not in (_OWNER, _GROUP, _MASK, _OTHER) for tag, _, _ in kept):
        kept = [each for each in kept if each[0] != _MASK]
        _write(path, name, [*kept, (_MASK, mask & _group_permissions(kept), _NO_ID)])
        return
    os.removexattr(path, name, follow_symlinks=False)
    if name == _ACCESS:
        # With a list, the group bits of the mode are the mask.
        group = next(has for tag, has, _ in kept if tag == _GROUP) & mask
        mode = stat.S_IMODE(os.lstat(path).st_mode)
        os.chmod(path, mode & ~0o070 | group << 3)


def _without(entries: list[Entry], user: int) -> list[Entry]:
    return [each for each in entries if not (each[0] == _USER and each[2] == user)]


def _group_permissions(entries: list[Entry]) -> int:
    """All permissions of the entries that a mask limits."""
    union = 0
    for tag, has, _ in entries:
        if tag not in (_OWNER, _OTHER):
            union |= has
    return union


def _read(path: str, name: str) -> list[Entry]:
    packed = os.getxattr(path, name, follow_symlinks=False)
    return [(tag, has, who) for tag, has, who in _ENTRY.iter_unpack(packed[len(_HEADER) :])]


def _write(path: str, name: str, entries: list[Entry]) -> None:
    ordered = sorted(entries, key=lambda entry: (entry[0], entry[2]))
    packed = _HEADER + b"".join(_ENTRY.pack(*entry) for entry in ordered)
    os.setxattr(path, name, packed, follow_symlinks=False)
