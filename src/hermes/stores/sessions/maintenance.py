"""Store maintenance: integrity check, repair, backup, delete, prune, retention by the settings."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import msgspec

from hermes.core.errors import HermesError
from hermes.core.log import Log
from hermes.stores.sessions.index import (
    INDEXED,
    Index,
    at_fault,
    path_of,
    remove_files,
    runs,
    start_again,
)
from hermes.stores.sessions.records import LINES, OUTCOME, TEXT, TOOL, SessionInfo, SessionsError
from hermes.stores.sessions.session_db import explained
from hermes.stores.sessions.session_store import Sessions
from hermes.stores.sqlite import connect, is_damage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from sqlite3 import Connection
    from typing import Any

    from hermes.core.config import Config
    from hermes.stores.sessions.session_db import Database


log = Log("hermes.sessions")

_DAY = 86_400.0
_LISTED = 5


@contextmanager
def open_sessions(config: Config, note: Callable[[str], object]) -> Iterator[Sessions]:
    """The session store of this home folder, with the limits of `sessions.*`.

    Args:
        config: The settings.
        note: Called with a line for each kind of deletion.
    """
    with Sessions(power=config.get("sessions.power")) as store:
        yield store
        try:
            for line in apply_limits(
                store,
                keep_days=config.get("sessions.keep_days"),
                max_bytes=config.get("sessions.max_bytes"),
            ):
                log.warning("%s", line)
                note(line)
        except HermesError as error:
            # The command itself is done; the limits are applied next time.
            note(f"the limits of the sessions were not applied: {error}")


def apply_limits(store: Sessions, *, keep_days: float = 0, max_bytes: int = 0) -> list[str]:
    """Delete expired sessions, then the oldest until the store fits; a line for each of the two.

    0 is no limit.
    """
    if (not keep_days and not max_bytes) or store.read_only:
        return []
    return [line for line in (_apply_age(store, keep_days), _apply_size(store, max_bytes)) if line]


def _apply_age(store: Sessions, keep_days: float) -> str:
    if not keep_days:
        return ""
    oldest = time.time() - keep_days * _DAY
    due = [info for info in _deletable(store) if info.touched < oldest]
    for info in due:
        store.delete(info.id)
    return _summary(due, f"not used for {keep_days:g} days (sessions.keep_days)")


def _apply_size(store: Sessions, max_bytes: int) -> str:

    if not max_bytes or (size := size_of_store(store.database)) <= max_bytes:
        return ""
    # Free pages and the write-ahead log may be all of the excess.
    tidy(store.database)
    over = size_of_store(store.database) - max_bytes
    deleted = []
    for info in _deletable(store):
        if over <= 0:
            break
        over -= size_of_session(store.database, info.id)
        store.delete(info.id)
        deleted.append(info)
    if deleted:
        tidy(store.database)
        return _summary(deleted, f"that were the oldest of {size:,} bytes (sessions.max_bytes)")
    if over <= 0:
        return ""
    return (
        f"the sessions take {size:,} bytes, more than sessions.max_bytes ({max_bytes:,}), and all "
        "were in use today; `hermes sessions prune` frees space"
    )


def _deletable(store: Sessions) -> list[SessionInfo]:
    """Sessions not used since yesterday, oldest first."""
    today = time.time() - _DAY
    return [info for info in store.list(limit=-1)[::-1] if info.touched < today]


def _summary(deleted: list[SessionInfo], reason: str) -> str:
    if not deleted:
        return ""
    some = ", ".join(info.id for info in deleted[:_LISTED])
    more = f" and {len(deleted) - _LISTED} more" if len(deleted) > _LISTED else ""
    count = f"{len(deleted)} session{'s' if len(deleted) > 1 else ''}"
    return f"deleted {count} {reason}: {some}{more}"


_SHOWN = 20
_ORPHANS = (
    ("lines of no session", "entries WHERE session NOT IN (SELECT n FROM sessions)"),
    ("costs of no message", "usage WHERE seq NOT IN (SELECT seq FROM entries)"),
    (
        "outcomes of no call",
        f"entries WHERE kind = {OUTCOME} AND ref NOT IN (SELECT seq FROM entries)",
    ),
)


class Health(msgspec.Struct):
    """Result of a check: `problems` remain, `repaired` ones do not."""

    path: str
    problems: list[str] = []
    repaired: list[str] = []
    index: str = ""
    sessions: int = 0
    messages: int = 0
    sizes: dict[str, int] = {}

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong (any more)."""
        return not self.problems


def examine(database: Database, *, repair: bool = True) -> Health:
    """Check the journal and its index against themselves and each other."""
    health = Health(database.path)
    if not os.path.exists(database.path):
        health.index = "not made yet"
        return health
    wrong = _wrong(database)
    mendable = all(map(_only_an_index, wrong))
    if wrong and mendable and repair:
        database.set_damage("")
        with database.writing() as connection:
            connection.execute("REINDEX")
        health.repaired.append(f"indexes of the journal made again ({wrong[0]})")
        wrong = _wrong(database)
    if wrong:
        health.problems += [f"the journal is damaged: {line}" for line in wrong]
        if repair or not mendable:
            database.set_damage(wrong[0])
    elif database.damage and repair:
        database.set_damage("")
        health.repaired.append("the journal is sound, and written to again")
    _count(database, health)
    if not wrong:
        _examine_index(database, health, repair=repair)
    health.sizes = sizes(database)
    return health


def sizes(database: Database) -> dict[str, int]:
    """Bytes on the disk of journal and index."""
    folder, name = os.path.split(database.path)
    found = {"journal": 0, "index": 0}
    for entry in os.scandir(folder):
        if entry.name.startswith(f"{name}.search-"):
            found["index"] += entry.stat().st_size
        elif entry.name in (name, f"{name}-wal"):
            found["journal"] += entry.stat().st_size
    return found


def backup(database: Database, target: str) -> None:
    """Copy journal and index, both as of one moment; other processes may keep writing."""
    if os.path.exists(target):
        raise SessionsError(f"{target} exists already", hint="Choose another name.")
    if not os.path.exists(database.path):
        raise SessionsError("there is nothing to back up yet")
    generation = database.mark("index")
    try:
        with ExitStack() as sources:
            journal, index = _snapshots(database, generation, sources)
            if index is not None:
                _copy(index, f"{target}.search-{generation}")
            _copy(journal, target)
    except sqlite3.Error as error:
        raise explained(error, target, failed="the backup could not be made") from error


def _snapshots(
    database: Database, generation: int, sources: ExitStack
) -> tuple[Connection, Connection | None]:
    """Read transactions on journal and index that see the same messages.

    Deleting a session changes both files, in two commits under the index's write lock. So both
    transactions begin under that lock; it is released before the copies are made.
    """
    if os.path.exists(path_of(database, generation)):
        try:
            lock = sources.enter_context(Index(database))
            with lock.writing():
                index = _snapshot(lock.path, sources)
                return _snapshot(database.path, sources), index
        except sqlite3.Error as error:
            if not at_fault(error):
                raise
            # A damaged index is left out: the copy builds its own from the journal.
    return _snapshot(database.path, sources), None


def _snapshot(path: str, sources: ExitStack) -> Connection:
    connection = connect(path, read_only=True)
    sources.callback(connection.close)
    connection.execute("BEGIN")
    # The snapshot is taken by the first read.
    connection.execute("SELECT count(*) FROM marks").fetchone()
    return connection


def _copy(source: Connection, target: str) -> None:
    draft = f"{target}.{os.urandom(4).hex()}.part"
    try:
        copy = connect(draft)
        try:
            # In one step: a copy in several would begin anew with each write of others.
            source.backup(copy, pages=-1)
            copy.execute("PRAGMA journal_mode = DELETE")
        finally:
            copy.close()
        os.replace(draft, target)
    finally:
        if os.path.exists(draft):
            os.unlink(draft)


def _wrong(database: Database) -> list[str]:
    """Problems of the journal that SQLite reports."""
    try:
        connection = connect(database.path, read_only=True)
        try:
            rows = connection.execute(f"PRAGMA integrity_check({_SHOWN})").fetchall()
        finally:
            connection.close()
    except sqlite3.Error as error:
        if is_damage(error):
            return [str(error)]
        raise explained(error, database.path, failed="the sessions can't be checked") from error
    return [str(line) for (line,) in rows if line != "ok"]


def _only_an_index(line: str) -> bool:
    return "missing from index" in line or "wrong # of entries in index" in line


def _count(database: Database, health: Health) -> None:
    try:
        with database.reading() as connection:
            health.sessions = _number(connection, "sessions")
            health.messages = _number(connection, f"entries WHERE kind <= {TOOL}")
            for what, where in _ORPHANS:
                if count := _number(connection, where):
                    health.problems.append(f"{count} {what}")
    except SessionsError as error:
        health.problems.append(str(error))


def _number(connection: Connection, where: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {where}").fetchone()[0])


def _examine_index(database: Database, health: Health, *, repair: bool) -> None:
    generation = database.mark("index")
    if not os.path.exists(path_of(database, generation)):
        health.index = "not made yet"
        return
    trouble = _index_trouble(database)
    if trouble and repair:
        start_again(database, generation)
        with Index(database) as index:
            index.catch_up()
        health.repaired.append(f"the search index was made again ({trouble})")
        trouble = _index_trouble(database)
    health.index = trouble or "sound"
    if trouble:
        health.problems.append(f"the search index is damaged: {trouble}")


def _index_trouble(database: Database) -> str:
    """The problem of the index; empty when it has every message it should."""
    try:
        with Index(database) as index, index.writing() as connection:
            found = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if found != "ok":
                return str(found)
            connection.execute("INSERT INTO found (found) VALUES ('integrity-check')")
            connection.execute(
                "CREATE VIRTUAL TABLE IF NOT EXISTS temp.spelled USING fts5vocab(main, found, row)"
            )
            postings = connection.execute("SELECT sum(doc) FROM temp.spelled").fetchone()[0] or 0
            if postings != index.mark("postings"):
                return f"it has {postings} of {index.mark('postings')} places of words"
            if _words_lost(connection):
                return "it lost some words"
            upto, held = index.mark("upto"), index.mark("messages")
            with database.reading() as journal:
                messages = _number(journal, f"entries AS e WHERE {INDEXED} AND e.seq <= {upto}")
            if messages != held:
                return f"it has {held} messages, and should have {messages}"
    except sqlite3.Error as error:
        if not at_fault(error):
            failed = "the search index can't be checked"
            raise explained(error, database.path, failed=failed) from error
        return str(error)
    return ""


def _words_lost(connection: Connection) -> bool:
    """Whether a word leads to messages and can't be found by a piece of it."""
    rows = connection.execute(
        "SELECT term FROM temp.spelled WHERE NOT EXISTS (SELECT 1 FROM words WHERE word = term)"
    )
    return any(runs(term)[0].kind == "word" for (term,) in rows)


class Pruned(msgspec.Struct):
    """Result of pruning.

    `due` sessions are past a limit, and still there.
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
    """Delete a session: its rows in the journal and its entries in the index."""
    try:
        _delete(database, name)
    except sqlite3.Error as error:
        if not at_fault(error):
            raise explained(error, database.path, failed="the session was not deleted") from error
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
    """Sessions not used for so many days."""
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
    """Free unused space: free pages, the write-ahead log, abandoned indexes; a line for each."""
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
