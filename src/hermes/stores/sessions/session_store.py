"""`Sessions`: create, find, list, rename, fork and delete sessions."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from hermes.core.paths import home_path
from hermes.stores.sessions.records import SessionInfo, SessionsError, writable
from hermes.stores.sessions.session import Session, title_of
from hermes.stores.sessions.session_db import Database

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from sqlite3 import Connection
    from types import TracebackType
    from typing import Any

    from hermes.core.model_protocol import Message
    from hermes.stores.sessions.maintenance import Health, Pruned
    from hermes.stores.sessions.records import Totals
    from hermes.stores.sessions.search import Found


_CONSONANTS = "bdfghjklmnprstvz"  # 16, in order, so that names sort as times do
_VOWELS = "aeiou"
_BASE = len(_CONSONANTS) * len(_VOWELS)
_SYLLABLES = 3
_DAY = 86_400.0


def name_at(seconds: float) -> str:
    """The name for a moment: the day (UTC), then the time of day in syllables.

    A syllable word lasts a sixth of a second.
    """
    day = time.strftime("%y%m%d", time.gmtime(seconds))
    part = int(seconds % _DAY / _DAY * _BASE**_SYLLABLES)
    word = ""
    for _ in range(_SYLLABLES):
        part, syllable = divmod(part, _BASE)
        consonant, vowel = divmod(syllable, len(_VOWELS))
        word = _CONSONANTS[consonant] + _VOWELS[vowel] + word
    return f"{day}-{word}"


def names_from(seconds: float) -> Iterator[str]:
    """Candidate names, for the case that the first ones are taken."""
    step = _DAY / _BASE**_SYLLABLES
    return (name_at(seconds + number * step) for number in range(1000))


if TYPE_CHECKING:
    Infos = list[SessionInfo]

_COLUMNS = (
    "id, title, workspace, model, front_door, parent, relation, "
    "began / 1000.0, touched / 1000.0, messages"
)
_INDEX_EVERY = 256


class Sessions:
    """Every session of this home folder; nothing is made or opened before it is needed.

    With `power=True` each line waits for the disk, and not even a power failure loses it.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, power: bool = False) -> None:
        self.path = os.path.abspath(path) if path is not None else home_path("state.db")
        self.database = Database(self.path, power=power)

    def __enter__(self) -> Sessions:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self.database.close()

    @property
    def read_only(self) -> str:
        """Why nothing can be written; empty in the usual case."""
        return self.database.damage

    def begin(
        self,
        *,
        title: str = "",
        workspace: str | os.PathLike[str],
        model: str,
        parent: str | Session | None = None,
        front_door: str,
    ) -> Session:
        """A new session; with a `parent`, one that works for it."""
        above = parent.id if isinstance(parent, Session) else parent or ""
        with self.database.writing() as connection:
            return self._begin(
                connection, title, os.fspath(workspace), model, above, "child", front_door
            )

    def open(self, name: str) -> Session:
        """The session of that name, or the start of one, or `last` for the newest touched."""
        with self.database.reading() as connection:
            rows = _matching(connection, name)
        if not rows:
            raise SessionsError(
                f"no session is called {name!r:.80}", hint="`hermes sessions list` has their names."
            )
        if len(rows) > 1:
            some = ", ".join(row[1] for row in rows[:5])
            raise SessionsError(
                f"{name!r:.80} may be any of {some}{', …' if len(rows) > 5 else ''}",
                hint="Write more of the name.",
            )
        return Session(self, rows[0][0], SessionInfo(*rows[0][1:]))

    def info(self, name: str) -> SessionInfo:
        """A session at a glance."""
        found = self.open(name)
        with self.database.reading() as connection:
            row = connection.execute(
                f"SELECT {_COLUMNS} FROM sessions WHERE id = ?", (found.id,)
            ).fetchone()
        return SessionInfo(*row)

    def rename(self, name: str, title: str) -> None:
        """Give a session another title."""
        found = self.open(name)
        with self.database.writing() as connection:
            connection.execute(
                "UPDATE sessions SET title = ? WHERE id = ?",
                (title_of(title), found.id),
            )

    def delete(self, name: str) -> SessionInfo:
        """Delete a session; forks and children stay."""
        from hermes.stores.sessions.maintenance import delete_session

        info = self.info(name)
        delete_session(self.database, info.id)
        return info

    def fork(self, session: Session, messages: Sequence[Message], *, title: str = "") -> Session:
        """A new session that begins with these messages, taken from another one."""
        kept = _answered(messages)
        info = self.info(session.id)
        with self.database.writing() as connection:
            made = self._begin(
                connection, title or info.title, info.workspace, info.model,
                info.id, "fork", info.front_door,
            )  # fmt: skip
            made.compact(0, kept)
            connection.execute(
                "UPDATE sessions SET messages = ? WHERE n = ?", (len(kept), made.number)
            )
        return made

    def export(self, name: str, form: str = "json", *, raw: bool = False) -> str:
        """A whole session as text: `json`, `md` or `html` (one page that needs nothing else).

        Secrets are left out unless `raw`.
        """
        from hermes.stores.sessions.export import export

        session = self.open(name)
        return export(self.info(session.id), session.journal(), session.messages(), form, raw=raw)

    def search(
        self,
        query: str,
        *,
        limit: int = 20,
        session: str | None = None,
        workspace: str | None = None,
        role: str | None = None,
        check: Callable[[], Any] | None = None,
    ) -> Found:
        """The messages that fit, best first; `check` is called now and then and may raise.

        Words must all be there, also inside of longer words; accents and case do not matter.
        "…" is a phrase, word* the start of a word; OR and NOT in capitals combine.
        """
        from hermes.stores.sessions.search import search

        number = self.open(session).number if session else None
        return search(
            self.database, query, limit=limit, session=number, workspace=workspace, role=role,
            check=check,
        )  # fmt: skip

    def totals(self) -> Totals:
        """Usage of all stored sessions."""
        from hermes.stores.sessions.usage import totals

        return totals(self.database)

    def sync(self) -> None:
        """Wait until everything is on the disk, safe from a power failure too."""
        self.database.sync()

    def backup(self, target: str | os.PathLike[str]) -> None:
        """Copy the store to another file while it is in use; the copy is sound and complete."""
        from hermes.stores.sessions.maintenance import backup

        backup(self.database, os.path.abspath(target))

    def doctor(self, *, repair: bool = True) -> Health:
        """Check the store; rebuilds the parts that can be rebuilt."""
        from hermes.stores.sessions.maintenance import examine

        return examine(self.database, repair=repair)

    def prune(
        self,
        *,
        max_bytes: int | None = None,
        keep_days: float | None = None,
        delete: bool = False,
    ) -> Pruned:
        """Free space: derived data first, sessions only with `delete`."""
        from hermes.stores.sessions.maintenance import prune

        return prune(self, max_bytes=max_bytes, keep_days=keep_days, delete=delete)

    def appended(self, seq: int) -> None:
        """Called with each new message: now and then the index is brought up to date."""
        if seq % _INDEX_EVERY == 0:
            from hermes.stores.sessions.index import catch_up_if_free

            catch_up_if_free(self.database)

    def list(
        self,
        workspace: str | None = None,
        limit: int = 20,
        offset: int = 0,
        *,
        children: bool = True,
    ) -> Infos:
        """Sessions at a glance, those touched last first.

        Without `children` only those that a person began: an agent that works for a session has
        one of its own, which is nothing to go on with.
        """
        where = "TRUE" if children else "relation != 'child'"
        values: list[str] = []
        if workspace is not None:
            where += " AND workspace = ?"
            values.append(workspace)
        with self.database.reading() as connection:
            rows = connection.execute(
                f"SELECT {_COLUMNS} FROM sessions WHERE {where} "
                "ORDER BY touched DESC, n DESC LIMIT ? OFFSET ?",
                (*values, limit, offset),
            ).fetchall()
        return [SessionInfo(*row) for row in rows]

    def _begin(
        self,
        connection: Connection,
        title: str,
        workspace: str,
        model: str,
        parent: str,
        relation: str,
        front_door: str,
    ) -> Session:

        now = int(time.time() * 1000)
        texts = [writable(text) for text in (title_of(title), workspace, model, front_door, parent)]
        for name in names_from(now / 1000):
            made = connection.execute(
                "INSERT OR IGNORE INTO sessions (id, title, workspace, model, front_door, parent, "
                "relation, began, touched, messages) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0)",
                (name, *texts, relation if parent else "", now, now),
            )
            if made.rowcount:
                row = connection.execute(
                    f"SELECT n, {_COLUMNS} FROM sessions WHERE id = ?", (name,)
                ).fetchone()
                return Session(self, row[0], SessionInfo(*row[1:]))
        raise SessionsError("too many sessions were begun at once", hint="Try again in a moment.")


def _matching(connection: Connection, name: str) -> Sequence[Any]:
    """The rows of the sessions that a name may mean."""
    if name == "last":
        return connection.execute(
            # Nobody means the helper that was at work when the program was killed, or a session
            # that was ended before anything came of it.
            f"SELECT n, {_COLUMNS} FROM sessions ORDER BY relation = 'child', messages = 0 AND "
            "NOT EXISTS (SELECT 1 FROM entries WHERE session = n), touched DESC, n DESC LIMIT 1"
        ).fetchall()
    if not name.strip():
        return []
    for condition in ("id = ?1", "substr(id, 1, length(?1)) = ?1", "substr(id, 8) = ?1"):
        rows = connection.execute(
            f"SELECT n, {_COLUMNS} FROM sessions WHERE {condition} ORDER BY n DESC LIMIT 6",
            (writable(name.strip()),),
        ).fetchall()
        if rows:
            return rows
    return []


def _answered(messages: Sequence[Message]) -> Sequence[Message]:
    """The messages without a step at their end that is still waiting for results."""
    open_calls: set[str] = set()
    start = 0
    for place, message in enumerate(messages):
        if message.role == "assistant":
            open_calls, start = {call.id for call in message.calls}, place
        elif message.role == "tool":
            open_calls.discard(message.call_id)
    return messages[:start] if open_calls else messages
