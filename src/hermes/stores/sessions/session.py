"""`Session`: the append-only journal of one conversation."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import msgspec

from hermes.core.model_protocol import Usage
from hermes.stores.sessions.records import (
    ASSISTANT,
    BASE,
    INTENT,
    KINDS,
    LINES,
    MESSAGES,
    NOTE,
    OUTCOME,
    TEXT,
    TOOL,
    Entry,
    Intent,
    Note,
    Outcome,
    SessionsError,
    encoded,
    packed,
    packed_base,
    unpacked,
    unpacked_base,
    writable,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from sqlite3 import Connection

    from hermes.core.model_protocol import Message
    from hermes.stores.sessions.records import SessionInfo, Totals
    from hermes.stores.sessions.session_db import Database
    from hermes.stores.sessions.session_store import Sessions


_ADD = "INSERT INTO entries (session, kind, at, turn, ref, text, data) VALUES (?, ?, ?, ?, ?, ?, ?)"
_TITLE_CHARS = 60
# The notes that hold what a session has to do, the newest being what holds.
_TODOS = "todos"
_SHORT = 64  # a text up to this length is simply written again


class Session:
    """A conversation that is kept; made by `Sessions.begin` or `Sessions.open`."""

    def __init__(self, store: Sessions, number: int, info: SessionInfo) -> None:
        self._store = store
        self.number = number
        self.id = info.id
        self.workspace = info.workspace
        self.front_door = info.front_door
        self.parent = info.parent
        self._model = info.model
        self._titled = bool(info.title)
        # What this process wrote lately and need not write again: call id -> line and text.
        self._asked: dict[str, tuple[int, str]] = {}
        self._results: dict[str, tuple[int, str]] = {}
        self._calls: dict[int, str] = {}

    @property
    def store(self) -> Sessions:
        """Where it is kept, with the others."""
        return self._store

    @property
    def title(self) -> str:
        """The title; the first words of the session until it is renamed."""
        return self._store.info(self.id).title

    @title.setter
    def title(self, title: str) -> None:
        """The title; the first words of the session until it is renamed."""
        self._store.rename(self.id, title)
        self._titled = True

    @property
    def model(self) -> str:
        """The model that answers; further usage is counted for it."""
        return self._model

    @model.setter
    def model(self, model: str) -> None:
        """The model that answers; further usage is counted for it."""
        with self._store.database.writing() as connection:
            connection.execute(
                "UPDATE sessions SET model = ? WHERE n = ?", (writable(model), self.number)
            )
        self._model = model

    def append(self, message: Message, *, usage: Usage | None = None, turn: str = "") -> int:
        """Append a message with its usage; its sequence number, which only grows."""
        kind, text, ref = MESSAGES[message.role], writable(message.text), None
        if kind == TOOL:
            seq, content = self._results.pop(message.call_id, (0, ""))
            if seq and text == content:
                text, ref = "", seq
        data = packed(message)
        with self._store.database.writing() as connection:
            seq = self._add(connection, kind, turn, text, data, ref)
            self._name(connection, message)
            self._spend(connection, seq, usage)
        if kind == ASSISTANT:
            self._asked = {call.id: (seq, call.arguments) for call in message.calls}
        self._store.appended(seq)
        return seq

    def intend(self, turn: str, call_id: str, tool: str, arguments: Any, effect: str) -> int:
        """Append the intent to call a tool; its sequence number, for `outcome`."""
        said, words = self._asked.pop(call_id, (0, ""))
        ref = said if said and _same(words, arguments) else None
        text = "" if ref else _as_text(arguments)
        data = encoded([call_id, tool, effect])
        with self._store.database.writing() as connection:
            seq = self._add(connection, INTENT, turn, text, data, ref)
        self._calls[seq] = call_id
        return seq

    def outcome(self, call_seq: int, status: str, content: str, seconds: float) -> int:
        """Append the result of a call: its status (`ok` on success) and content."""
        content = writable(content)
        with self._store.database.writing() as connection:
            found = connection.execute(
                "SELECT turn FROM entries WHERE seq = ? AND session = ? AND kind = ?",
                (call_seq, self.number, INTENT),
            ).fetchone()
            if found is None:
                raise SessionsError(f"session {self.id} has no call with the number {call_seq}")
            data = encoded([status, round(seconds, 6)])
            seq = self._add(connection, OUTCOME, found[0], content, data, call_seq)
        call_id = self._calls.pop(call_seq, "")
        if call_id and len(content) > _SHORT:
            self._results[call_id] = (seq, content)
        return seq

    def note(
        self, kind: str, data: Any, *, turn: str = "", usage: Usage | None = None, model: str = ""
    ) -> int:
        """Append a note: any JSON value under a kind of its own, with its usage."""
        with self._store.database.writing() as connection:
            seq = self._add(connection, NOTE, turn, writable(kind), encoded(data))
            self._spend(connection, seq, usage, model)
        return seq

    def notes(self, kind: str | None = None) -> list[Note]:
        """The notes of a kind, or all, oldest first."""
        rows = self._rows("seq, turn, text, data, at", NOTE)
        return [
            Note(seq, turn, text, msgspec.json.decode(data), at / 1000)
            for seq, turn, text, data, at in rows
            if kind in (None, text)
        ]

    def compact(
        self, upto_seq: int, summary: Sequence[Message], *, usage: Usage | None = None
    ) -> int:
        """Let `summary` stand for all messages up to a number; those stay to be searched."""
        data = packed_base(summary)
        with self._store.database.writing() as connection:
            seq = self._add(connection, BASE, "", "", data, upto_seq)
            self._spend(connection, seq, usage)
        return seq

    def messages(self, *, at: int | None = None) -> list[Message]:
        """The conversation as the model sees it: the newest summary and the messages after it.

        With `at`, as it was right after the entry of that number.
        """
        last = at if at is not None else 2**62
        with self._store.database.reading() as connection:
            base = connection.execute(
                "SELECT ref, data FROM entries WHERE session = ? AND kind = ? AND seq <= ? "
                "ORDER BY seq DESC LIMIT 1",
                (self.number, BASE, last),
            ).fetchone()
            upto, found = (base[0], unpacked_base(*base).messages) if base else (0, [])
            rows = connection.execute(
                f"SELECT e.kind, {TEXT}, e.data FROM {LINES} WHERE e.session = ? "
                f"AND e.kind <= {TOOL} AND e.seq > ? AND e.seq <= ? ORDER BY e.seq",
                (self.number, upto, last),
            ).fetchall()
        return found + [unpacked(*row) for row in rows]

    def around(self, seq: int, *, before: int = 5, after: int = 5) -> list[tuple[int, Message]]:
        """The messages near a line, with their numbers, also those that were summed up since."""
        found: list[Any] = []
        with self._store.database.reading() as connection:
            for condition, order, count in (("<=", "DESC", before + 1), (">", "ASC", after)):
                found += connection.execute(
                    f"SELECT e.seq, e.kind, {TEXT}, e.data FROM {LINES} WHERE e.session = ? "
                    f"AND e.kind <= {TOOL} AND e.seq {condition} ? ORDER BY e.seq {order} LIMIT ?",
                    (self.number, seq, max(count, 0)),
                ).fetchall()
        return [(row[0], unpacked(*row[1:])) for row in sorted(found)]

    def unfinished(self) -> list[Intent]:
        """Calls with an intent and no outcome, oldest first."""
        done = {ref for (ref,) in self._rows("ref", OUTCOME)}
        return [intent for intent in self.intents() if intent.seq not in done]

    def intents(self) -> list[Intent]:
        """Every call that was begun, oldest first."""
        with self._store.database.reading() as connection:
            rows = connection.execute(
                f"SELECT e.seq, e.turn, e.text, e.data, e.at, o.data FROM {LINES} "
                "WHERE e.session = ? AND e.kind = ? ORDER BY e.seq",
                (self.number, INTENT),
            ).fetchall()
        found = []
        for seq, turn, text, data, at, said in rows:
            call_id, tool, effect = msgspec.json.decode(data)
            if said is not None:
                calls = unpacked(ASSISTANT, "", said).calls
                text = next(call.arguments for call in calls if call.id == call_id)
            arguments = _as_value(text)
            found.append(Intent(seq, turn, call_id, tool, arguments, effect, at / 1000))
        return found

    def journal(self) -> list[Entry]:
        """Every line as it was written, in order."""

        return journal(self._store.database, self.number, self.intents())

    def last_turn(self) -> int:
        """The highest number among the names of its turns, which are its own name and a number."""
        with self._store.database.reading() as connection:
            names = connection.execute(
                "SELECT DISTINCT turn FROM entries WHERE session = ?", (self.number,)
            ).fetchall()
        numbers = (name.removeprefix(f"{self.id}-") for (name,) in names)
        return max((int(number) for number in numbers if number.isdecimal()), default=0)

    def totals(self) -> Totals:
        """Usage by model, tool and agent, including child sessions."""
        from hermes.stores.sessions.usage import totals

        return totals(self._store.database, self.id)

    def fork(self, at: int | None = None, *, title: str = "") -> Session:
        """A new session that continues from here, or from right after an entry.

        A last step with unanswered calls is left out.
        """
        if at is not None and not self._has(at):
            raise SessionsError(
                f"session {self.id} has no line {at}",
                hint=f"`hermes sessions show {self.id}` has their numbers.",
            )
        lists = [note for note in self.notes(_TODOS) if at is None or note.seq <= at]
        made = self._store.fork(self, self.messages(at=at), title=title)
        if lists:
            # What is left to do is left to do there, too.
            made.note(_TODOS, lists[-1].data)
        return made

    def _has(self, seq: int) -> bool:
        with self._store.database.reading() as connection:
            return bool(
                connection.execute(
                    "SELECT 1 FROM entries WHERE seq = ? AND session = ?", (seq, self.number)
                ).fetchone()
            )

    def _rows(self, columns: str, kind: int) -> list[Any]:
        with self._store.database.reading() as connection:
            return connection.execute(
                f"SELECT {columns} FROM entries WHERE session = ? AND kind = ? ORDER BY seq",
                (self.number, kind),
            ).fetchall()

    def _add(
        self,
        connection: Connection,
        kind: int,
        turn: str,
        text: str,
        data: bytes | None,
        ref: int | None = None,
    ) -> int:
        now = int(time.time() * 1000)
        row = (self.number, kind, now, writable(turn), ref, text, data)
        seq = connection.execute(_ADD, row).lastrowid
        done = connection.execute(
            "UPDATE sessions SET touched = ?, messages = messages + ? WHERE n = ?",
            (now, kind <= TOOL, self.number),
        )
        if done.rowcount == 0:
            raise SessionsError(f"session {self.id} was deleted by somebody else")
        assert seq is not None
        return seq

    def _spend(
        self, connection: Connection, seq: int, usage: Usage | None, model: str = ""
    ) -> None:
        if usage is not None:
            u = usage
            numbers = (u.input, u.output, u.cached, u.written, u.reasoning)
            connection.execute(
                "INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (seq, self.number, writable(model or self._model), *numbers),
            )

    def _name(self, connection: Connection, message: Message) -> None:
        if not self._titled and message.role == "user" and message.text.strip():
            title = _shortened(message.text)
            connection.execute(
                "UPDATE sessions SET title = ? WHERE n = ? AND title = ''", (title, self.number)
            )
            self._titled = True


def title_of(text: str) -> str:
    """A title as it is kept: one line that can't speak to a terminal."""
    return " ".join("".join(c if c.isprintable() else " " for c in writable(text)).split())


def _shortened(text: str) -> str:
    """A title from the first words of a text."""
    words = title_of(text[: 4 * _TITLE_CHARS])
    return words if len(words) <= _TITLE_CHARS else words[: _TITLE_CHARS - 1].rstrip() + "…"


def _as_text(arguments: Any) -> str:
    return writable(arguments) if isinstance(arguments, str) else encoded(arguments).decode()


def _as_value(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def _same(text: str, arguments: Any) -> bool:
    return bool(text == arguments or _as_value(text) == arguments)


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
