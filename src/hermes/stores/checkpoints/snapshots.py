"""Snapshots of a working folder before and after a command, and the changes between them."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

import hermes.stores.checkpoints.journal as journal
import hermes.stores.checkpoints.tree_walk as tree_walk
from hermes.core.paths import flock, hermes_home, is_below, open_lock
from hermes.stores.checkpoints.blobs import LARGE, NoRoomError
from hermes.stores.checkpoints.change_watch import ChangeWatch
from hermes.stores.checkpoints.journal import Record
from hermes.stores.checkpoints.packs import CHUNK
from hermes.stores.checkpoints.path_state import by_status, read_traits, same, traits_at
from hermes.stores.checkpoints.tree_walk import (
    Met,
    Walk,
    differing,
    has_other_names,
    hidden,
    is_file,
    is_folder,
    is_link,
    joined,
)
from hermes.stores.checkpoints.types import ABSENT, Author, Change, Snapshot, State

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from sqlite3 import Connection

    from hermes.stores.checkpoints.blobs import Contents, Draft
    from hermes.stores.checkpoints.checkpoint_db import Database
    from hermes.stores.checkpoints.tree_walk import Folders, Manifest, Seen
    from hermes.stores.checkpoints.types import Progress

# A transaction of this many bytes or files at a time: others can write in between.
_BATCH_BYTES, _BATCH_FILES = 16 << 20, 4000
# Files that are read however long it takes; a machine that stands still must not leave them out.
AT_LEAST_FILES = 500
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_READ |= getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


# So much earlier than a walk a change must be to count as one that the walk should have seen.
_EARLIER_NS = 50_000_000
_NO_ROOM = "past the room that there is for checkpoints"


class Limits(NamedTuple):
    """Limits of a snapshot; files beyond them are reported as unprotected."""

    files: int = 2_000_000
    file_bytes: int = 1 << 40


class Snapshots:
    """Takes the snapshots of a store."""

    def __init__(
        self, database: Database, contents: Contents, clock: Callable[[], float], limits: Limits
    ) -> None:
        self._database = database
        self._contents = contents
        self._clock = clock
        self._limits = limits
        self._roots: dict[bytes, _Root] = {}
        self._lock = threading.Lock()
        self._running = os.path.join(database.folder, "running")

    def close(self) -> None:
        """Stop watching; the next snapshot looks at everything."""
        with self._lock:
            roots, self._roots = self._roots, {}
        for state in roots.values():
            state.watch.close()

    def refusal(self, path: str, status: os.stat_result, *, root: str, room: int) -> str:
        """Why a file would not be kept; empty where it would be, or is already."""
        size = status.st_size
        state = self._roots.get(os.fsencode(root))
        known = None if state is None else state.manifest
        if known is not None and size >= LARGE:
            folder, name = os.path.split(os.fsencode(path))
            seen = known.folders.get(folder, {}).get(name)
            if seen is not None and seen[2] and seen[0][1:3] == (size, status.st_mtime_ns):
                return ""
        if size > self._limits.file_bytes:
            return f"larger than {self._limits.file_bytes} bytes"
        return _NO_ROOM if size > room else ""

    def take(
        self,
        root: str,
        author: Author,
        *,
        room: int,
        progress: Progress | None,
        check: Callable[[], None] | None,
        background: bool = False,
        patience: float | None = None,
        first: Collection[str] = (),
    ) -> Snapshot:
        """Keep everything below `root`.

        Args:
            root: The folder.
            author: Who will change it.
            room: How many bytes more the store may take.
            progress: Called now and then.
            check: Called again and again; may raise to stop.
            background: Whether what the command did so far is recorded before an undo, too.
            patience: Seconds of reading after which `keep` is left to go on.
            first: Paths that are read in any case.
        """
        root = os.path.realpath(root)
        place = os.fsencode(root)
        with self._at(place, check) as state, self._contents.draft() as draft:
            known = self._known(state, place)
            seen = self._walk(state, place, known, check)
            deadline = None if patience is None else time.monotonic() + patience
            keeper = _Keeper(self._limits, room, draft, deadline=deadline)
            keeper.see_all(seen, known, first=first, progress=progress, check=check)
            notes = [*keeper.notes(), *_walk_notes(seen, self._limits)]
            snapshot = Snapshot(root, author, seen.folders, notes)
            snapshot.stored = draft.added
            snapshot.later = keeper.late
            state.settle(self._open(snapshot, known, draft, background=background), seen)
        return snapshot

    def keep(self, root: str, *, room: int, seconds: float) -> int:
        """Read files that a snapshot left for later; how many are still left."""
        place = os.fsencode(root)
        with self._at(place) as state, self._contents.draft() as draft:
            known = self._known(state, place)
            seen = self._walk(state, place, known, None)
            deadline = time.monotonic() + seconds
            keeper = _Keeper(self._limits, room, draft, deadline=deadline)
            keeper.see_all(seen, known)
            with draft.storing() as connection:
                manifest = tree_walk.save(connection, known, seen.folders, self._clock())
            state.settle(manifest, seen)
        return keeper.late

    def finish(
        self, snapshot: Snapshot, *, certain: bool = True, ended: bool = True
    ) -> list[Change]:
        """Record the changes since a snapshot as those of its author; it stays open unless the
        command has `ended`."""
        place = os.fsencode(snapshot.root)
        with self._at(place) as state:
            known = self._known(state, place)
            seen = self._walk(state, place, known, None)
            for met in seen.met:
                self._see_again(seen, met, snapshot.folders)
            found = [
                Record("local", os.fsdecode(path), _state(_kept(path, one, known)), _state(other),
                       certain)
                for path, one, other in differing(snapshot.folders, seen.folders)
            ]  # fmt: skip
            # A folder that was closed meanwhile may have lost anything; what it did not lose is
            # recognised when it comes to undoing.
            found += [
                Record("local", os.fsdecode(path), _state(one), ABSENT, certain=False)
                for path, one in hidden(snapshot.folders, seen)
            ]
            found += _other_names(found, snapshot.folders)
            with self._database.writing() as connection:
                records = found
                if journal.watermark(connection) != snapshot.watermark:
                    records = [one for one in found if not _known(connection, one, snapshot)]
                ids = []
                if records:
                    ids = journal.record(connection, snapshot.author, self._clock(), records)
                if ended:
                    connection.execute("DELETE FROM snapshots WHERE id = ?", (snapshot.id,))
                    connection.execute("DELETE FROM frozen WHERE snapshot = ?", (snapshot.id,))
                connection.execute(
                    "UPDATE roots SET author = ? WHERE place = ?",
                    (json.dumps(snapshot.author), place),
                )
                current = tree_walk.load(connection, place, known, self._clock())
                manifest = tree_walk.save(connection, current, seen.folders, self._clock())
                made = [journal.change(connection, number) for number in ids]
            state.settle(manifest, seen)
        if ended:
            self._release(snapshot)
        return [change for change in made if change is not None and not change.quiet]

    def check(self, folder: str) -> list[Change]:
        """Look at everything in the roots of a folder, and record what the watch did not see.

        That is what differs from the last walk although it was changed before it: through a name
        (hard link) elsewhere, or through memory of a process that still runs. Its author is that of
        the last command, but not for certain.
        """
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT place, at, author FROM roots WHERE author != ''"
            ).fetchall()
        made: list[Change] = []
        for place, at, author in rows:
            root = os.fsdecode(place)
            if not (is_below(root, folder) or is_below(folder, root)) or not os.path.isdir(root):
                continue
            with self._database.writing() as connection:
                known = tree_walk.load(connection, place, None, at)
            seen = self._walker(known, None).whole(place)
            for met in seen.met:
                self._see_again(seen, met, known.folders)
            before = int(at * 1e9) - _EARLIER_NS
            missed = [
                Record("local", os.fsdecode(path), _state(one), _state(other), certain=False)
                for path, one, other in differing(known.folders, seen.folders)
                if one is not None and other is not None and 0 < other[0][3] < before
            ]
            with self._database.writing() as connection:
                who = Author(*json.loads(author))
                ids = journal.record(connection, who, self._clock(), missed) if missed else []
                made += [one for number in ids if (one := journal.change(connection, number))]
        return made

    def abandoned(self, *, running: bool = False) -> list[Snapshot]:
        """Snapshots of commands that were running when their process ended.

        With `running` those of background commands, too, without their lock.
        """
        if os.name == "nt":
            # Nothing there tells us who has ended.
            return []
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT snapshots.id, root, roots.place, watermark, snapshots.author, background"
                " FROM snapshots"
                " JOIN roots ON roots.id = snapshots.root ORDER BY snapshots.id"
            ).fetchall()
        found = []
        for number, root, place, watermark, author, background in rows:
            lock = open_lock(self._lock_path(number))
            handle = lock if flock(lock, exclusive=True, wait=False) else None
            if handle is None:
                os.close(lock)
                if not (running and background):
                    continue
            with self._database.reading() as connection:
                still = connection.execute("SELECT 1 FROM snapshots WHERE id = ?", (number,))
                if still.fetchone() is None:
                    # Finished just now, and we have made its file again.
                    self._let_go(number, handle)
                    continue
                folders = tree_walk.as_of(connection, number, root)
            if folders is None:
                # Of another version, or damaged: what its command changed can't be told any more.
                with self._database.writing() as connection:
                    connection.execute("DELETE FROM snapshots WHERE id = ?", (number,))
                    connection.execute("DELETE FROM frozen WHERE snapshot = ?", (number,))
                self._let_go(number, handle)
                continue
            who = Author(*json.loads(author))
            snapshot = Snapshot(os.fsdecode(place), who, folders, [])
            snapshot.id, snapshot.watermark, snapshot.lock = number, watermark, handle
            found.append(snapshot)
        return found

    @contextmanager
    def _at(self, place: bytes, check: Callable[[], None] | None = None) -> Iterator[_Root]:
        """What is known of a folder; one thread at a time."""
        with self._lock:
            state = self._roots.setdefault(place, _Root())
        while not state.lock.acquire(timeout=0.1):
            if check is not None:
                check()
        try:
            yield state
        finally:
            state.lock.release()

    def _known(self, state: _Root, place: bytes) -> Manifest:
        with self._database.writing() as connection:
            return tree_walk.load(connection, place, state.manifest, self._clock())

    def _walk(
        self, state: _Root, root: bytes, known: Manifest, check: Callable[[], None] | None
    ) -> Walk:
        changes = state.changes(known)
        walk = self._walker(known, check, state.watch.add)
        return walk.whole(root) if changes is None else walk.part(changes, root)

    def _walker(
        self,
        known: Manifest,
        check: Callable[[], None] | None,
        watch: Callable[[bytes], None] | None = None,
    ) -> Walk:
        ours = (os.path.realpath(hermes_home()), os.path.realpath(self._database.folder))
        return Walk(
            known.folders,
            # Where the work itself is below the home folder, only the store is left out.
            skip={os.fsencode(one) for one in ours},
            max_files=self._limits.files,
            now_ns=time.time_ns(),
            check=check,
            watch=watch,
        )

    def _open(
        self, snapshot: Snapshot, known: Manifest, draft: Draft, *, background: bool
    ) -> Manifest:
        with draft.storing() as connection:
            manifest = tree_walk.save(connection, known, snapshot.folders, self._clock())
            snapshot.watermark = journal.watermark(connection)
            number = connection.execute(
                "INSERT INTO snapshots (root, at, watermark, author, background)"
                " VALUES (?, ?, ?, ?, ?)",
                (manifest.root, self._clock(), snapshot.watermark,
                 json.dumps(snapshot.author), background),
            ).lastrowid  # fmt: skip
            snapshot.id = number or 0
            # Locked before anybody can see it: a snapshot without a lock was cut off.
            snapshot.lock = open_lock(self._lock_path(snapshot.id))
            flock(snapshot.lock, exclusive=True, wait=True)
        return manifest

    def _release(self, snapshot: Snapshot) -> None:
        if snapshot.lock is not None:
            self._let_go(snapshot.id, snapshot.lock)
            snapshot.lock = None

    def _let_go(self, number: int, handle: int | None) -> None:
        if handle is not None:
            with suppress(FileNotFoundError):
                os.unlink(self._lock_path(number))
            os.close(handle)

    def _lock_path(self, number: int) -> str:
        return os.path.join(self._running, str(number))

    def _see_again(self, seen: Walk, met: Met, before: Folders) -> None:
        """Record the digest of a file after a command; its bytes are stored when next needed."""
        was = before.get(met.folder, {}).get(met.name)
        digest, traits = b"", ""
        if met.signature[1] <= self._limits.file_bytes:
            digest, traits = _digest(met.path)
        kept = was is not None and was[2] and was[1] == digest != b""
        seen.see(met, digest, kept=kept, traits=traits)


class _Root:
    """A folder that snapshots are taken of: its state after the last walk, and what watches it."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.manifest: Manifest | None = None
        self.watch = ChangeWatch()
        self._inodes: set[int] = set()
        self._unreadable: list[bytes] = []

    def changes(self, known: Manifest) -> dict[bytes, set[bytes]] | None:
        """The names that may differ from what is known; None where everything may.

        Until `settle` nothing counts as known any more: the events are used up.
        """
        if self.watch.inherited or self.watch.closed:
            self.watch.close()
            self.watch, self.manifest = ChangeWatch(), None
        events = self.watch.changes()
        complete = self.manifest is known
        self.manifest = None
        if events is None or not complete:
            return None
        found = {folder: set(names) - {b"."} for folder, names in events.items()}
        # Written through one name, a file has changed under its others, too.
        shared = {
            inode
            for folder, names in events.items()
            for name, inodes in names.items()
            if has_other_names(joined(folder, name))
            for inode in inodes & self._inodes
        }
        for folder, listing in known.folders.items() if shared else ():
            names = {name for name, seen in listing.items() if seen[0][4] in shared}
            if names:
                found.setdefault(folder, set()).update(names)
        # Names elsewhere are not watched, and neither are folders that can't be read.
        for folder, linked in known.linked.items():
            found.setdefault(folder, set()).update(linked)
        for path in self._unreadable:
            folder, _, name = path.rpartition(b"/")
            found.setdefault(folder or b"/", set()).add(name)
        return found

    def settle(self, manifest: Manifest, seen: Walk) -> None:
        """Take the result of a walk for known."""
        if seen.unvisited:
            self.manifest = None
            return
        if not self.watch.works:
            # Gives the marks back.
            self.watch.close()
        elif seen.is_whole:
            listings = manifest.folders.values()
            self._inodes = {one[0][4] for listing in listings for one in listing.values()}
        else:
            self._inodes.update(met.signature[4] for met in seen.met)
        self._unreadable = seen.unreadable
        self.manifest = manifest


def _other_names(records: list[Record], before: Folders) -> list[Record]:
    """Records of unchanged files that shared their bytes (hard links) with changed ones.

    Undo needs one of them to restore the others as its names.
    """
    shared = {one.before.traits.shared for one in records if one.before.traits is not None} - {""}
    if not shared:
        return []
    known = {one.place for one in records}
    states = (
        (os.fsdecode(joined(folder, name)), _state(seen))
        for folder, listing in before.items()
        for name, seen in listing.items()
        if seen[3].rpartition(" @")[2] in shared
    )
    return [Record("local", place, state, state) for place, state in states if place not in known]


def _known(connection: Connection, one: Record, snapshot: Snapshot) -> bool:
    """Whether a tool that ran beside the command has recorded the same change."""
    since = journal.changes_at(connection, one.place, since=snapshot.watermark)
    return bool(since) and same(since[-1].after, one.after)


class _Keeper:
    """Stores the files that a walk met, within limits, and counts the others."""

    def __init__(
        self, limits: Limits, room: int, draft: Draft, *, deadline: float | None = None
    ) -> None:
        self._limits = limits
        self._room = room
        self._draft = draft
        self._deadline = deadline
        # How many files are left for later, and one of them.
        self.late = 0
        self._example = b""
        self._large: list[bytes] = []
        self._unread: list[bytes] = []
        self._past: list[bytes] = []
        self._since = 0
        self._read = 0

    def see_all(
        self,
        seen: Walk,
        known: Manifest,
        *,
        first: Collection[str] = (),
        progress: Progress | None = None,
        check: Callable[[], None] | None = None,
    ) -> None:
        """Store what a walk met, and what was left for later; named paths before all others."""
        wanted = tuple(joined(os.fsencode(os.path.realpath(path)), b"") for path in first)
        if wanted:
            seen.met.sort(key=lambda one: not joined(one.path, b"").startswith(wanted))
        for number, met in enumerate(seen.met):
            if number % 500 == 499 and progress is not None:
                share = number / len(seen.met)
                progress(f"snapshot: {number} of {len(seen.met)} files", fraction=share)
            if check is not None and number % 50 == 0:
                check()
            if self._is_late() and not joined(met.path, b"").startswith(wanted or b"\0"):
                self._leave(met.path)
                seen.see(met, b"", kept=False)
            else:
                self.see(seen, met)
        for folder, names in known.unkept.items():
            if self._is_late() and not wanted:
                self._leave(joined(folder, names[0]), len(names))
                continue
            listing = seen.folders.get(folder, {})
            for name in names:
                was = listing.get(name)
                if was is None or was[2] or known.folders[folder].get(name) is not was:
                    # Gone, or met above.
                    continue
                path = joined(folder, name)
                if self._is_late() and not joined(path, b"").startswith(wanted or b"\0"):
                    self._leave(path)
                    continue
                if check is not None:
                    check()
                if seen.folders[folder] is known.folders.get(folder):
                    # Seeing it changes the listing, and the old one must stay.
                    seen.folders[folder] = dict(listing)
                self.see(seen, Met(folder, name, was[0], was[0]))

    def _is_late(self) -> bool:
        few = self._read < AT_LEAST_FILES and self._draft.added < _BATCH_BYTES
        return not few and self._deadline is not None and time.monotonic() > self._deadline

    def _leave(self, path: bytes, count: int = 1) -> None:
        self.late += count
        self._example = self._example or path

    def see(self, seen: Walk, met: Met) -> None:
        """Record the state of a file, its bytes stored."""
        digest, traits = b"", ""
        if met.signature[1] > self._limits.file_bytes:
            self._large.append(met.path)
        elif self._draft.added > self._room:
            self._past.append(met.path)
        else:
            try:
                handle = os.open(met.path, _READ)
            except FileNotFoundError:
                return
            except OSError:
                self._unread.append(met.path)
            else:
                self._since += 1
                self._read += 1
                try:
                    with os.fdopen(handle, "rb", buffering=0) as file:
                        room = self._room - self._draft.added
                        kept, _ = self._draft.add_file(file, met.signature[1], room=room)
                        digest = bytes.fromhex(kept)
                        traits = traits_at(handle, timeless=True).text
                except NoRoomError:
                    self._past.append(met.path)
                except OSError:
                    self._unread.append(met.path)
        seen.see(met, digest, kept=bool(digest), traits=traits)
        if self._draft.gathered > _BATCH_BYTES or self._since > _BATCH_FILES:
            self._since = 0
            with self._draft.storing():
                pass

    def notes(self) -> list[str]:
        """Notes on unprotected files."""
        said = (
            (self._large, f"larger than {self._limits.file_bytes} bytes"),
            (self._past, _NO_ROOM),
            (self._unread, "not readable"),
        )
        notes = [f"not protected: {_counted(paths)}, {why}" for paths, why in said if paths]
        if self.late:
            others = f" and {self.late - 1} more" if self.late > 1 else ""
            example = os.fsdecode(self._example)
            notes.append(
                f"not protected yet: {example}{others}, still to be read in the background"
            )
        return notes


def _kept(path: bytes, seen: Seen | None, known: Manifest) -> Seen | None:
    """A file as it was before a command; with its bytes, if they were read before it changed."""
    if seen is None or seen[1] or not is_file(seen[0]):
        return seen
    folder, name = os.path.split(path)
    later = known.folders.get(folder, {}).get(name)
    return later if later is not None and later[2] and later[0] == seen[0] else seen


def _walk_notes(seen: Walk, limits: Limits) -> list[str]:
    notes = []
    if seen.unvisited:
        notes.append(f"not protected: at least {seen.unvisited} folders, past {limits.files} files")
    if seen.unreadable:
        notes.append(f"not protected: {_counted(seen.unreadable)}, not readable")
    return notes


def _counted(paths: Iterable[bytes]) -> str:
    names = [os.fsdecode(path) for path in paths]
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _digest(path: bytes) -> tuple[bytes, str]:
    """The digest of a file and its traits."""
    hashed = hashlib.sha256()
    try:
        handle = os.open(path, _READ)
    except OSError:
        return b"", ""
    with os.fdopen(handle, "rb", buffering=0) as file:
        while piece := file.read(CHUNK):
            hashed.update(piece)
        return hashed.digest(), traits_at(handle, timeless=True).text


def _state(seen: Seen | None) -> State:
    if seen is None:
        return ABSENT
    signature, content, _, kept = seen
    mode, size, mtime, _, inode = signature
    known = read_traits(kept)
    traits = None if known is None else known._replace(mtime_ns=mtime)
    if is_folder(signature):
        return State("folder", mode=mode & 0o7777, traits=traits)
    if is_link(signature):
        return State("link", target=os.fsdecode(content), traits=traits)
    if not is_file(signature):
        return State("special", mode=mode & 0o7777, target=os.fsdecode(content), traits=traits)
    digest = content.hex() or by_status(size, mtime, inode)
    return State("file", digest, mode & 0o7777, size, traits=traits)
