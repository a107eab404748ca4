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
from hermes.environments import disk_of
from hermes.files.seen_files import hide_keys, versions_of
from hermes.stores.checkpoints import ABSENT, Author, Planned, file_state
from hermes.stores.checkpoints.checkpoint_store import checkpoints

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from hermes.core.context import ToolContext
    from hermes.environments.disk import Disk
    from hermes.stores.checkpoints import Checkpoints

    # From what the files hold to what they shall hold; None is a file that isn't there.
    Compute = Callable[[Mapping[str, bytes | None]], Mapping[str, "Content | bytes | None"]]

# Editing happens in memory.
LARGEST = 256 * 1024 * 1024
_LOCK_SECONDS = 10.0
_PROCESS = os.urandom(3).hex()


class Content(NamedTuple):
    """Bytes for a file whose mode matters, too."""

    data: bytes
    mode: int | None = None


class Edit(NamedTuple):
    """What became of one file; None is a file that isn't there."""

    place: str
    before: bytes | None
    after: bytes | None


class DiskTroubleError(ToolError):
    """The disk did not take the change; the old content is intact."""


def rewrite(ctx: ToolContext, places: Iterable[str], compute: Compute) -> list[Edit]:
    """Change files by what they hold; only those that come out different are written.

    `compute` sees the bytes of every place under lock, and gives the new ones; what it raises
    leaves everything as it is.
    """
    disk, store, author = disk_of(ctx), checkpoints(ctx), author_of(ctx)
    with ExitStack() as held:
        # In one order for everybody, so that two that want the same files can't block each other.
        for place in sorted(set(places)):
            held.enter_context(
                store.lock(place, author=author, seconds=_LOCK_SECONDS, check=ctx.check_cancelled)
            )
        before = {place: read_whole(disk, place) for place in places}
        for data in before.values():
            hide_keys(ctx, data or b"")
        wanted = {
            place: Content(new) if isinstance(new, bytes) else new
            for place, new in compute(before).items()
        }
        edits = [
            Edit(place, before[place], None if new is None else new.data)
            for place, new in wanted.items()
            if (None if new is None else new.data) != before[place] or (new and new.mode)
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
    """Whose change it is, as the checkpoint store notes it."""
    return Author(
        session=ctx.session_id,
        # A call by itself is a turn of its own, and its id need not be the only one of its kind.
        turn=ctx.turn or f"{ctx.call_id}-{_PROCESS}",
        call=ctx.call_id,
        tool=ctx.tool,
        agent=ctx.agent_path,
        front_door=ctx.front_door,
    )


def read_whole(disk: Disk, place: str) -> bytes | None:
    """All of a file that is to be edited; None when there is none."""
    found = disk.status(place)
    if found is None:
        return None
    if found.kind == "folder":
        raise ToolError(f"{place} is a folder", hint="Name a file in it.")
    if found.size > LARGEST:
        raise ToolError(
            f"{place} has {found.size:,} bytes, too many to edit in memory",
            hint="Use terminal with sed or a script.",
        )
    with explained(place):
        return disk.read(place)


def _planned(wanted: Mapping[str, Content | None], place: str) -> Planned:
    new = wanted[place]
    return Planned(place, ABSENT if new is None else file_state(new.data, new.mode))


def _carry_out(disk: Disk, edits: Sequence[Edit], wanted: Mapping[str, Content | None]) -> None:
    # What goes goes last: until then everything that a failure would cost is still there.
    for edit in sorted(edits, key=lambda edit: wanted[edit.place] is None):
        new = wanted[edit.place]
        with explained(edit.place):
            if new is None:
                disk.remove(edit.place)
            else:
                if edit.before is None:
                    disk.make_folder(os.path.dirname(edit.place))
                disk.write(edit.place, new.data, mode=new.mode)


def _put_back(store: Checkpoints, disk: Disk, kept: Sequence[int], error: BaseException) -> None:
    """Take back what was done before an error; says what could not be, which stays on record."""
    left = store.take_back(disk, kept)
    if left:
        places = ", ".join(one.place for one in left)
        message = f"{error}; {places} could not be put back ({left[0].reason})"
        raise DiskTroubleError(message, hint="`hermes undo` puts it back.") from error


def _remember(ctx: ToolContext, edits: Sequence[Edit], planned: Sequence[Planned]) -> None:
    versions = versions_of(ctx)
    for edit, (_, after) in zip(edits, planned, strict=True):
        if edit.after is None:
            versions.forget(edit.place)
        else:
            versions.note(edit.place, after.digest, ctx.call_id, wrote=True, data=edit.after)


@contextmanager
def explained(place: str, *, reading: bool = False) -> Iterator[None]:
    """Turns the system's errors into a line that says what they mean for a file."""
    try:
        yield
    except OSError as error:
        said, hint = _WORDS.get(error.errno or 0, (error.strerror or str(error), None))
        message = f"{place}: {said}" if reading else f"{place}: {said}; the old content is intact"
        raise DiskTroubleError(message, hint=hint) from error


_WORDS: dict[int, tuple[str, str | None]] = {
    errno.ENOSPC: ("the disk is full", "Free some space, then try again."),
    errno.EDQUOT: ("the quota is used up", "Free some space, then try again."),
    errno.EROFS: ("the disk is read-only", None),
    errno.EACCES: ("the system does not permit it", None),
    errno.EPERM: ("the system does not permit it", None),
    errno.ENOTDIR: ("a part of the path is a file, not a folder", None),
    errno.ENAMETOOLONG: ("the name is too long", "Choose a shorter one."),
    errno.EISDIR: ("it is a folder", "Name a file in it."),
}
