"""A whole journal, line by line, for showing and exporting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from hermes.core.messages import Usage
from hermes.stores.sessions.entries import (
    BASE,
    INTENT,
    KINDS,
    LINES,
    NOTE,
    OUTCOME,
    TEXT,
    unpacked,
    unpacked_base,
)
from hermes.stores.sessions.values import Entry, Note, Outcome

if TYPE_CHECKING:
    from hermes.stores.sessions.database import Database
    from hermes.stores.sessions.values import Intent


def journal(database: Database, number: int, intents: list[Intent]) -> list[Entry]:
    """The lines of a session, in order."""
    known = {intent.seq: intent for intent in intents}
    with database.reading() as connection:
        rows = connection.execute(
            f"SELECT e.seq, e.kind, e.turn, e.at, e.ref, {TEXT}, e.data FROM {LINES} "
            "WHERE e.session = ? ORDER BY e.seq",
            (number,),
        ).fetchall()
        costs = {
            row[0]: Usage(*row[1:])
            for row in connection.execute(
                "SELECT seq, input, output, cached, written, reasoning FROM usage "
                "WHERE session = ?",
                (number,),
            )
        }
    found = []
    for seq, kind, turn, at, ref, text, data in rows:
        value: Any
        when = at / 1000
        if kind == INTENT:
            if seq not in known:  # written while we were reading
                continue
            value = known[seq]
        elif kind == OUTCOME:
            status, seconds = msgspec.json.decode(data)
            value = Outcome(seq, ref, status, text, seconds, when)
        elif kind == NOTE:
            value = Note(seq, turn, text, msgspec.json.decode(data), when)
        elif kind == BASE:
            value = unpacked_base(ref, data)
        else:
            value = unpacked(kind, text, data)
        found.append(Entry(seq, KINDS[kind], turn, when, value, costs.get(seq)))
    return found
