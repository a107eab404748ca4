"""Is the store sound? What can be made again is; what can't is said, and no longer written to."""

from __future__ import annotations

import os
import sqlite3
from typing import TYPE_CHECKING

import msgspec

from hermes.stores.sessions.database import connect
from hermes.stores.sessions.entries import OUTCOME, TOOL
from hermes.stores.sessions.folding import runs
from hermes.stores.sessions.index import INDEXED, Index, at_fault, path_of, start_again
from hermes.stores.sessions.trouble import explained, is_damage
from hermes.stores.sessions.values import SessionsError

if TYPE_CHECKING:
    from sqlite3 import Connection

    from hermes.stores.sessions.database import Database

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
    """What a doctor found. `problems` are left, `repaired` are not."""

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
    """Bytes on the disk, by what they are for."""
    folder, name = os.path.split(database.path)
    found = {"journal": 0, "index": 0}
    for entry in os.scandir(folder):
        if entry.name.startswith(f"{name}.search-"):
            found["index"] += entry.stat().st_size
        elif entry.name in (name, f"{name}-wal"):
            found["journal"] += entry.stat().st_size
    return found


def backup(database: Database, target: str) -> None:
    """Copy journal and index as they are at this moment; nobody has to stop writing."""
    if os.path.exists(target):
        raise SessionsError(f"{target} exists already", hint="Choose another name.")
    if not os.path.exists(database.path):
        raise SessionsError("there is nothing to back up yet")
    generation = database.mark("index")
    index = path_of(database, generation)
    # The index first: it may be behind the journal, never ahead of it.
    if os.path.exists(index):
        _copy(index, f"{target}.search-{generation}")
    _copy(database.path, target)


def _copy(source: str, target: str) -> None:
    draft = f"{target}.{os.urandom(4).hex()}.part"
    try:
        origin = connect(source, read_only=True)
        try:
            made = connect(draft)
            try:
                # In one step: a copy in several would begin anew with each write of others.
                origin.backup(made, pages=-1)
                made.execute("PRAGMA journal_mode = DELETE")
            finally:
                made.close()
        finally:
            origin.close()
        os.replace(draft, target)
    except sqlite3.Error as error:
        raise explained(error, target, what="the backup could not be made") from error
    finally:
        if os.path.exists(draft):
            os.unlink(draft)


def _wrong(database: Database) -> list[str]:
    """What SQLite says is wrong with the journal."""
    try:
        connection = connect(database.path, read_only=True)
        try:
            rows = connection.execute(f"PRAGMA integrity_check({_SHOWN})").fetchall()
        finally:
            connection.close()
    except sqlite3.Error as error:
        if is_damage(error):
            return [str(error)]
        raise explained(error, database.path, what="the sessions can't be checked") from error
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
    """What is wrong with the index; empty when every message it should have is in it."""
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
            what = "the search index can't be checked"
            raise explained(error, database.path, what=what) from error
        return str(error)
    return ""


def _words_lost(connection: Connection) -> bool:
    """Whether a word leads to messages and can't be found by a piece of it."""
    rows = connection.execute(
        "SELECT term FROM temp.spelled WHERE NOT EXISTS (SELECT 1 FROM words WHERE word = term)"
    )
    return any(runs(term)[0].kind == "word" for (term,) in rows)
