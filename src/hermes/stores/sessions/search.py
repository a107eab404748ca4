"""Full-text search: candidates from the index, newest first; verified, ranked, with snippets."""

from __future__ import annotations

import re
import sqlite3
import time
from typing import TYPE_CHECKING

import msgspec

from hermes.stores.sessions.index import (
    BLOB,
    INDEXED,
    LONGEST,
    Index,
    at_fault,
    fold,
    fold_char,
    grams,
    runs,
    start_again,
    symbol_token,
)
from hermes.stores.sessions.query import parse
from hermes.stores.sessions.records import (
    KINDS,
    LINES,
    MESSAGES,
    TEXT,
    TOOL,
    SessionsError,
    searchable,
)
from hermes.stores.sessions.session_db import explained

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from sqlite3 import Connection
    from typing import Any

    from hermes.stores.sessions.index import Run
    from hermes.stores.sessions.query import Choice, Term
    from hermes.stores.sessions.session_db import Database


_MOST_WORDS = 400
_MOST_PARTS = 40  # the rest of a long phrase is only looked for in the texts


class TooManyWordsError(Exception):
    """A piece is in so many words that looking at every text is the shorter way."""


def whole_words(choice: Choice) -> str:
    """Messages that have the terms as words of their own, for the index; empty: all messages."""
    return _all(_token(run) for term in choice.terms for run in runs(term.text))


def every_word(choice: Choice, connection: Connection) -> str:
    """Messages that have the terms also inside of words; raises `TooManyWordsError`."""
    return _all(
        _word(run, term, connection) if run.kind == "word" else _wider(run)
        for term in choice.terms
        for run in runs(term.text)
    )


def _all(parts: Iterable[str]) -> str:
    return " AND ".join(list(dict.fromkeys(parts))[:_MOST_PARTS])


def _word(run: Run, term: Term, connection: Connection) -> str:
    before = run.before or term.starts
    if len(run.text) > LONGEST or (before and run.after):
        return _token(run)
    if before:
        return f"({_quoted(run.text)} * OR {_quoted(BLOB)})"
    words = _having(run.text, run.after, connection)
    return "(" + " OR ".join(map(_quoted, [*words, BLOB])) + ")"


def _having(piece: str, at_end: bool, connection: Connection) -> list[str]:
    condition = "substr(word, -length(?1)) = ?1" if at_end else "instr(word, ?1)"
    rows = connection.execute(
        f"SELECT word FROM words WHERE {condition} LIMIT {_MOST_WORDS + 1}", (piece,)
    ).fetchall()
    if len(rows) > _MOST_WORDS:
        raise TooManyWordsError
    return [word for (word,) in rows]


def _token(run: Run) -> str:
    """The index token of a single piece."""
    if run.kind == "word":
        return _quoted(run.text if len(run.text) <= LONGEST else BLOB)
    if run.kind == "symbol":
        return _quoted(symbol_token(run.text))
    return _all(map(_quoted, grams(run.text) or [run.text]))


def _wider(run: Run) -> str:
    """The same, where one character of a script without spaces may have any neighbour."""
    alone = run.kind == "unspaced" and len(run.text) == 1
    return f"{_token(run)} *" if alone else _token(run)


def _quoted(token: str) -> str:
    return f'"{token}"'


_USUAL_CHARS = 400
_WORD = re.compile(r"\w")


def score(terms: Sequence[Term], kind: int, text: str, folded: str) -> float:
    """Points for whole words, for density, for short texts, for exact spelling.

    Messages of people and models count more than tool output.
    """
    length = 0.25 + 0.75 * len(folded) / _USUAL_CHARS
    points = 0.0
    for term in terms:
        places = term.places(folded, 20)
        if not places:
            continue
        often = len(places) / (len(places) + 1.2 * length)
        points += often * max(_fit(folded, place) for place in places)
    said = " ".join(term.text for term in terms)
    if len(terms) > 1 and said in folded:
        points *= 1.5
    if any(term.text in text for term in terms):
        points *= 1.05
    return points * (0.8 if kind == TOOL else 1.0)


def _fit(folded: str, place: tuple[int, int]) -> float:
    """1 for a whole word, less for its beginning, least for a piece inside of one."""
    start, end = place
    begins = start == 0 or not (_WORD.match(folded[start - 1]) and _WORD.match(folded[start]))
    ends = end == len(folded) or not (_WORD.match(folded[end]) and _WORD.match(folded[end - 1]))
    return 1.0 if begins and ends else 0.7 if begins else 0.4


_CHARS = 160
_LEAD = 50


def snippet(text: str, folded: str, terms: Sequence[Term]) -> tuple[str, list[tuple[int, int]]]:
    """Some words around the first place that was found, on one line, and where to mark them."""
    places = sorted({place for term in terms for place in term.places(folded, 20)})
    places = _unfolded(text, folded, places)
    start = max(0, places[0][0] - _LEAD) if places else 0
    end = min(len(text), start + _CHARS)
    shown = "…" if start else ""
    marks: list[tuple[int, int]] = []
    position = start
    for first, last in places:
        if first < position or last > end:
            continue
        shown += _line(text[position:first])
        begin = len(shown)
        shown += _line(text[first:last])
        marks.append((begin, len(shown)))
        position = last
    shown += _line(text[position:end]) + ("…" if end < len(text) else "")
    return shown, marks


def _line(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)


def _unfolded(text: str, folded: str, places: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Where the places of the folded text are in the text itself."""
    if len(folded) == len(text) and folded.isascii() and text.isascii():
        return places
    starts: list[int] = []
    for place, char in enumerate(text):
        starts.extend([place] * len(fold_char(char)))
    if len(starts) != len(folded):
        return []  # characters were composed on the way: nothing is marked
    ends = [*starts, len(text)]
    return [(starts[first], max(ends[last], starts[last - 1] + 1)) for first, last in places]


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
            raise explained(
                error, database.path, failed="the sessions can't be searched"
            ) from error
    # Once: an index that fails again has another reason, which is said.
    start_again(database, generation)
    try:
        return _search(database, choices, limit, wanted)
    except sqlite3.Error as error:
        failed = "the index of the sessions can't be made"
        raise explained(error, database.path, failed=failed) from error


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
