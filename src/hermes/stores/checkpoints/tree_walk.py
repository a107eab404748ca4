"""Incremental directory walk: opens only files changed since the last walk; saved manifests."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from sqlite3 import Connection


# Mode with type, size, mtime, ctime, inode; of a folder only mode and inode.
Signature = tuple[int, int, int, int, int]
# The signature; the digest of a file or the target of a link; whether the store has the bytes;
# the traits of a file but for its time.
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
    """Result of a walk: `folders`, without the entries in `met`, which have to be read."""

    def __init__(self) -> None:
        self.folders: Folders = {}
        self.met: list[Met] = []
        self.files = 0
        self.unreadable: list[bytes] = []
        # Folders that were not looked into because there are too many files.
        self.unvisited = 0

    def see(self, met: Met, digest: bytes, *, kept: bool, traits: str = "") -> None:
        """Record the state of an entry that was met."""
        self.folders[met.folder][met.name] = (met.noted, digest, kept, traits)


def walk(
    root: bytes,
    known: Folders,
    *,
    skip: Collection[bytes],
    max_files: int,
    now_ns: int,
    check: Callable[[], None] | None = None,
) -> Walk:
    """Look at everything below `root`; where a folder is as `known` has it, its listing is that
    very object."""
    seen = Walk()
    seen.folders[TOP] = _top(root)
    queue = [root]
    unwanted = _WINDOWS.union(skip)
    fine, coarse = now_ns - _FINE_NS, now_ns - _COARSE_NS
    for at, folder in enumerate(queue):
        if seen.files > max_files:
            seen.unvisited = len(queue) - at
            break
        if check is not None:
            check()
        before = known.get(folder, _NOTHING)
        listing: dict[bytes, Seen] = {}
        prefix = joined(folder, b"")
        changed = False
        try:
            entries = os.scandir(folder)
        except OSError:
            seen.unreadable.append(folder)
            continue
        with entries:
            for entry in entries:
                name = entry.name
                seen.files += 1
                try:
                    found = entry.stat(follow_symlinks=False)
                except OSError:
                    # Gone since the listing.
                    continue
                mode = found.st_mode
                if mode & _TYPE == _FOLDER:
                    path = prefix + name
                    if path in unwanted:
                        continue
                    queue.append(path)
                    signature = (mode, 0, 0, 0, found.st_ino)
                    listing[name] = (signature, b"", True, "")
                    changed = changed or before.get(name) != listing[name]
                    continue
                ctime = found.st_ctime_ns
                signature = (mode, found.st_size, found.st_mtime_ns, ctime, found.st_ino)
                was = before.get(name)
                if was is not None and was[0] == signature:
                    listing[name] = was
                    continue
                changed = True
                young = ctime > (fine if ctime % _SECOND_NS else coarse)
                noted = (*signature[:3], -1, signature[4]) if young else signature
                seen.met.append(Met(folder, name, signature, noted))
        # The same object, so that comparing two walks is comparing identities.
        seen.folders[folder] = listing if changed or len(listing) != len(before) else before
    return seen


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
            if one is not other and _visible(one) != _visible(other):
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


def _top(root: bytes) -> dict[bytes, Seen]:
    try:
        found = os.stat(root, follow_symlinks=False)
    except OSError:
        return {}
    return {root: ((found.st_mode, 0, 0, 0, found.st_ino), b"", True, "")}


def _visible(seen: Seen | None) -> tuple[object, ...] | None:
    """The fields compared: mode, content, traits; times only where the bytes are unknown."""
    if seen is None:
        return None
    signature, content, _, traits = seen
    if is_file(signature) and not content:
        return (signature[0], signature[1:3], signature[4])
    return (signature[0], content, traits)


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

    __slots__ = ("folders", "root", "unkept", "version")

    def __init__(
        self, root: int, version: int, folders: Folders, before: Manifest | None = None
    ) -> None:
        self.root = root
        self.version = version
        self.folders = folders
        # What the store does not have the bytes of yet.
        self.unkept: dict[bytes, list[bytes]] = {}
        known = {} if before is None else before.folders
        for folder, listing in folders.items():
            if before is not None and known.get(folder) is listing:
                names = before.unkept.get(folder)
            else:
                names = [name for name, seen in listing.items() if not seen[2]]
            if names:
                self.unkept[folder] = names


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
