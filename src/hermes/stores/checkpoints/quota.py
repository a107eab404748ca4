"""Quota and expiry: oldest turns are dropped first, recent ones never; each removal is reported."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

import hermes.stores.checkpoints.journal as journal
from hermes.stores.checkpoints.packs import CHUNKED, compact, needed
from hermes.stores.checkpoints.types import CheckpointError, PruneReport, Usage

if TYPE_CHECKING:
    from collections.abc import Callable
    from sqlite3 import Connection

    from hermes.stores.checkpoints.blobs import Contents
    from hermes.stores.checkpoints.checkpoint_db import Database
    from hermes.stores.checkpoints.types import Turn

DAY = 86_400.0
# About what the record of one change takes.
_ROW = 300


class Pruning:
    """Keeps a store within its limits."""

    def __init__(
        self,
        database: Database,
        contents: Contents,
        clock: Callable[[], float],
        *,
        max_bytes: int,
        keep_days: float,
    ) -> None:
        self._database = database
        self._contents = contents
        self._clock = clock
        self._max_bytes = max_bytes
        self.keep_days = keep_days

    def size(self) -> int:
        """How many bytes the store takes on the disk."""
        with self._database.reading() as connection:
            return _size(connection)

    def due(self) -> bool:
        """Whether something is past its time or too much."""
        with self._database.reading() as connection:
            oldest = connection.execute("SELECT at FROM changes ORDER BY id LIMIT 1").fetchone()
            size = _size(connection)
        expired = oldest is not None and self._clock() - oldest[0] > max(self.keep_days, 1) * DAY
        return expired or size > self._max_bytes

    def usage(self) -> Usage:
        """How much the store holds."""
        with self._database.reading() as connection:
            count = {
                table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                for table in ("changes", "contents")
            }
            turns = connection.execute("SELECT count(DISTINCT turn) FROM changes").fetchone()[0]
            oldest = connection.execute("SELECT min(at) FROM changes").fetchone()[0]
            size = _size(connection)
        return Usage(size, self._max_bytes, turns, count["changes"], count["contents"], oldest)

    def prune(
        self, *, max_bytes: int | None = None, keep_days: float | None = None, dry_run: bool = False
    ) -> PruneReport:
        """Drop expired turns, then the oldest while the store is too large.

        Changes of the last day and the newest turn stay, whichever limit is exceeded.
        """
        most = self._max_bytes if max_bytes is None else max_bytes
        days = self.keep_days if keep_days is None else keep_days
        with self._contents.dropping() as alone:
            if not alone:
                return PruneReport([], [], 0, self.size(), ["not now: another process is writing"])
            if dry_run:
                return self._rehearsed(most, days)
            return self._pruned(most, days)

    def _pruned(self, most: int, days: float) -> PruneReport:
        before = self.size()
        dropped: list[Turn] = []
        folders: list[str] = []
        if self._contents.fresh():
            # Nothing is dropped for room that compressing gives.
            self._compact()
        with self._database.writing() as connection:
            self._drop_rest(connection)
            old, candidates = self._candidates(connection, days)
            for turn in old:
                _drop_turn(connection, turn)
            dropped += old
            folders += self._drop_roots(connection, days * DAY)
            self._drop_rest(connection)
            if _needed(connection) > most:
                # Only a copy of what is in those folders anyway.
                folders += self._drop_roots(connection, DAY)
                self._drop_rest(connection)
            while candidates and (excess := _needed(connection) - most) > 0:
                # What turns share is counted for each: too few go at a time, never too many.
                while candidates and excess > 0:
                    turn = candidates.pop(0)
                    excess -= _weight(connection, turn)
                    _drop_turn(connection, turn)
                    dropped.append(turn)
                self._drop_rest(connection)
            _forget_names(connection)
            over = _needed(connection) - most
            if dropped:
                connection.execute(
                    "INSERT INTO prunings VALUES (?, ?, ?)", (self._clock(), len(dropped), before)
                )
        self._sweep()
        after = self.size()
        notes = []
        if over > 0:
            notes.append(
                f"the store is {over} bytes over its limit of {most}: what the last day and the "
                "newest turn changed is kept all the same"
            )
        return PruneReport(dropped, folders, max(0, before - after), after, notes)

    def _rehearsed(self, most: int, days: float) -> PruneReport:
        """The result of pruning in a transaction that is rolled back."""
        with self._database.reading() as connection:
            size = _size(connection)
            old, candidates = self._candidates(connection, days)
            excess = size - most - sum(_weight(connection, turn) for turn in old)
            for turn in candidates:
                if excess <= 0:
                    break
                excess -= _weight(connection, turn)
                old.append(turn)
        return PruneReport(old, [], 0, size, [])

    def _candidates(self, connection: Connection, days: float) -> tuple[list[Turn], list[Turn]]:
        """Turns past their time, and those that may go for want of room; oldest first."""
        now = self._clock()
        pending = {
            row[0] for row in connection.execute("SELECT turn FROM undos WHERE NOT finished")
        }
        older = [
            turn
            for turn in journal.turns(connection, quiet=True)[1:]
            if now - turn.at > DAY and turn.id not in pending
        ][::-1]
        expired = [turn for turn in older if now - turn.at > max(days, 1) * DAY]
        return expired, older[len(expired) :]

    def _drop_roots(self, connection: Connection, age: float) -> list[str]:
        rows = connection.execute(
            "SELECT id, place FROM roots WHERE at < ? AND id NOT IN (SELECT root FROM snapshots)"
            " ORDER BY at",
            (self._clock() - max(age, DAY),),
        ).fetchall()
        for root, _ in rows:
            connection.execute("DELETE FROM folders WHERE root = ?", (root,))
            connection.execute("DELETE FROM roots WHERE id = ?", (root,))
        return [os.fsdecode(place) for _, place in rows]

    def _drop_rest(self, connection: Connection) -> None:
        """Drop contents that nothing speaks of any more."""
        import hermes.stores.checkpoints.tree_walk as tree_walk

        connection.execute("CREATE TEMP TABLE IF NOT EXISTS wanted (digest TEXT PRIMARY KEY)")
        connection.execute("DELETE FROM wanted")
        connection.executemany(
            "INSERT OR IGNORE INTO wanted VALUES (?)",
            [(digest,) for digest in tree_walk.digests(connection)],
        )
        connection.execute(
            "INSERT OR IGNORE INTO wanted SELECT old_digest FROM changes WHERE old_kind = 'file'"
        )
        # What an undo that was cut off is to restore.
        connection.execute(
            "INSERT OR IGNORE INTO wanted SELECT new_digest FROM changes JOIN undos"
            " ON undos.turn = changes.turn WHERE NOT finished"
        )
        chunked = connection.execute(
            f"SELECT data FROM contents WHERE codec = {CHUNKED} AND digest IN"
            " (SELECT digest FROM wanted)"
        ).fetchall()
        connection.executemany(
            "INSERT OR IGNORE INTO wanted VALUES (?)",
            [(data[at : at + 32].hex(),) for (data,) in chunked for at in range(0, len(data), 32)],
        )
        connection.execute("DELETE FROM contents WHERE digest NOT IN (SELECT digest FROM wanted)")

    def _sweep(self) -> None:
        """Give the room back: packs that hold nothing, and free pages of the database."""
        with self._database.writing() as connection:
            connection.execute(
                "DELETE FROM packs WHERE id NOT IN"
                " (SELECT pack FROM contents WHERE pack IS NOT NULL)"
            )
        # Those first: on a full disk they give the room to write others anew.
        self._remove_unknown()
        self._compact()
        self._remove_unknown()
        with self._database.reading() as connection:
            connection.execute("PRAGMA incremental_vacuum").fetchall()
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _compact(self) -> None:
        """Write packs anew; where there is no room for that they stay as they are."""
        with suppress(CheckpointError, OSError), self._database.writing() as connection:
            compact(connection, self._contents.folder)

    def _remove_unknown(self) -> None:
        """Remove packs that no row speaks of."""
        with self._database.reading() as connection:
            names = {name for (name,) in connection.execute("SELECT name FROM packs")}
        if os.path.isdir(self._contents.folder):
            for entry in os.scandir(self._contents.folder):
                if entry.name not in names:
                    os.unlink(entry.path)


def _size(connection: Connection) -> int:
    pages, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size")
    )
    packs = connection.execute("SELECT coalesce(sum(bytes), 0) FROM packs").fetchone()[0]
    return int(pages * size + packs)


def _needed(connection: Connection) -> int:
    """The size of the store after unused space is given back."""
    free, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("freelist_count", "page_size")
    )
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    return int((pages - free) * size + needed(connection))


def _weight(connection: Connection, turn: Turn) -> int:
    """About how much room a turn takes."""
    found = connection.execute(
        "SELECT coalesce(sum(length), 0) FROM contents WHERE digest IN"
        " (SELECT old_digest FROM changes WHERE turn = ?)",
        (turn.id,),
    ).fetchone()[0]
    return int(found) + turn.places * _ROW


def _drop_turn(connection: Connection, turn: Turn) -> None:
    connection.execute("DELETE FROM changes WHERE turn = ?", (turn.id,))


def _forget_names(connection: Connection) -> None:
    connection.execute("DELETE FROM turns WHERE id NOT IN (SELECT turn FROM changes)")
    connection.execute("DELETE FROM authors WHERE turn NOT IN (SELECT id FROM turns)")
    connection.execute("DELETE FROM undos WHERE turn NOT IN (SELECT id FROM turns)")
