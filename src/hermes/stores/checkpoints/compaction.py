"""Packs that are worth writing anew: too much dead weight, or something to be compressed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.stores.checkpoints.packs import FRESH, PackWriter, Part

if TYPE_CHECKING:
    from sqlite3 import Connection

    from hermes.stores.checkpoints.packs import Packed

# What a pack takes, how much of it is wanted, and whether some of that is to be compressed.
_PACKS = (
    "SELECT packs.id, name, bytes, coalesce(sum(length), 0) AS live, coalesce(max(codec), 0)"
    " FROM packs LEFT JOIN contents ON contents.pack = packs.id GROUP BY packs.id"
)


def needed(connection: Connection) -> int:
    """How many bytes the packs take once they are compacted."""
    rows = connection.execute(_PACKS)
    return sum(live if _wasteful(size, live) else size for _, _, size, live, _ in rows)


def _wasteful(size: int, live: int) -> bool:
    """Whether so much of a pack is dead weight that room is worth the work."""
    return (size - live) * 8 > size


def compact(connection: Connection, folder: str) -> list[str]:
    """Write anew what is wanted of such packs, within a transaction; the names of the old ones.

    Those files are no longer needed once the transaction is on disk.
    """
    writer = PackWriter(folder)
    try:
        left, moved = _moved(connection, folder, writer)
        writer.settle()
    except BaseException:
        writer.abandon()
        raise
    ids = {
        name: connection.execute(
            "INSERT INTO packs (name, bytes) VALUES (?, ?)", (name, size)
        ).lastrowid
        for name, size in writer.sizes.items()
    }
    connection.executemany(
        "UPDATE contents SET codec = ?, pack = ?, start = ?, length = ? WHERE digest = ?",
        [(one.codec, ids[one.name], one.start, one.length, one.digest) for one in moved],
    )
    return left


def _moved(
    connection: Connection, folder: str, writer: PackWriter
) -> tuple[list[str], list[Packed]]:
    """The packs that were written anew, and where what was in them is now."""
    left: list[str] = []
    moved: list[Packed] = []
    for pack, name, size, live, codec in connection.execute(_PACKS).fetchall():
        if not _wasteful(size, live) and codec != FRESH:
            continue
        found = connection.execute(
            "SELECT digest, size, codec, start, length FROM contents WHERE pack = ? ORDER BY start",
            (pack,),
        )
        if live:
            try:
                moved += _copied(writer, os.path.join(folder, name), found.fetchall())
            except OSError:
                # Gone or unreadable: what it held is missed when it is asked for.
                continue
        connection.execute("DELETE FROM packs WHERE id = ?", (pack,))
        left.append(name)
    return left, moved


def _copied(
    writer: PackWriter, path: str, rows: list[tuple[str, int, int, int, int]]
) -> list[Packed]:
    with open(path, "rb") as file:
        placed = []
        for digest, size, codec, start, length in rows:
            file.seek(start)
            if codec == FRESH:
                # Known by the name that it has, whatever became of its bytes.
                placed.append(writer.append(Part(file, length))._replace(digest=digest))
            else:
                placed.append(writer.copy(file, length, digest, size, codec))
    return placed
