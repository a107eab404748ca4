"""Packs that are mostly dead weight are written anew with what is still wanted in them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.stores.checkpoints.packs import PackWriter

if TYPE_CHECKING:
    from sqlite3 import Connection

# What a pack takes, and how much of it is wanted.
_PACKS = (
    "SELECT packs.id, name, bytes, coalesce(sum(length), 0) AS live FROM packs"
    " LEFT JOIN contents ON contents.pack = packs.id GROUP BY packs.id"
)


def needed(connection: Connection) -> int:
    """How many bytes the packs take once they are compacted."""
    rows = connection.execute(_PACKS)
    return sum(live if live * 2 < size else size for _, _, size, live in rows)


def compact(connection: Connection, folder: str) -> None:
    """Move what is wanted out of packs that are more than half dead, within a transaction.

    The old files stay, for whoever removes files that no row speaks of once that is on disk.
    """
    rows = [row for row in connection.execute(_PACKS) if row[3] * 2 < row[2]]
    writer = PackWriter(folder)
    moved: list[tuple[str, int, str]] = []
    for pack, name, _, live in rows:
        found = connection.execute(
            "SELECT digest, start, length FROM contents WHERE pack = ? ORDER BY start", (pack,)
        )
        if live:
            try:
                moved += _copied(writer, os.path.join(folder, name), found.fetchall())
            except OSError:
                # Gone or unreadable: what it held is missed when it is asked for.
                continue
        connection.execute("DELETE FROM packs WHERE id = ?", (pack,))
    writer.settle()
    ids = {
        name: connection.execute(
            "INSERT INTO packs (name, bytes) VALUES (?, ?)", (name, size)
        ).lastrowid
        for name, size in writer.sizes.items()
    }
    connection.executemany(
        "UPDATE contents SET pack = ?, start = ? WHERE digest = ?",
        [(ids[name], start, digest) for name, start, digest in moved],
    )


def _copied(
    writer: PackWriter, path: str, rows: list[tuple[str, int, int]]
) -> list[tuple[str, int, str]]:
    with open(path, "rb") as file:
        placed = []
        for digest, start, length in rows:
            file.seek(start)
            name, at = writer.copy(file, length)
            placed.append((name, at, digest))
    return placed
