"""Sessions: every conversation, kept line by line, searched, forked and exported.

    store.py      `Sessions`: begin, open, list, rename, delete, fork
    session.py    `Session`: the journal of one conversation
    values.py     what comes back, and the errors
    ids.py        names that sort and can be said aloud

    database.py   the SQLite file: transactions, versions, damage
    entries.py    how a line is written down
    reading.py    a whole journal, line by line
    totals.py     what was used, by model, tool and agent
    spending.py   … share by share, for `hermes cost`

    search.py     what fits a query, best first
    query.py      how a query is read
    folding.py    text without case and accents, cut into words
    index.py      the file that search looks things up in
    lookup.py     what the index is asked
    ranking.py    how well a message fits
    snippets.py   the part that shows why

    exporting.py  a session as json or markdown
    page.py       … as a web page
    doctor.py     is it sound? and backups
    pruning.py    making room, deleting
    keeping.py    the store as the settings want it

Start with `store.py`, then `session.py`.
"""

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.stores.sessions.records import (
        Base,
        DamagedError,
        Entry,
        Intent,
        Note,
        Outcome,
        QueryError,
        SessionInfo,
        SessionsError,
        Totals,
        Work,
    )
    from hermes.stores.sessions.session import Session
    from hermes.stores.sessions.session_store import Sessions

__all__ = [
    "Base",
    "DamagedError",
    "Entry",
    "Intent",
    "Note",
    "Outcome",
    "QueryError",
    "Session",
    "SessionInfo",
    "Sessions",
    "SessionsError",
    "Totals",
    "Work",
]

__getattr__ = names_from(
    __name__,
    {
        "Base": "records",
        "DamagedError": "records",
        "Entry": "records",
        "Intent": "records",
        "Note": "records",
        "Outcome": "records",
        "QueryError": "records",
        "Session": "session",
        "SessionInfo": "records",
        "Sessions": "session_store",
        "SessionsError": "records",
        "Totals": "records",
        "Work": "records",
    },
)
