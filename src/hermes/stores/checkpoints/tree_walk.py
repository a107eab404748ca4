"""Incremental directory walk: opens only files changed since the last walk; saved manifests."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from operator import is_
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from hermes.stores.checkpoints.path_state import node_traits, special_type

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from sqlite3 import Connection


# Mode with type, size, mtime, ctime, inode; a folder has the size 0.
Signature = tuple[int, int, int, int, int]
# The signature; the digest of a file, the target of a link or the type of a special file; whether
# the store has the bytes; the traits but for the time.
Seen = tuple[Signature, bytes, bool, str]
Folders = dict[bytes, dict[bytes, Seen]]

_TYPE, _FOLDER, _FILE, _LINK = 0o170000, stat.S_IFDIR, stat.S_IFREG, stat.S_IFLNK
# How far apart two changes must be for the system to give them different times: a few
# milliseconds where it counts finely, two seconds on the coarsest file systems.
_FINE_NS, _COARSE_NS, _SECOND_NS = 50_000_000, 2_000_000_000, 1_000_000_000
# Not files but windows into the system; they have no end.
_WINDOWS = frozenset((b"/proc", b"/sys", b"/dev"))
_NOTHING: dict[bytes, Seen] = {}
# Where the root itself is listed.
TOP = b""


class Met(NamedTuple):
    """Something that is not as the last walk saw it."""

    folder: bytes
    name: bytes
    signature: Signature
    # What is noted instead of the signature where a later change might look the same.
    noted: Signature

    @property
    def path(self) -> bytes:
        """Where it is."""
        return joined(self.folder, self.name)


class Walk:
    """Result of a walk: `folders`, without the entries in `met`, which have to be read.

    A folder that is as `known` has it keeps that very listing, so that comparing two walks is
    comparing identities.
    """

    def __init__(
        self,
        known: Folders,
        *,
        skip: Collection[bytes],
        max_files: int,
        now_ns: int,
        check: Callable[[], None] | None = None,
        watch: Callable[[bytes], None] | None = None,
    ) -> None:
        """`watch` is called with each folder before it is looked into."""
        self.folders: Folders = {}
        self.met: list[Met] = []
        self.files = 0
        self.unreadable: list[bytes] = []
        # Folders that were not looked into because there are too many files.
        self.unvisited = 0
        # Whether everything was looked at.
        self.is_whole = False
        self._known = known
        self._unwanted = _WINDOWS.union(skip)
        self._max_files = max_files
        self._fine, self._coarse = now_ns - _FINE_NS, now_ns - _COARSE_NS
        self._check = check
        self._watch = watch

    def see(self, met: Met, digest: bytes, *, kept: bool, traits: str = "") -> None:
        """Record the state of an entry that was met."""
        self.folders[met.folder][met.name] = (met.noted, digest, kept, traits)

    def whole(self, root: bytes) -> Walk:
        """Look at everything below `root`."""
        self.is_whole = True
        top: dict[bytes, Seen] = {}
        if (found := _status(root)) is not None:
            self._look(TOP, root, found, self._known.get(TOP, _NOTHING), top)
        self._enter(TOP, top, 0)
        self._descend([root])
        return self

    def part(self, dirty: Mapping[bytes, Collection[bytes]], root: bytes) -> Walk:
        """Look at some names in some folders, everything else being as known."""
        self.folders = dict(self._known)
        self.files = sum(map(len, self.folders.values()))
        wanted: dict[bytes, set[bytes]] = {TOP: {root}}
        for folder, names in dirty.items():
            wanted.setdefault(folder, set()).update(names)
            # What happens in a folder changes its time.
            above, name = (TOP, root) if folder == root else _split(folder)
            wanted.setdefault(above, set()).add(name)
        fresh: list[bytes] = []
        for folder in sorted(wanted, key=len):
            if folder not in self.folders:
                # It is gone, or will be looked at as a whole.
                continue
            met = len(self.met)
            before = self.folders[folder]
            listing = dict(before)
            for name in wanted[folder]:
                was = listing.pop(name, None)
                path = joined(folder, name)
                found = _status(path)
                enters = found is not None and self._look(folder, name, found, before, listing)
                # A folder that was replaced may have the inode number of the old one.
                if was is not None and (not enters or name in dirty.get(folder, ())):
                    self._drop(path)
                # New, another one of that name, or not readable before.
                if enters and path not in self.folders:
                    fresh.append(path)
            self._enter(folder, listing, met)
        self._descend(fresh)
        return self

    def _drop(self, folder: bytes) -> None:
        for name, seen in self.folders.pop(folder, _NOTHING).items():
            if is_folder(seen[0]):
                self._drop(joined(folder, name))

    def _descend(self, queue: list[bytes]) -> None:
        for at, folder in enumerate(queue):
            if self.files > self._max_files:
                self.unvisited = len(queue) - at
                break
            if self._check is not None:
                self._check()
            before = self._known.get(folder, _NOTHING)
            listing: dict[bytes, Seen] = {}
            met = len(self.met)
            try:
                if self._watch is not None:
                    self._watch(folder)
                entries = os.scandir(folder)
            except OSError:
                self.unreadable.append(folder)
                continue
            with entries:
                for entry in entries:
                    self.files += 1
                    try:
                        found = entry.stat(follow_symlinks=False)
                    except OSError:
                        # Gone since the listing.
                        continue
                    if self._look(folder, entry.name, found, before, listing):
                        queue.append(joined(folder, entry.name))
            self._enter(folder, listing, met)

    def _enter(self, folder: bytes, listing: dict[bytes, Seen], met: int) -> None:
        """Note the listing of a folder; the known one where nothing was met and it is the same."""
        before = self._known.get(folder, _NOTHING)
        same = len(self.met) == met and len(listing) == len(before)
        same = same and all(map(is_, listing.values(), map(before.get, listing)))
        self.folders[folder] = before if same else listing

    def _look(
        self,
        folder: bytes,
        name: bytes,
        found: os.stat_result,
        before: Mapping[bytes, Seen],
        listing: dict[bytes, Seen],
    ) -> bool:
        """Look at one entry: it is listed or met. Returns whether it is a folder to look into."""
        mode, ctime = found.st_mode, found.st_ctime_ns
        is_directory = mode & _TYPE == _FOLDER
        if is_directory and joined(folder, name) in self._unwanted:
            return False
        size = 0 if is_directory else found.st_size
        signature = (mode, size, found.st_mtime_ns, ctime, found.st_ino)
        was = before.get(name)
        if was is not None and was[0] == signature:
            listing[name] = was
            return is_directory
        young = ctime > (self._fine if ctime % _SECOND_NS else self._coarse)
        noted = (*signature[:3], -1, signature[4]) if young else signature
        if mode & _TYPE == _FILE:
            self.met.append(Met(folder, name, signature, noted))
            return False
        path = joined(folder, name)
        content = b""
        if mode & _TYPE == _LINK:
            with suppress(OSError):
                content = os.readlink(path)
        elif not is_directory:
            content = special_type(mode, found.st_rdev).encode()
        listing[name] = (noted, content, True, node_traits(path, found).text)
        return is_directory


def differing(before: Folders, after: Folders) -> Iterator[tuple[bytes, Seen | None, Seen | None]]:
    """Every path that differs between two walks, with both states."""
    for folder, now in after.items():
        was = before.get(folder)
        if was is now:
            continue
        if was is None:
            if _listed(before, folder):
                # The first walk left it out, so nothing is known of it.
                continue
            was = _NOTHING
        for name in was.keys() | now.keys():
            one, other = was.get(name), now.get(name)
            if one is not other and not _same(one, other):
                yield joined(folder, name), one, other
    gone: dict[bytes, bool] = {}
    for folder, was in before.items():
        if folder not in after and _gone(folder, before, after, gone):
            for name, one in was.items():
                yield joined(folder, name), one, None


def hidden(before: Folders, after: Walk) -> Iterator[tuple[bytes, Seen]]:
    """Entries of folders that the later walk could not read."""
    closed = tuple(joined(folder, b"") for folder in after.unreadable)
    for folder, was in before.items():
        if folder not in after.folders and joined(folder, b"").startswith(closed):
            for name, one in was.items():
                yield joined(folder, name), one


def joined(folder: bytes, name: bytes) -> bytes:
    """A path below a folder; with an empty name, the common prefix of all of them."""
    return folder + name if folder == TOP or folder.endswith(b"/") else b"%b/%b" % (folder, name)


def is_file(signature: Signature) -> bool:
    """Whether it has bytes to keep."""
    return signature[0] & _TYPE == _FILE


def is_link(signature: Signature) -> bool:
    """Whether it is a symbolic link."""
    return signature[0] & _TYPE == _LINK


def is_folder(signature: Signature) -> bool:
    """Whether it is a folder."""
    return signature[0] & _TYPE == _FOLDER


def _status(path: bytes) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def has_other_names(path: bytes) -> bool:
    """Whether a path is, or since it is gone may have been, one of several names of a file."""
    found = _status(path)
    return found is None or (found.st_nlink > 1 and not stat.S_ISDIR(found.st_mode))


def _split(path: bytes) -> tuple[bytes, bytes]:
    folder, _, name = path.rpartition(b"/")
    return folder or b"/", name


def _same(one: Seen | None, other: Seen | None) -> bool:
    """Whether nothing that undo restores differs: mode, content, traits and time."""
    if one is None or other is None:
        return one is other
    if is_file(one[0]) and not (one[1] and other[1]):
        # The bytes are unknown: what the system says stands for them.
        return (one[0][:3], one[0][4]) == (other[0][:3], other[0][4])
    if not (one[3] and other[3]):
        # Kept by a version that knew nothing else of folders and links.
        return (one[0][0], one[1]) == (other[0][0], other[1])
    return (one[0][0], one[0][2], *one[1::2]) == (other[0][0], other[0][2], *other[1::2])


def _listed(folders: Folders, folder: bytes) -> bool:
    """Whether a folder stands in the listing of the one above it."""
    above, _, name = folder.rpartition(b"/")
    found = folders.get(above or b"/", _NOTHING).get(name)
    found = found or folders.get(TOP, _NOTHING).get(folder)
    return found is not None and is_folder(found[0])


def _gone(folder: bytes, before: Folders, after: Folders, known: dict[bytes, bool]) -> bool:
    """Whether a folder is away, rather than not looked into the second time."""
    if folder not in known:
        above = folder.rpartition(b"/")[0] or b"/"
        if above in after or folder in before.get(TOP, _NOTHING):
            known[folder] = not _listed(after, folder)
        else:
            known[folder] = above in before and _gone(above, before, after, known)
    return known[folder]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(dict[bytes, Seen]).decode


class Manifest:
    """The folders of a root as of the last walk, with a version number."""

    __slots__ = ("folders", "linked", "root", "unkept", "version")

    def __init__(
        self, root: int, version: int, folders: Folders, before: Manifest | None = None
    ) -> None:
        self.root = root
        self.version = version
        self.folders = folders
        # What the store does not have the bytes of yet, and files with several names.
        self.unkept: dict[bytes, list[bytes]] = {}
        self.linked: dict[bytes, list[bytes]] = {}
        known = {} if before is None else before.folders
        for folder, listing in folders.items():
            if before is not None and known.get(folder) is listing:
                unkept, linked = before.unkept.get(folder), before.linked.get(folder)
            else:
                unkept = [name for name, seen in listing.items() if not seen[2]]
                linked = [name for name, seen in listing.items() if "@" in seen[3]]
            if unkept:
                self.unkept[folder] = unkept
            if linked:
                self.linked[folder] = linked


def load(connection: Connection, place: bytes, cached: Manifest | None, at: float) -> Manifest:
    """The manifest of a root, `cached` when it is still the newest; made when there is none."""
    connection.execute(
        "INSERT OR IGNORE INTO roots (place, version, at) VALUES (?, 0, ?)", (place, at)
    )
    root, version = connection.execute(
        "SELECT id, version FROM roots WHERE place = ?", (place,)
    ).fetchone()
    if cached is not None and (cached.root, cached.version) == (root, version):
        return cached
    rows = connection.execute("SELECT place, data FROM folders WHERE root = ?", (root,))
    return Manifest(root, version, dict(_readable(rows)))


def save(connection: Connection, old: Manifest, folders: Folders, at: float) -> Manifest:
    """Store the result of a walk, within a transaction; the new manifest."""
    root = old.root
    changed = [
        (root, folder, _encode(listing))
        for folder, listing in folders.items()
        if old.folders.get(folder) is not listing
    ]
    gone = [(root, folder) for folder in old.folders if folder not in folders]
    version = connection.execute("SELECT version FROM roots WHERE id = ?", (root,)).fetchone()[0]
    if not changed and not gone and version == old.version:
        connection.execute("UPDATE roots SET at = ? WHERE id = ?", (at, root))
        return old
    if version != old.version:
        # Another process was here since we loaded: its rows are replaced as a whole.
        changed = [(root, folder, _encode(listing)) for folder, listing in folders.items()]
        present = connection.execute("SELECT place FROM folders WHERE root = ?", (root,))
        gone = [(root, folder) for (folder,) in present if folder not in folders]
    _set_aside(connection, root, [row[1] for row in changed] + [row[1] for row in gone])
    connection.executemany("DELETE FROM folders WHERE root = ? AND place = ?", gone)
    connection.executemany("INSERT OR REPLACE INTO folders VALUES (?, ?, ?)", changed)
    connection.execute("UPDATE roots SET version = ?, at = ? WHERE id = ?", (version + 1, at, root))
    return Manifest(root, version + 1, folders, old)


def as_of(connection: Connection, snapshot: int, root: int) -> Folders | None:
    """The manifest of an open snapshot; None when a part is unreadable.

    A missing part would count as created by the command.
    """
    rows = connection.execute("SELECT place, data FROM folders WHERE root = ?", (root,))
    kept = dict(rows.fetchall())
    aside = connection.execute("SELECT place, data FROM frozen WHERE snapshot = ?", (snapshot,))
    kept.update(aside.fetchall())
    seen = [(place, data) for place, data in kept.items() if data is not None]
    folders = dict(_readable(seen))
    return folders if len(folders) == len(seen) else None


def digests(connection: Connection) -> set[str]:
    """Every content that a manifest or an open snapshot speaks of."""
    found = set()
    for table in ("folders", "frozen"):
        rows = connection.execute(f"SELECT place, data FROM {table} WHERE data IS NOT NULL")
        for _, listing in _readable(rows):
            found |= {seen[1].hex() for seen in listing.values() if seen[2] and seen[1]}
    return found


def _set_aside(connection: Connection, root: int, folders: list[bytes]) -> None:
    open_ones = connection.execute("SELECT id FROM snapshots WHERE root = ?", (root,)).fetchall()
    for (snapshot,) in open_ones:
        connection.executemany(
            "INSERT OR IGNORE INTO frozen SELECT ?1, ?2,"
            " (SELECT data FROM folders WHERE root = ?3 AND place = ?2)",
            [(snapshot, folder, root) for folder in folders],
        )


def _readable(rows: object) -> Iterator[tuple[bytes, dict[bytes, Seen]]]:
    for place, data in rows:  # type: ignore[attr-defined]
        try:
            yield place, _decode(data)
        except msgspec.DecodeError:
            # A damaged row costs a closer look at that folder, nothing more.
            continue
