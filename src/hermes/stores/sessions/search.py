"""Search: candidates from the index, newest first; each looked at; the best of them in order.

Ranking is bounded: the newest few hundred hits compete, however many there are. So a word that
is everywhere is answered as fast as one that is rare.
"""

from __future__ import annotations

import sqlite3
import time
from typing import TYPE_CHECKING

import msgspec

from hermes.stores.sessions.entries import KINDS, LINES, MESSAGES, TEXT, searchable
from hermes.stores.sessions.folding import fold
from hermes.stores.sessions.index import INDEXED, Index, at_fault, start_again
from hermes.stores.sessions.lookup import TooManyWordsError, every_word, whole_words
from hermes.stores.sessions.query import parse
from hermes.stores.sessions.ranking import score
from hermes.stores.sessions.snippets import snippet
from hermes.stores.sessions.trouble import explained
from hermes.stores.sessions.values import SessionsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from hermes.stores.sessions.database import Database
    from hermes.stores.sessions.query import Choice, Term

_ROLES = ("user", "assistant", "tool")
_POOL = 300
_POOL_CHARS = 4_000_000
_SECONDS = 10.0
_PAGE = 50


class Hit(msgspec.Struct, frozen=True):
    """A message that fits. `marks` are where in the snippet the words are."""

    session: str
    title: str
    workspace: str
    seq: int
    role: str
    turn: str
    at: float
    snippet: str
    marks: list[tuple[int, int]]
    score: float


class Found(msgspec.Struct, frozen=True):
    """Hits, best first. Unless `complete`, there are (or may be) more, older than these."""

    hits: list[Hit]
    complete: bool
    scanned: int


def search(
    database: Database,
    query: str,
    *,
    limit: int,
    session: int | None = None,
    workspace: str | None = None,
    role: str | None = None,
    check: Callable[[], Any] | None = None,
) -> Found:
    """The messages that fit a query, best first."""
    if limit < 1:
        raise SessionsError(f"limit must be at least 1, not {limit}")
    if role is not None and role not in _ROLES:
        raise SessionsError(
            f"no role {role!r:.40} is searched", hint=f"Use one of {', '.join(_ROLES)}."
        )
    choices = parse(query)
    wanted = _Wanted(database, session, workspace, role, check)
    generation = database.mark("index")
    try:
        return _search(database, choices, limit, wanted)
    except sqlite3.Error as error:
        if not at_fault(error):
            raise explained(error, database.path, what="the sessions can't be searched") from error
    # Once: an index that fails again has another reason, which is said.
    start_again(database, generation)
    try:
        return _search(database, choices, limit, wanted)
    except sqlite3.Error as error:
        what = "the index of the sessions can't be made"
        raise explained(error, database.path, what=what) from error


class _Wanted:
    """Which messages are looked at; keeps count of them."""

    def __init__(
        self,
        database: Database,
        session: int | None,
        workspace: str | None,
        role: str | None,
        check: Callable[[], Any] | None,
    ) -> None:
        self.database = database
        self.check = check
        self.scanned = 0
        self.until = time.monotonic() + _SECONDS
        self.conditions = ""
        self.values: list[Any] = []
        for condition, value in (
            ("e.session = ?", session),
            ("s.workspace = ?", workspace),
            ("e.kind = ?", MESSAGES.get(role or "")),
        ):
            if value is not None:
                self.conditions += f" AND {condition}"
                self.values.append(value)

    def rows(self, condition: str, values: list[Any], tail: str = "") -> list[Any]:
        """Lines of the journal, with the session that each belongs to."""
        with self.database.reading() as journal:
            rows = journal.execute(
                f"SELECT e.seq, e.kind, {TEXT}, e.data, e.turn, e.at, s.id, s.title, s.workspace "
                f"FROM {LINES} JOIN sessions AS s ON s.n = e.session "
                f"WHERE {condition} AND {INDEXED}{self.conditions} ORDER BY e.seq DESC {tail}",
                (*values, *self.values),
            ).fetchall()
        self.scanned += len(rows)
        if self.check is not None:
            self.check()
        return rows

    @property
    def late(self) -> bool:
        """Whether it takes too long."""
        return time.monotonic() > self.until


def _search(database: Database, choices: list[Choice], limit: int, wanted: _Wanted) -> Found:
    found: dict[int, tuple[Any, str]] = {}
    complete = True
    with Index(database) as index:
        index.catch_up(wanted.check)
        for choice in choices:
            complete &= _collect(choice, index, max(limit, _POOL), wanted, found)
    terms = [term for choice in choices for term in choice.terms]
    ranked = sorted(
        (
            (score(terms, row[1], text, folded), row, text, folded)
            for row, text, folded in _texts(found)
        ),
        key=lambda item: (item[0], item[1][0]),
        reverse=True,
    )
    hits = [_hit(points, row, text, folded, terms) for points, row, text, folded in ranked[:limit]]
    return Found(hits, complete and len(ranked) <= limit, wanted.scanned)


def _collect(
    choice: Choice, index: Index, most: int, wanted: _Wanted, found: dict[int, tuple[Any, str]]
) -> bool:
    """Gather the newest hits of one choice; whether these are all there are."""
    room = _Room(most)
    first = whole_words(choice)
    for rows in _candidates(index, first, wanted):
        if not room.take(choice, rows, found) or wanted.late:
            return False
    try:
        second = every_word(choice, index.connection)
    except TooManyWordsError:
        second = ""
    if second == first:
        return True
    for rows in _candidates(index, second, wanted):
        if not room.take(choice, rows, found) or wanted.late:
            return False
    return True


class _Room:
    """How many hits, and how much of their text, may still come in."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._chars = _POOL_CHARS
        self._seen: set[int] = set()

    def take(self, choice: Choice, rows: list[Any], found: dict[int, tuple[Any, str]]) -> bool:
        """Take the rows that fit; whether there is room for more."""
        for row in rows:
            if row[0] in self._seen:
                continue
            folded = fold(searchable(*row[1:4]))
            if choice.is_in(folded):
                if len(self._seen) >= self._most:
                    return False
                self._seen.add(row[0])
                self._chars -= len(folded)
                found[row[0]] = (row, folded)
                if self._chars < 0 and len(self._seen) >= _ENOUGH:
                    return False
        return True


_ENOUGH = 50


def _candidates(index: Index, expression: str, wanted: _Wanted) -> Iterator[list[Any]]:
    """Lines to look at, newest first, some at a time."""
    before = 2**62
    if not expression:
        while rows := wanted.rows("e.seq < ?", [before], f"LIMIT {_PAGE}"):
            yield rows
            before = rows[-1][0]
        return
    cursor = index.connection.execute(
        "SELECT rowid FROM found WHERE found MATCH ? ORDER BY rowid DESC", (expression,)
    )
    while page := [seq for (seq,) in cursor.fetchmany(_PAGE)]:
        yield wanted.rows(f"e.seq IN ({', '.join('?' * len(page))})", list(page))


def _texts(found: dict[int, tuple[Any, str]]) -> Iterator[tuple[Any, str, str]]:
    for row, folded in found.values():
        yield row, searchable(*row[1:4]), folded


def _hit(points: float, row: Any, text: str, folded: str, terms: list[Term]) -> Hit:
    seq, kind, _, _, turn, at, session, title, workspace = row
    shown, marks = snippet(text, folded, terms)
    return Hit(
        session, title, workspace, seq, KINDS[kind], turn, at / 1000, shown, marks, round(points, 4)
    )
