"""What the last walk over each root saw, kept folder by folder, so that little is written.

While a command runs, what its snapshot saw must stay known even when another process walks the
same root: a row that is replaced is set aside for every snapshot that is still open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from hermes.stores.checkpoints.tree import Folders, Seen

if TYPE_CHECKING:
    from collections.abc import Iterator
    from sqlite3 import Connection

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(dict[bytes, Seen]).decode


class Manifest:
    """The folders of a root as they were last seen; `version` tells one from the next."""

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
    """Keep what a walk saw, within a transaction; the manifest as it now is."""
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
    """What an open snapshot saw; None where some of it can't be read: what is missing there would
    be taken for what a command made."""
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
