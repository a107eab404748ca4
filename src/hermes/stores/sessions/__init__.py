"""Sessions: append-only journals of conversations; search, fork, export.

    session_store  `Sessions`: create, open, list, rename, delete, fork; session ids
    session        `Session`: the journal of one conversation
    records        data types, errors, and their encoding in the journal
    session_db     SQLite file: schema, damage flag, marks, error texts
    usage          tokens and cost by model, tool and agent

    query          query language
    search         full-text search: candidates, ranking, snippets
    index          full-text index beside the journal; case and accent folding

    export         JSON, Markdown and HTML export
    maintenance    integrity check, repair, backup, delete, prune

Start with `session_store`, then `session`.
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
    "Base", "DamagedError", "Entry", "Intent", "Note", "Outcome", "QueryError", "Session",
    "SessionInfo", "Sessions", "SessionsError", "Totals", "Work",
]  # fmt: skip

__getattr__ = names_from(
    __name__,
    {
        "records": "Base DamagedError Entry Intent Note Outcome QueryError SessionInfo "
        "SessionsError Totals Work",
        "session": "Session",
        "session_store": "Sessions",
    },
)
