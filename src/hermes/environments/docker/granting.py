"""Lets a user without rights work in a folder that belongs to root.

Commands in a container never run as root by default; what belongs to root they could not write. The
folder gets an entry for that user in its access list, and keeps owner and mode.
"""

from __future__ import annotations

import os
import stat
import struct
import sys

# Nobody's number elsewhere: what is granted here is granted to no other program.
AGENT = 61_001
_MOST = 20_000
_ACCESS, _DEFAULT = "system.posix_acl_access", "system.posix_acl_default"
_HEAD = struct.Struct("<I")
_ENTRY = struct.Struct("<HHI")
_OWNER, _USER, _GROUP, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x10, 0x20
_NOBODY = 0xFFFFFFFF


def granted(folder: str, user: int = AGENT) -> bool:
    """Let a user read and write what is in a folder; False where the disk has no access lists.

    Files that only their owner may read stay as they are.
    """
    if sys.platform != "linux":
        return False
    try:
        _grant_folder(folder, user)
    except OSError:
        return False
    count = 0
    for above, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = os.path.join(above, name)
            count += 1
            if count > _MOST:
                return True
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
    whole = sorted([*kept, (_USER, rights, user), (_MASK, mask, _NOBODY)], key=_order)
    packed = _HEAD.pack(2) + b"".join(_ENTRY.pack(*one) for one in whole)
    os.setxattr(path, name, packed, follow_symlinks=False)


def _order(entry: tuple[int, int, int]) -> tuple[int, int]:
    return entry[0], entry[2]
