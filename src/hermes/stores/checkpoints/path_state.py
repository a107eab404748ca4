"""State of a path: digest, mode, times, owner, extended attributes; comparison of states."""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from hermes.environments.disk.local_disk import open_parent
from hermes.environments.disk.protocol import DiskError
from hermes.stores.checkpoints.packs import CHUNK
from hermes.stores.checkpoints.types import ABSENT, BY_STATUS, CheckpointError, State

if TYPE_CHECKING:
    from typing import BinaryIO

    from hermes.environments.disk.protocol import Disk, Status
    from hermes.stores.checkpoints.blobs import Draft


# What the system itself keeps up to date, or would not let anybody set.
_NOT_OURS = ("security.ima", "security.evm", "trusted.overlay.", "system.nfs4", "system.cifs")


class Traits(NamedTuple):
    """Modification time, owner, extended attributes sorted by name, and the identity of a file
    with several names (hard links), which all have the same."""

    mtime_ns: int
    uid: int
    gid: int
    attributes: tuple[tuple[str, bytes], ...] = ()
    shared: str = ""

    @property
    def text(self) -> str:
        """As it is kept; `read_traits` reads it."""
        text = f"{self.mtime_ns} {self.uid} {self.gid}"
        for name, value in self.attributes:
            text += f" {os.fsencode(name).hex()}={value.hex()}"
        return f"{text} @{self.shared}" if self.shared else text


def read_traits(text: str) -> Traits | None:
    """The stored traits; None when there are none."""
    if not text:
        return None
    text, _, shared = text.partition(" @")
    mtime, uid, gid, *said = text.split(" ")
    pairs = (one.partition("=") for one in said)
    attributes = ((os.fsdecode(bytes.fromhex(name)), bytes.fromhex(at)) for name, _, at in pairs)
    return Traits(int(mtime), int(uid), int(gid), tuple(attributes), shared)


def traits_of(disk: Disk, file: BinaryIO) -> Traits | None:
    """The traits of an open file; None on a disk that has none."""
    return traits_at(file.fileno()) if disk.label == "local" else None


def traits_at(handle: int, *, timeless: bool = False) -> Traits:
    """The traits of a file of this machine; `timeless` leaves the time out."""
    return _traits(os.fstat(handle), _attributes(handle), timeless=timeless)


def node_traits(path: bytes, found: os.stat_result) -> Traits:
    """The traits of a folder, link or special file but for its time."""
    # Links and special files have no attributes of their users.
    folder = stat.S_ISDIR(found.st_mode)
    return _traits(found, _attributes(path) if folder else (), timeless=True)


def special_type(mode: int, device: int) -> str:
    """Type of a special file, and its device, as `make_special` reads it."""
    return f"{stat.S_IFMT(mode):o}:{device}"


def _traits(
    found: os.stat_result, attributes: tuple[tuple[str, bytes], ...], *, timeless: bool = False
) -> Traits:
    several = found.st_nlink > 1 and not stat.S_ISDIR(found.st_mode)
    shared = f"{found.st_dev}:{found.st_ino}:{found.st_nlink}" if several else ""
    time = 0 if timeless else found.st_mtime_ns
    return Traits(time, found.st_uid, found.st_gid, attributes, shared)


def alike(one: Traits | None, other: Traits | None) -> bool:
    """Whether two files are the same in owner and attributes, as far as both are known."""
    return one is None or other is None or one[1:4] == other[1:4]


def is_quiet(one: State, other: State) -> bool:
    """Whether two states differ at most in times and in which names are one file."""
    return same(one, other) and alike(one.traits, other.traits)


def merged(before: Traits, left: Traits | None, now: Traits, *, replaced: bool) -> Traits:
    """The traits to restore: changes of the agent are reverted, changes of others kept.

    Args:
        before: The traits before the agent's change.
        left: The last recorded traits, or None.
        now: The current traits.
        replaced: Whether a new file replaced it since, which lost the traits it lacks.
    """
    was, found = dict(before.attributes), dict(now.attributes)
    known = {} if left is None else dict(left.attributes)
    kept = {}
    for name in was.keys() | found.keys():
        ours = found.get(name) == known.get(name) or (replaced and name not in found)
        value = was.get(name) if ours else found.get(name)
        if value is not None:
            kept[name] = value
    owner = before if left is None or now[1:3] == left[1:3] else now
    attributes = tuple(sorted(kept.items()))
    return Traits(before.mtime_ns, owner.uid, owner.gid, attributes, before.shared)


def dress(file: BinaryIO, wanted: Traits) -> list[str]:
    """Set the traits of a local file; returns those that the system refused."""
    handle = file.fileno()
    found = traits_at(handle)
    mode = stat.S_IMODE(os.fstat(handle).st_mode)
    refused = []
    if (found.uid, found.gid) != (wanted.uid, wanted.gid) and hasattr(os, "fchown"):
        try:
            os.fchown(handle, wanted.uid, wanted.gid)
        except OSError:
            # Only the superuser gives files away; the group alone may work.
            with suppress(OSError):
                os.fchown(handle, -1, wanted.gid)
            refused.append("owner")
    refused += _set_attributes(handle, dict(found.attributes), dict(wanted.attributes))
    if stat.S_IMODE(os.fstat(handle).st_mode) != mode:
        # Giving a file away takes some bits off it, and so does an access list.
        os.fchmod(handle, mode)
    # Last, for it stays only while nothing else is done.
    status = os.fstat(handle)
    if status.st_mtime_ns != wanted.mtime_ns and os.name != "nt":
        try:
            os.utime(handle, ns=(status.st_atime_ns, wanted.mtime_ns))
        except OSError:
            refused.append("modification time")
    return refused


def dress_node(place: str, wanted: Traits) -> list[str]:
    """Set the traits of a local folder, link or special file; returns those that were refused."""
    refused = []
    with open_parent(place) as (folder, name):
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if (found.st_uid, found.st_gid) != (wanted.uid, wanted.gid) and hasattr(os, "chown"):
            try:
                os.chown(name, wanted.uid, wanted.gid, dir_fd=folder, follow_symlinks=False)
            except OSError:
                refused.append("owner")
        if stat.S_ISDIR(found.st_mode):
            path = f"/proc/self/fd/{folder}/{name}" if folder is not None else place
            refused += _set_attributes(path, dict(_attributes(path)), dict(wanted.attributes))
            if stat.S_IMODE(os.stat(name, dir_fd=folder).st_mode) != stat.S_IMODE(found.st_mode):
                os.chmod(name, stat.S_IMODE(found.st_mode), dir_fd=folder)
        if found.st_mtime_ns != wanted.mtime_ns and os.utime in os.supports_follow_symlinks:
            times = (found.st_atime_ns, wanted.mtime_ns)
            try:
                os.utime(name, ns=times, dir_fd=folder, follow_symlinks=False)
            except OSError:
                refused.append("modification time")
    return refused


def make_special(place: str, kind: str, mode: int) -> None:
    """Make a pipe, a socket file, or as the superuser a device."""
    file_type, _, device = kind.partition(":")
    with open_parent(place) as (folder, name):
        os.mknod(name, int(file_type, 8) | mode, int(device), dir_fd=folder)
        os.chmod(name, mode, dir_fd=folder)


def _attributes(handle: int | bytes | str) -> tuple[tuple[str, bytes], ...]:
    try:
        names = os.listxattr(handle, **_options(handle))
    except (OSError, AttributeError):
        # Not every file system has them, nor every system.
        return ()
    found = []
    for name in names:
        if not name.startswith(_NOT_OURS):
            with suppress(OSError):
                found.append((name, os.getxattr(handle, name, **_options(handle))))
    return tuple(sorted(found))


def _options(handle: int | bytes | str) -> dict[str, bool]:
    return {} if isinstance(handle, int) else {"follow_symlinks": False}


def _set_attributes(
    handle: int | str, found: dict[str, bytes], wanted: dict[str, bytes]
) -> list[str]:
    refused = []
    for name in sorted(found.keys() | wanted.keys()):
        if found.get(name) == wanted.get(name):
            continue
        try:
            if name in wanted:
                os.setxattr(handle, name, wanted[name], **_options(handle))
            else:
                os.removexattr(handle, name, **_options(handle))
        except OSError:
            refused.append(name)
    return refused


MAX_FILE_BYTES = 256 << 20


def kept_state(disk: Disk, place: str, draft: Draft, *, limit: int) -> State:
    """The state of a path, its bytes stored; raises `CheckpointError` when they can't be."""
    found = disk.status(place)
    if found is None or found.kind != "file":
        return _other(disk, place, found)
    if found.size > limit:
        raise CheckpointError(
            f"{place} has {found.size} bytes, more than a checkpoint keeps ({limit})",
            hint="Nothing was changed. Move it out of the way, or change it without Hermes.",
        )
    try:
        with disk.open(place) as file:
            digest, size = draft.add_file(file, found.size)
            kept = traits_of(disk, file)
    except OSError as error:
        raise CheckpointError(
            f"{place} can't be read, so its content can't be kept: {error.strerror}",
            hint="Nothing was changed.",
        ) from None
    return State("file", digest, found.mode, size, traits=kept)


def present_state(disk: Disk, place: str, *, like: State) -> State:
    """The current state of a path, with its digest computed the way that of `like` was."""
    found = status_of(disk, place)
    if found is None or found.kind != "file":
        return _other(disk, place, found)
    if like.digest.startswith(BY_STATUS):
        digest = by_status(found.size, found.mtime_ns, found.inode)
        return State("file", digest, found.mode, found.size)
    hashed = hashlib.sha256()
    with disk.open(place) as file:
        while piece := file.read(CHUNK):
            hashed.update(piece)
        traits = traits_of(disk, file)
    return State("file", hashed.hexdigest(), found.mode, found.size, traits=traits)


def status_of(disk: Disk, place: str) -> Status | None:
    """The status of a path; absent when a parent is a link or a file."""
    try:
        return disk.status(place)
    except DiskError:
        above = os.path.dirname(place)
        found = None if above == place else status_of(disk, above)
        if found is not None and found.kind == "folder":
            raise
        return None


def by_status(size: int, mtime_ns: int, inode: int) -> str:
    """The digest of a file that is not read."""
    return f"{BY_STATUS}{size}:{mtime_ns}:{inode}"


def unchanged(one: State, other: State) -> bool:
    """Whether two states are the same in owner, attributes and other names, too."""
    if not is_quiet(one, other):
        return False
    return None in (one.traits, other.traits) or one.traits.shared == other.traits.shared  # type: ignore[union-attr]


def same_content(one: State, other: State) -> bool:
    """Whether two states differ at most in mode and traits."""
    return (one.kind, one.digest, one.target) == (other.kind, other.digest, other.target)


def same(one: State, other: State) -> bool:
    """Whether two states are the same in content and mode, as far as both say."""
    if not same_content(one, other):
        return False
    return one.kind == "link" or one.mode == other.mode or None in (one.mode, other.mode)


def _other(disk: Disk, place: str, found: Status | None) -> State:
    if found is None:
        return ABSENT
    traits, kind = None, ""
    if disk.label == "local" and os.name != "nt":
        with open_parent(place) as (folder, name):
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            path = f"/proc/self/fd/{folder}/{name}" if folder is not None else place
            traits = node_traits(os.fsencode(path), status)._replace(mtime_ns=status.st_mtime_ns)
            kind = special_type(status.st_mode, status.st_rdev)
    if found.kind == "link":
        return State("link", target=disk.link_target(place), traits=traits)
    if found.kind == "folder":
        return State("folder", mode=found.mode, traits=traits)
    return State("special", mode=found.mode, target=kind, traits=traits)
