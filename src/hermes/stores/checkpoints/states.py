"""What is at a place now, kept in the store on the way, and compared with what was recorded."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from hermes.runtime.disk import DiskError
from hermes.stores.checkpoints.packs import CHUNK
from hermes.stores.checkpoints.traits import alike, traits_of
from hermes.stores.checkpoints.values import ABSENT, BY_STATUS, CheckpointError, State

if TYPE_CHECKING:
    from hermes.runtime.disk import Disk, Status
    from hermes.stores.checkpoints.contents import Draft

MAX_FILE_BYTES = 256 << 20


def kept_state(disk: Disk, place: str, draft: Draft, *, limit: int) -> State:
    """What is at a place, its bytes kept; raises `CheckpointError` where they can't be."""
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
    """What is at a place, its digest taken the way that of `like` was."""
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
    """What is at a place; nothing where a link or a file is in the place of a folder above."""
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
    """Whether two states are the same in owner and attributes, too."""
    return same(one, other) and alike(one.traits, other.traits)


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
    if found.kind == "link":
        return State("link", target=disk.link_target(place))
    if found.kind == "folder":
        return State("folder", mode=found.mode)
    return State("special", mode=found.mode)
