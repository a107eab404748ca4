"""Making room: what can be made again goes first; a session only when somebody says so."""

from __future__ import annotations

import os
import sqlite3
import time
from typing import TYPE_CHECKING

import msgspec

from hermes.stores.sessions.doctor import sizes
from hermes.stores.sessions.entries import LINES, TEXT
from hermes.stores.sessions.index import (
    INDEXED,
    Index,
    at_fault,
    path_of,
    remove_files,
    start_again,
)
from hermes.stores.sessions.trouble import explained
from hermes.stores.sessions.values import SessionInfo, SessionsError

if TYPE_CHECKING:
    from typing import Any

    from hermes.stores.sessions.database import Database
    from hermes.stores.sessions.store import Sessions


class Pruned(msgspec.Struct):
    """What was done to make room, and what is left to be decided.

    `due` are the sessions that are past their time, or too much; they are still there.
    """

    before: int
    after: int
    removed: list[str]
    deleted: list[SessionInfo]
    due: list[SessionInfo]


def prune(
    store: Sessions, *, max_bytes: int | None, keep_days: float | None, delete: bool
) -> Pruned:
    """Free room until the store fits."""
    database = store.database
    report = Pruned(0, 0, [], [], [])
    if not os.path.exists(store.path):
        return report
    report.before = size_of_store(database)
    report.removed += tidy(database)
    for info in _past(store, keep_days):
        _decide(store, info, report, delete=delete)
    if max_bytes is not None and size_of_store(database) > max_bytes:
        start_again(database, database.mark("index"))
        report.removed.append("the search index (the next search makes it again)")
        report.removed += tidy(database)
        _choose(store, max_bytes, report, delete=delete)
    report.after = size_of_store(database)
    return report


def delete_session(database: Database, name: str) -> None:
    """Remove a session, its lines and what the index knows of them."""
    try:
        _delete(database, name)
    except sqlite3.Error as error:
        if not at_fault(error):
            raise explained(error, database.path, what="the session was not deleted") from error
        # A damaged index must not keep anybody from deleting; the new one starts without it.
        start_again(database, database.mark("index"))
        _delete(database, name)


def _delete(database: Database, name: str) -> None:
    # The index is held first, so that nobody takes in what is about to go.
    with Index(database) as index, index.writing():
        upto = index.mark("upto")
        with database.writing() as journal:
            found = journal.execute("SELECT n FROM sessions WHERE id = ?", (name,)).fetchone()
            if found is None:
                raise SessionsError(f"session {name} was deleted by somebody else")
            rows: list[Any] = journal.execute(
                f"SELECT e.seq, e.kind, {TEXT}, e.data FROM {LINES} "
                f"WHERE e.session = ? AND e.seq <= ? AND {INDEXED}",
                (found[0], upto),
            ).fetchall()
            for table in ("usage", "entries"):
                journal.execute(f"DELETE FROM {table} WHERE session = ?", found)
            journal.execute("DELETE FROM sessions WHERE n = ?", found)
            journal.execute(
                "UPDATE sessions SET parent = '', relation = '' WHERE parent = ?", (name,)
            )
        index.remove(rows)


def _past(store: Sessions, keep_days: float | None) -> list[SessionInfo]:
    """Sessions that nobody touched for so long."""
    if keep_days is None:
        return []
    oldest = time.time() - keep_days * 86_400
    return [info for info in _oldest_first(store) if info.touched < oldest]


def _choose(store: Sessions, max_bytes: int, report: Pruned, *, delete: bool) -> None:
    """The sessions that would have to go, oldest first, for the rest to fit."""
    over = size_of_store(store.database) - max_bytes
    for info in _oldest_first(store):
        if over <= 0:
            break
        over -= size_of_session(store.database, info.id)
        if info not in report.due:
            _decide(store, info, report, delete=delete)
    if report.deleted:
        report.removed += tidy(store.database)


def _decide(store: Sessions, info: SessionInfo, report: Pruned, *, delete: bool) -> None:
    if delete:
        store.delete(info.id)
        report.deleted.append(info)
    else:
        report.due.append(info)


def _oldest_first(store: Sessions) -> list[SessionInfo]:
    return store.list(limit=-1)[::-1]


def size_of_session(database: Database, name: str) -> int:
    """About how many bytes a session takes."""
    with database.reading() as connection:
        return int(
            connection.execute(
                "SELECT coalesce(sum(length(CAST(text AS BLOB)) + ifnull(length(data), 0) + 40), 0)"
                " FROM entries WHERE session = (SELECT n FROM sessions WHERE id = ?)",
                (name,),
            ).fetchone()[0]
        )


def tidy(database: Database) -> list[str]:
    """Give back what is not in use: free pages, the write-ahead log, indexes left behind.

    Says what that was.
    """
    removed = []
    with database.reading() as connection:
        free = connection.execute("PRAGMA freelist_count").fetchone()[0]
        # `execute` would stop after the first page.
        connection.executescript("PRAGMA incremental_vacuum")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    if free:
        removed.append(f"{free} free pages")
    folder, name = os.path.split(database.path)
    current = database.mark("index")
    for entry in os.listdir(folder):
        start = f"{name}.search-"
        number = entry[len(start) :]
        if entry.startswith(start) and number.isdigit() and int(number) < current:
            remove_files(path_of(database, int(number)))
            removed.append(f"an old search index ({entry})")
    return removed


def size_of_store(database: Database) -> int:
    """The bytes that the store takes on the disk."""
    return sum(sizes(database).values())
