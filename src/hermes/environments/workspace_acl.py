"""Access control list of a workspace: lets an unprivileged container user write to a directory
owned by root.

The directory gets an entry for that user, and keeps owner and mode. At the end the entry is
removed,
and files made by that user are given to the owner of the directory.
"""

from __future__ import annotations

import os
import stat
import struct
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# Nobody's number elsewhere: what is granted here is granted to no other program.
AGENT = 61_001
_MOST = 20_000
_ACCESS, _DEFAULT = "system.posix_acl_access", "system.posix_acl_default"
_HEAD = struct.Struct("<I")
_ENTRY = struct.Struct("<HHI")
_OWNER, _USER, _GROUP, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x10, 0x20
_NOBODY = 0xFFFFFFFF


def grant_access(folder: str, user: int = AGENT) -> bool:
    """Let a user read and write what is in a folder; False where the disk has no access lists.

    Files that only their owner may read stay as they are.
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
            # Gone meanwhile, or not to be changed: then it is as it was.
            continue
    return True


def revoke_access(folder: str, user: int = AGENT) -> None:
    """Take away what was granted, and hand over what the user has made to the folder's owner."""
    if sys.platform != "linux":
        return
    try:
        owner = os.lstat(folder)
    except OSError:
        return
    for path in (folder, *_below(folder)):
        try:
            found = os.lstat(path)
            if found.st_uid == user:
                os.lchown(path, owner.st_uid, owner.st_gid)
            if stat.S_ISLNK(found.st_mode):
                continue
            _take_away(path, _ACCESS, user)
            if stat.S_ISDIR(found.st_mode):
                _take_away(path, _DEFAULT, user)
        except OSError:
            continue


def _below(folder: str) -> Iterator[str]:
    """What is in a folder, as far down as there are not too many."""
    count = 0
    for above, folders, files in os.walk(folder):
        for name in (*folders, *files):
            count += 1
            if count > _MOST:
                return
            yield os.path.join(above, name)


def _grant_folder(path: str, user: int) -> None:
    mode = os.lstat(path).st_mode
    _add(path, _ACCESS, mode, user, 7)
    _add(path, _DEFAULT, mode, user, 7)


def _add(path: str, name: str, mode: int, user: int, rights: int) -> None:
    """Add a user to one access list, which is made from the mode where there is none."""
    try:
        entries = list(_ENTRY.iter_unpack(os.getxattr(path, name, follow_symlinks=False)[4:]))
    except OSError:
        entries = [
            (_OWNER, mode >> 6 & 7, _NOBODY),
            (_GROUP, mode >> 3 & 7, _NOBODY),
            (_OTHER, mode & 7, _NOBODY),
        ]
    if any(tag == _USER and who == user and has == rights for tag, has, who in entries):
        return
    entries = [one for one in entries if not (one[0] == _USER and one[2] == user)]
    mask = rights
    for tag, has, _ in entries:
        if tag not in (_OWNER, _OTHER):
            mask |= has
    kept = [one for one in entries if one[0] != _MASK]
    _set(path, name, [*kept, (_USER, rights, user), (_MASK, mask, _NOBODY)])


def _take_away(path: str, name: str, user: int) -> None:
    """Take a user out of one access list, which goes when no more than the mode is left of it."""
    try:
        entries = list(_ENTRY.iter_unpack(os.getxattr(path, name, follow_symlinks=False)[4:]))
    except OSError:
        return
    kept = [one for one in entries if not (one[0] == _USER and one[2] == user)]
    if len(kept) == len(entries):
        return
    group = next(has for tag, has, _ in kept if tag == _GROUP)
    if any(tag not in (_OWNER, _GROUP, _MASK, _OTHER) for tag, _, _ in kept):
        mask = 0
        for tag, has, _ in kept:
            if tag not in (_OWNER, _OTHER, _MASK):
                mask |= has
        _set(path, name, [*(one for one in kept if one[0] != _MASK), (_MASK, mask, _NOBODY)])
        return
    os.removexattr(path, name, follow_symlinks=False)
    if name == _ACCESS:
        # Until now the mode showed the mask where the group's rights are.
        mode = stat.S_IMODE(os.lstat(path).st_mode)
        os.chmod(path, mode & ~0o070 | group << 3)


def _set(path: str, name: str, entries: list[tuple[int, int, int]]) -> None:
    packed = _HEAD.pack(2) + b"".join(_ENTRY.pack(*one) for one in sorted(entries, key=_order))
    os.setxattr(path, name, packed, follow_symlinks=False)


def _order(entry: tuple[int, int, int]) -> tuple[int, int]:
    return entry[0], entry[2]
