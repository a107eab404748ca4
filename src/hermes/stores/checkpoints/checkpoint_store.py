"""`Checkpoints`: record before a change, snapshot before a command, undo, inspect, prune."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import hermes.stores.checkpoints.journal as journal
from hermes.core.config import Config
from hermes.core.log import Log
from hermes.core.paths import home_path
from hermes.stores.checkpoints.blobs import MOST_FRESH, Contents
from hermes.stores.checkpoints.checkpoint_db import Database
from hermes.stores.checkpoints.journal import Record
from hermes.stores.checkpoints.path_locks import PathLocks
from hermes.stores.checkpoints.path_state import MAX_FILE_BYTES, kept_state
from hermes.stores.checkpoints.quota import Pruning
from hermes.stores.checkpoints.restore import put_back
from hermes.stores.checkpoints.types import ABSENT, Author, CheckpointError, State
from hermes.stores.checkpoints.undo import Differences, Undoing

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from types import TracebackType

    from hermes.core.context import ToolContext
    from hermes.environments.disk.protocol import Disk
    from hermes.stores.checkpoints.blobs import Draft
    from hermes.stores.checkpoints.snapshots import Limits, Snapshots
    from hermes.stores.checkpoints.types import (
        Change,
        Left,
        Planned,
        Progress,
        PruneReport,
        Snapshot,
        Turn,
        UndoReport,
        Usage,
    )


log = Log("hermes.checkpoints")

MAX_BYTES = 4 << 30
KEEP_DAYS = 30.0
LOCK_SECONDS = 10.0
# How many records go by between two looks at the size of the store.
_LOOK_EVERY = 500


class Checkpoints:
    """The store of one home folder; for any number of threads, and processes beside it."""

    def __init__(
        self,
        folder: str | None = None,
        *,
        max_bytes: int = MAX_BYTES,
        keep_days: float = KEEP_DAYS,
        max_file_bytes: int = MAX_FILE_BYTES,
        limits: Limits | None = None,
        disks: Mapping[str, Disk] | None = None,
        notice: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`notice` is called with a sentence for each pruning; by default that is logged."""
        self.folder = os.path.abspath(folder or home_path("checkpoints"))
        if disks is None or "local" not in disks:
            from hermes.environments.disk.local_disk import LocalDisk

            disks = {"local": LocalDisk(), **(disks or {})}
        self._disks = disks
        self._max_bytes = max_bytes
        self._max_file_bytes = max_file_bytes
        self._clock = clock
        self._limits = limits
        self._notice = notice or (lambda text: log.warning("%s", text))
        self._database = Database(self.folder)
        self._contents = Contents(self._database)
        self._locks = PathLocks(os.path.join(self.folder, "locks"))
        self._differences = Differences(self._contents)
        self._pruning = Pruning(
            self._database, self._contents, clock, max_bytes=max_bytes, keep_days=keep_days
        )
        self._taken: Snapshots | None = None
        self._records = 0
        # Whether we have kept something that is still to be compressed.
        self._fresh = False

    # -- keeping ----------------------------------------------------------------------------

    def before(self, author: Author, disk: Disk, intended: Sequence[Planned]) -> list[int]:
        """Record the state of each path before it changes, and the planned one; the record ids.

        On disk when this returns. Missing parent folders are recorded too, and everything in a
        folder that will be removed. Raises `CheckpointError` when a state can't be stored: then
        nothing may be changed.
        """
        with self._contents.draft(hurry=True) as draft:
            records: dict[str, Record] = {}
            for place, after in intended:
                self._add(records, disk, place, after, draft)
            with draft.storing() as connection:
                ids = journal.record(connection, author, self._clock(), list(records.values()))
        if draft.fresh:
            self._fresh = True
            if self._contents.fresh() > MOST_FRESH:
                self._compress()
        self._look()
        return ids

    def forget(self, changes: Iterable[int]) -> None:
        """Delete records of changes that failed."""
        with self._database.writing() as connection:
            journal.forget(connection, changes)

    def take_back(self, disk: Disk, changes: Sequence[int]) -> list[Left]:
        """Restore the paths of some records, under the locks of the caller, and delete the records.

        Returns the paths that could not be restored; then the records stay.
        """
        with self._database.reading() as connection:
            made = [found for one in changes if (found := journal.change(connection, one))]
        left = put_back(disk, self._contents, made)
        if not left:
            # A record of what was not done does no harm; where the disk is full it stays.
            with suppress(CheckpointError):
                self.forget(changes)
        return left

    def last_writer(self, place: str, *, digest: str, disk: str = "local") -> Author | None:
        """Who made the state with that digest; an empty one asks who removed the file."""
        with self._database.reading() as connection:
            return journal.last_writer(connection, place, digest, disk)

    def lock(
        self,
        place: str,
        *,
        author: Author | None = None,
        seconds: float = LOCK_SECONDS,
        check: Callable[[], None] | None = None,
    ) -> AbstractContextManager[None]:
        """Lock a path; raises `BusyError`, which names the holder."""
        who = (author or Author(tool=f"process {os.getpid()}")).described
        return self._locks.hold(place, who, seconds=seconds, check=check)

    def snapshot(
        self,
        root: str,
        author: Author,
        *,
        progress: Progress | None = None,
        check: Callable[[], None] | None = None,
        background: bool = False,
        patience: float | None = None,
        first: Collection[str] = (),
    ) -> Snapshot:
        """Snapshot a folder before a command; `notes` list its unprotected parts.

        After `patience` seconds only the files at the paths `first` are read; `later` says how many
        are left, and `keep` reads them.
        """
        self._recover()
        room = self.room()
        if not room:
            self._prune_aloud()
            room = self.room()
        taken = self._snapshots.take(
            root, author, room=room, progress=progress, check=check, background=background,
            patience=patience, first=first,
        )  # fmt: skip
        self._look()
        return taken

    def keep(self, root: str, *, seconds: float) -> int:
        """Read files that a snapshot left for later; how many are still left."""
        return self._snapshots.keep(root, room=self.room(), seconds=seconds)

    def after_command(self, snapshot: Snapshot, *, certain: bool = True) -> list[Change]:
        """Record the changes since the snapshot as those of its author.

        Where they are not `certain`, undo restores removed files and leaves others alone, unless
        forced.
        """
        return self._snapshots.finish(snapshot, certain=certain)

    def room(self) -> int:
        """How many bytes more the store may take."""
        return max(0, self._max_bytes - self._pruning.size())

    def refusal(self, path: str, status: os.stat_result, *, root: str, room: int) -> str:
        """Why a snapshot of `root` would not keep a file; empty where it would."""
        return self._snapshots.refusal(path, status, root=root, room=room)

    def made_below(self, folder: str, session: str) -> set[str]:
        """The paths below a folder that a session created, whether they are still there or not."""
        with self._database.reading() as connection:
            return journal.made_below(connection, folder, session) if session else set()

    # -- undoing ----------------------------------------------------------------------------

    def undo(
        self,
        *,
        below: str | None = None,
        turn: str | None = None,
        call: str | None = None,
        force: bool = False,
        dry_run: bool = False,
        author: Author | None = None,
    ) -> UndoReport:
        """Undo a turn, a call, or the last turn with changes below a folder.

        Only changes of the agent are undone; paths that others changed since are left alone and
        reported, unless `force`. An interrupted undo is completed first.
        """
        self._recover(running=True)
        self._snapshots.check(os.path.realpath(below or os.getcwd()))
        if self._fresh:
            self._compress()
        return self._undoing.undo(
            below=below, turn=turn, call=call, force=force, dry_run=dry_run,
            author=author or Author(),
        )  # fmt: skip

    def restore(
        self,
        place: str,
        change: int | None = None,
        *,
        author: Author | None = None,
        dry_run: bool = False,
    ) -> UndoReport:
        """Restore one path to its state before a change, by default its newest one."""
        place = os.path.join(os.path.realpath(os.path.dirname(place)), os.path.basename(place))
        with self._database.reading() as connection:
            known = journal.changes_at(connection, place)
        found = known[-1] if known and change is None else None
        found = found or next((one for one in known if one.id == change), None)
        if found is None:
            what = "no change" if change is None else f"no change {change}"
            raise CheckpointError(f"{what} of {place} is recorded", hint="hermes checkpoints list")
        return self._undoing.restore(found, author=author or Author(), dry_run=dry_run)

    # -- looking ----------------------------------------------------------------------------

    def turns(self, *, below: str | None = None, limit: int | None = None) -> list[Turn]:
        """Turns that changed something, newest first."""
        self._recover()
        folder = None if below is None else os.path.realpath(below)
        with self._database.reading() as connection:
            return journal.turns(connection, below=folder, limit=limit)

    def show(self, name: str) -> list[Change]:
        """The changes of a turn or a call, in order; a number is also taken for a change."""
        with self._database.reading() as connection:
            turn = journal.find_turn(connection, name)
            if turn is not None:
                return _visible(journal.changes_of(connection, turn.id))
            called = journal.find_call(connection, name)
            if called is not None:
                return _visible(journal.changes_of(connection, called[0].id, called[1]))
            one = journal.change(connection, int(name)) if name.isdecimal() else None
        if one is None:
            raise CheckpointError(
                f"no turn, call or change {name!r:.80}", hint="hermes checkpoints list"
            )
        return [one]

    def previous(self, place: str) -> bytes | None:
        """The bytes of a file before its newest change; None when it was no file."""
        with self._database.reading() as connection:
            known = journal.changes_at(connection, place)
        if not known or known[-1].before.kind != "file":
            return None
        return self.content(known[-1].before)

    def newest(self, place: str, *, disk: str = "local") -> Change | None:
        """The last recorded change of one path."""
        with self._database.reading() as connection:
            return journal.newest_at(connection, place, disk)

    def history(self, place: str) -> list[Change]:
        """The recorded changes of one path, oldest first."""
        with self._database.reading() as connection:
            return journal.changes_at(connection, place)

    def diff(self, name: str) -> list[tuple[str, str]]:
        """The changes of a turn, call or change as pairs of path and diff, merged by path."""
        first: dict[tuple[str, str], Change] = {}
        last: dict[tuple[str, str], Change] = {}
        for change in self.show(name):
            first.setdefault((change.disk, change.place), change)
            last[change.disk, change.place] = change
        return [
            (
                key[1],
                self._differences.between(
                    key[1], one.before, last[key].after,
                    disk=self._disks.get(key[0]), names=("before", "after"),
                ),
            )
            for key, one in first.items()
        ]  # fmt: skip

    def content(self, state: State) -> bytes:
        """The bytes of a file as it was; raises `CheckpointError` when the store lacks them."""
        if state.kind != "file" or not state.readable:
            raise CheckpointError(f"the store has no bytes of {state.described}")
        return b"".join(self._contents.read(state.digest))

    def prune(
        self, *, max_bytes: int | None = None, keep_days: float | None = None, dry_run: bool = False
    ) -> PruneReport:
        """Drop expired turns, then the oldest while the store is too large; the last day stays."""
        return self._pruning.prune(max_bytes=max_bytes, keep_days=keep_days, dry_run=dry_run)

    def usage(self) -> Usage:
        """How much the store holds."""
        return self._pruning.usage()

    def close(self) -> None:
        """Compress blobs stored in a hurry and close the database; the next use opens it."""
        if self._fresh:
            self._compress()
        if self._taken is not None:
            self._taken.close()
        self._database.close()

    def __enter__(self) -> Checkpoints:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- within -----------------------------------------------------------------------------

    @property
    def _snapshots(self) -> Snapshots:
        if self._taken is None:
            from hermes.stores.checkpoints.snapshots import Limits, Snapshots

            self._taken = Snapshots(
                self._database, self._contents, self._clock, self._limits or Limits()
            )
        return self._taken

    @property
    def _undoing(self) -> Undoing:
        return Undoing(self._database, self._contents, self._disks, self.lock, self._clock)

    def _add(
        self, records: dict[str, Record], disk: Disk, place: str, after: State, draft: Draft
    ) -> None:
        before = kept_state(disk, place, draft, limit=self._max_file_bytes)
        if before.kind == "folder" != after.kind:
            for entry in disk.scan(place):
                self._add(records, disk, os.path.join(place, entry.name), ABSENT, draft)
        if after.kind != "absent":
            above = os.path.dirname(place)
            while above not in records and disk.status(above) is None:
                records[above] = Record(disk.label, above, ABSENT, State("folder"))
                above = os.path.dirname(above)
        if after.mode is None and before.kind == after.kind:
            after = after._replace(mode=before.mode)
        records[place] = Record(disk.label, place, before, after)

    def _recover(self, *, running: bool = False) -> None:
        """Record the changes of commands whose process ended before it recorded them.

        With `running` those that background commands have made so far, too.
        """
        for snapshot in self._snapshots.abandoned(running=running):
            ended = snapshot.lock is not None
            changes = self._snapshots.finish(snapshot, certain=False, ended=ended)
            if changes and ended:
                self._notice(
                    f"{snapshot.author.described} was cut off; {len(changes)} changes below "
                    f"{snapshot.root} were recorded after the fact"
                )

    def _compress(self) -> None:
        """Compress blobs stored in a hurry; after an error they stay as they are."""
        self._fresh = False
        if not os.path.exists(self._database.path):
            # Somebody has removed the store: it is not made again for this.
            return
        try:
            self._contents.compress()
        except (CheckpointError, OSError) as error:
            log.warning("what was kept is not compressed yet: %s", error)

    def _look(self) -> None:
        """Keep the store within its limits, now and then."""
        if self._records % _LOOK_EVERY == 0 and self._pruning.due():
            self._prune_aloud()
        self._records += 1

    def _prune_aloud(self) -> None:
        report = self._pruning.prune()
        if report.turns:
            self._notice(
                f"{len(report.turns)} checkpoints older than {self._pruning.keep_days:g} days or "
                f"past {self._max_bytes} bytes were dropped, the oldest first"
            )
        for note in report.notes:
            self._notice(note)


def _visible(changes: list[Change]) -> list[Change]:
    return [change for change in changes if not change.quiet]


_lock = threading.Lock()
_stores: dict[str, Checkpoints] = {}


def checkpoints(ctx: ToolContext | None = None) -> Checkpoints:
    """The checkpoint store of the home folder, opened on first use."""
    folder = home_path("checkpoints")
    with _lock:
        if folder not in _stores:
            app = ctx.services.app if ctx is not None else None
            config = Config.load() if app is None else app.config
            import atexit

            store = _stores[folder] = Checkpoints(
                folder,
                max_bytes=config.get("checkpoints.max_bytes"),
                keep_days=config.get("checkpoints.keep_days"),
                max_file_bytes=config.get("checkpoints.max_file_bytes"),
            )
            atexit.register(store.close)
        return _stores[folder]
