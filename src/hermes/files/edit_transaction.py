"""Edit transaction: lock, read, compute, keep for undo, write; on failure everything is put back.

Every change reads the file under its lock, so the second of two writers sees the result of the
first. The previous bytes are stored durably before the file is touched, and the file is replaced
as a whole. A change of several files is all or nothing.
"""

from __future__ import annotations

import errno
import os
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.errors import ToolError
from hermes.environments.for_task import disk_of
from hermes.files.seen_files import hide_keys, versions_of
from hermes.stores.checkpoints import ABSENT, Author, Planned, file_state
from hermes.stores.checkpoints.checkpoint_store import checkpoints

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from hermes.core.context import ToolContext
    from hermes.environments.disk.protocol import Disk
    from hermes.stores.checkpoints import Checkpoints

    # From the old content of files to the new one; None stands for a missing file.
    Compute = Callable[[Mapping[str, bytes | None]], Mapping[str, "Content | bytes | None"]]

# Editing happens in memory.
LARGEST = 256 * 1024 * 1024
_LOCK_SECONDS = 10.0
_PROCESS = os.urandom(3).hex()


class Content(NamedTuple):
    """New bytes of a file, and its mode when that changes, too."""

    data: bytes
    mode: int | None = None


class Edit(NamedTuple):
    """One changed file, before and after; None stands for a missing file."""

    place: str
    before: bytes | None
    after: bytes | None


class DiskTroubleError(ToolError):
    """The disk refused a read or a change."""


def rewrite(ctx: ToolContext, real_paths: Iterable[str], compute: Compute) -> list[Edit]:
    """Change files under lock; only those whose content differs are written.

    `compute` gets the bytes of all files and returns the new ones. An exception in it leaves
    everything unchanged.
    """
    disk, store, author = disk_of(ctx), checkpoints(ctx), author_of(ctx)
    with ExitStack() as held:
        # A fixed lock order prevents deadlocks between two changes of the same files.
        for real_path in sorted(set(real_paths)):
            held.enter_context(
                store.lock(
                    real_path, author=author, seconds=_LOCK_SECONDS, check=ctx.check_cancelled
                )
            )
        before = {real_path: read_whole(disk, real_path) for real_path in real_paths}
        for data in before.values():
            hide_keys(ctx, data or b"")
        wanted = {
            real_path: Content(new) if isinstance(new, bytes) else new
            for real_path, new in compute(before).items()
        }
        edits = [
            Edit(real_path, before[real_path], None if new is None else new.data)
            for real_path, new in wanted.items()
            if (None if new is None else new.data) != before[real_path] or (new and new.mode)
        ]
        if edits:
            planned = [_planned(wanted, edit.place) for edit in edits]
            kept = store.before(author, disk, planned)
            try:
                _carry_out(disk, edits, wanted)
            except BaseException as error:
                _put_back(store, disk, kept, error)
                raise
            _remember(ctx, edits, planned)
    return edits


def author_of(ctx: ToolContext) -> Author:
    """The author of a change, for the checkpoint store."""
    return Author(
        session=ctx.session_id,
        # A call without a turn is its own turn; call ids are unique only within a process.
        turn=ctx.turn or f"{ctx.call_id}-{_PROCESS}",
        call=ctx.call_id,
        tool=ctx.tool,
        agent=ctx.agent_path,
        front_door=ctx.front_door,
    )


def read_whole(disk: Disk, real_path: str) -> bytes | None:
    """The content of a file to edit; None when there is no such file."""
    status = disk.status(real_path)
    if status is None:
        return None
    if status.kind == "folder":
        raise ToolError(f"{real_path} is a folder", hint="Name a file in it.")
    if status.size > LARGEST:
        raise ToolError(
            f"{real_path} has {status.size:,} bytes, too many to edit in memory",
            hint="Use `terminal` with sed or a script.",
        )
    with disk_errors_for(real_path):
        return disk.read(real_path)


def _planned(wanted: Mapping[str, Content | None], real_path: str) -> Planned:
    new = wanted[real_path]
    return Planned(real_path, ABSENT if new is None else file_state(new.data, new.mode))


def _carry_out(disk: Disk, edits: Sequence[Edit], wanted: Mapping[str, Content | None]) -> None:
    # Deletions come last, so that a failure before them costs nothing.
    for edit in sorted(edits, key=lambda edit: wanted[edit.place] is None):
        new = wanted[edit.place]
        with disk_errors_for(edit.place):
            if new is None:
                disk.remove(edit.place)
            else:
                if edit.before is None:
                    disk.make_folder(os.path.dirname(edit.place))
                disk.write(edit.place, new.data, mode=new.mode)


def _put_back(store: Checkpoints, disk: Disk, kept: Sequence[int], error: BaseException) -> None:
    """Roll back after an error; files that can't be restored are named and stay on record."""
    left = store.take_back(disk, kept)
    if left:
        real_paths = ", ".join(change.place for change in left)
        message = f"{error}; {real_paths} could not be put back ({left[0].reason})"
        raise DiskTroubleError(message, hint="`hermes undo` puts it back.") from error


def _remember(ctx: ToolContext, edits: Sequence[Edit], planned: Sequence[Planned]) -> None:
    versions = versions_of(ctx)
    for edit, (_, after) in zip(edits, planned, strict=True):
        if edit.after is None:
            versions.forget(edit.place)
        else:
            versions.note(edit.place, after.digest, ctx.call_id, wrote=True, data=edit.after)


@contextmanager
def disk_errors_for(real_path: str) -> Iterator[None]:
    """Turn an `OSError` of a change into a `DiskTroubleError`."""
    try:
        yield
    except OSError as error:
        raise disk_error(real_path, error, suffix="; the old content is intact") from error


def disk_error(real_path: str, error: OSError, *, suffix: str = "") -> DiskTroubleError:
    """An error of the system as a message and a hint for the model."""
    text, hint = _ERROR_TEXTS.get(error.errno or 0, (error.strerror or str(error), None))
    return DiskTroubleError(f"{real_path}: {text}{suffix}", hint=hint)


_ERROR_TEXTS: dict[int, tuple[str, str | None]] = {
    errno.ENOSPC: ("the disk is full", "Free some space, then try again."),
    errno.EDQUOT: ("the quota is used up", "Free some space, then try again."),
    errno.EROFS: ("the disk is read-only", None),
    errno.EACCES: ("the system does not permit it", None),
    errno.EPERM: ("the system does not permit it", None),
    errno.ENOTDIR: ("a part of the path is a file, not a folder", None),
    errno.ENAMETOOLONG: ("the name is too long", "Choose a shorter one."),
    errno.EISDIR: ("it is a folder", "Name a file in it."),
}
