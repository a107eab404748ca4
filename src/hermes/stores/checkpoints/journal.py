"""Change journal: author, time, and the state of a path before and after."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from hermes.stores.checkpoints.path_state import is_quiet, read_traits
from hermes.stores.checkpoints.types import Author, Change, CheckpointError, State, Turn

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from sqlite3 import Connection
    from typing import Any

_STATE = "{0}_kind, {0}_digest, {0}_mode, {0}_size, {0}_target, {0}_traits"
_SELECT = (
    "SELECT changes.id, changes.at, session, turns.name, call, tool, agent, front_door, disk,"
    f" place, certain, quiet, {_STATE.format('old')}, {_STATE.format('new')} FROM changes"
    " JOIN turns ON turns.id = changes.turn JOIN authors ON authors.id = changes.author"
)


class Record(NamedTuple):
    """A change that is about to be made."""

    disk: str
    place: str
    before: State
    after: State
    certain: bool = True


def record(
    connection: Connection, author: Author, at: float, records: Sequence[Record]
) -> list[int]:
    """Enter changes of one author, within a transaction; their ids."""
    turn = _turn(connection, author, at)
    by = _author(connection, turn, author)
    seen = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'changes'").fetchone()
    first = (seen[0] if seen else 0) + 1
    rows = (
        (
            number, turn, by, at, one.disk, encoded(one.place), one.certain,
            *_columns(one.before), *_columns(one.after), _traits(one.before), _traits(one.after),
            is_quiet(one.before, one.after),
        )
        for number, one in enumerate(records, first)
    )  # fmt: skip
    connection.executemany(f"INSERT INTO changes VALUES ({', '.join('?' * 20)})", rows)
    return list(range(first, first + len(records)))


def forget(connection: Connection, ids: Iterable[int]) -> None:
    """Take back records of changes that were not made."""
    connection.executemany("DELETE FROM changes WHERE id = ?", [(one,) for one in ids])
    connection.execute(
        "DELETE FROM turns WHERE id NOT IN (SELECT turn FROM changes)"
        " AND id NOT IN (SELECT turn FROM undos)"
    )


def last_writer(connection: Connection, place: str, digest: str, disk: str) -> Author | None:
    """Who made the state with that digest; an empty digest means that nothing is there."""
    found = connection.execute(
        f"{_SELECT} WHERE place = ? AND disk = ? AND new_digest = ? AND (? OR new_kind = 'absent')"
        " ORDER BY changes.id DESC LIMIT 1",
        (encoded(place), disk, digest, bool(digest)),
    ).fetchone()
    return None if found is None else _change(found).author


def changes_of(connection: Connection, turn: int, call: str | None = None) -> list[Change]:
    """The changes of a turn, or of one call in it, in order."""
    sql, values = f"{_SELECT} WHERE changes.turn = ?", [turn]
    if call is not None:
        sql, values = f"{sql} AND call = ?", [turn, call]  # type: ignore[list-item]
    return [_change(row) for row in connection.execute(f"{sql} ORDER BY changes.id", values)]


def change(connection: Connection, number: int) -> Change | None:
    """One change by its id."""
    found = connection.execute(f"{_SELECT} WHERE changes.id = ?", (number,)).fetchone()
    return None if found is None else _change(found)


def changes_at(connection: Connection, place: str, *, since: int = 0) -> list[Change]:
    """The visible changes of one place, oldest first."""
    sql = f"{_SELECT} WHERE place = ? AND changes.id > ? AND NOT quiet ORDER BY changes.id"
    return [_change(row) for row in connection.execute(sql, (encoded(place), since))]


def newest_at(connection: Connection, place: str, disk: str) -> Change | None:
    """The last change of one place."""
    sql = f"{_SELECT} WHERE place = ? AND disk = ? AND NOT quiet ORDER BY changes.id DESC LIMIT 1"
    found = connection.execute(sql, (encoded(place), disk)).fetchone()
    return None if found is None else _change(found)


def made_below(connection: Connection, folder: str, session: str) -> set[str]:
    """The local paths below a folder that did not exist before a session first changed them."""
    where, values = _below(folder)
    rows = connection.execute(
        "SELECT place, old_kind, min(changes.id) FROM changes JOIN turns"
        f" ON turns.id = changes.turn WHERE {where} AND session = ? AND disk = 'local'"
        " GROUP BY place",
        (*values, clean(session)),
    )
    return {os.fsdecode(place) for place, kind, _ in rows if kind == "absent"}


def watermark(connection: Connection) -> int:
    """The id of the newest change."""
    found = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'changes'").fetchone()
    return found[0] if found else 0


def turns(
    connection: Connection,
    *,
    below: str | None = None,
    limit: int | None = None,
    quiet: bool = False,
) -> list[Turn]:
    """Turns that changed something, newest first; only those that did so below a folder.

    Those that only changed times are left out unless `quiet`.
    """
    where, values = _below(below)
    if not quiet:
        where = f"{where} AND NOT quiet"
    # The newest change decides: a turn may go on while others begin and end.
    rows = connection.execute(
        "SELECT turn, max(changes.id), count(DISTINCT place), min(place) FROM changes"
        f" WHERE {where} GROUP BY turn ORDER BY 2 DESC LIMIT ?",
        (*values, -1 if limit is None else limit),
    ).fetchall()
    return [_summary(connection, turn, places, example) for turn, _, places, example in rows]


def find_turn(connection: Connection, text: str) -> Turn | None:
    """The turn of that name: `TURN`, or `SESSION/TURN` where several sessions have one."""
    rows = connection.execute(
        "SELECT id, session FROM turns WHERE (name = ?1 OR session || '/' || name = ?1)"
        " AND id IN (SELECT turn FROM changes)",
        (clean(text),),
    ).fetchall()
    if len(rows) > 1:
        names = ", ".join(f"{session}/{text}" for _, session in rows[:5])
        raise CheckpointError(f"several sessions have a turn {text}", hint=f"Say which: {names}")
    return _whole(connection, rows[0][0]) if rows else None


def find_call(connection: Connection, text: str) -> tuple[Turn, str] | None:
    """The newest turn in which a call of that id changed something."""
    found = connection.execute(
        "SELECT changes.turn FROM changes JOIN authors ON authors.id = changes.author"
        " WHERE call = ? ORDER BY changes.id DESC LIMIT 1",
        (clean(text),),
    ).fetchone()
    return None if found is None else (_whole(connection, found[0]), clean(text))


def encoded(place: str) -> bytes:
    """A place as it is kept: names need not be UTF-8."""
    return os.fsencode(place)


def clean(text: str) -> str:
    """A text without characters that SQLite refuses."""
    return text.encode("utf-8", "backslashreplace").decode()


def _below(folder: str | None) -> tuple[str, tuple[bytes, ...]]:
    if folder is None:
        return "1", ()
    place = encoded(folder)
    inside = place if place.endswith(b"/") else place + b"/"
    return "(place = ? OR (place > ? AND place < ?))", (place, inside, inside[:-1] + b"0")


def _whole(connection: Connection, turn: int) -> Turn:
    places, example = connection.execute(
        "SELECT count(DISTINCT place), min(place) FROM changes WHERE turn = ?1"
        " AND NOT (quiet AND EXISTS (SELECT 1 FROM changes WHERE turn = ?1 AND NOT quiet))",
        (turn,),
    ).fetchone()
    return _summary(connection, turn, places, example)


def _summary(connection: Connection, turn: int, places: int, example: bytes) -> Turn:
    session, name, at = connection.execute(
        "SELECT session, name, (SELECT max(at) FROM changes WHERE turn = ?1) FROM turns"
        " WHERE id = ?1",
        (turn,),
    ).fetchone()
    tools = connection.execute(
        "SELECT DISTINCT tool FROM authors WHERE turn = ? ORDER BY id", (turn,)
    )
    undone = connection.execute(
        "SELECT turns.name FROM undos JOIN turns ON turns.id = undos.undoes WHERE undos.turn = ?",
        (turn,),
    ).fetchone()
    return Turn(
        turn,
        session,
        name,
        at,
        tuple(tool for (tool,) in tools),
        places,
        os.fsdecode(example),
        undone[0] if undone else "",
    )


def _turn(connection: Connection, author: Author, at: float) -> int:
    # Outside a conversation every call stands alone.
    name = clean(author.turn or author.call) or f"change-{os.urandom(4).hex()}"
    key = (clean(author.session), name)
    connection.execute(
        "INSERT OR IGNORE INTO turns (session, name, at) VALUES (?, ?, ?)", (*key, at)
    )
    found = connection.execute("SELECT id FROM turns WHERE session = ? AND name = ?", key)
    return int(found.fetchone()[0])


def _author(connection: Connection, turn: int, author: Author) -> int:
    key = (turn, *map(clean, (author.call, author.tool, author.agent, author.front_door)))
    connection.execute(
        "INSERT OR IGNORE INTO authors (turn, call, tool, agent, front_door)"
        " VALUES (?, ?, ?, ?, ?)",
        key,
    )
    found = connection.execute(
        "SELECT id FROM authors WHERE (turn, call, tool, agent, front_door) = (?, ?, ?, ?, ?)", key
    )
    return int(found.fetchone()[0])


def _columns(state: State) -> tuple[Any, ...]:
    return (state.kind, state.digest, state.mode, state.size, encoded(state.target))


def _traits(state: State) -> str:
    return "" if state.traits is None else state.traits.text


def _change(row: tuple[Any, ...]) -> Change:
    number, at, session, turn, call, tool, agent, front_door, disk, place, certain, quiet = row[:12]
    return Change(
        number,
        at,
        Author(session, turn, call, tool, agent, front_door),
        disk,
        os.fsdecode(place),
        _state(row[12:18]),
        _state(row[18:24]),
        bool(certain),
        bool(quiet),
    )


def _state(columns: tuple[Any, ...]) -> State:
    kind, digest, mode, size, target, kept = columns
    return State(kind, digest, mode, size, os.fsdecode(target), read_traits(kept))
