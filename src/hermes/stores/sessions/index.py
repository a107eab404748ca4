"""Full-text index: a SQLite file rebuilt from the journal when damaged; case and accent folding."""

from __future__ import annotations

import contextlib
import os
import re
import unicodedata
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hermes.core.log import Log
from hermes.stores.sessions.records import LINES, SYSTEM, TEXT, TOOL, SessionsError, searchable
from hermes.stores.sessions.session_db import WORDING
from hermes.stores.sqlite import connect, prepare, transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from sqlite3 import Connection, Error
    from typing import Any

    from hermes.stores.sessions.session_db import Database


LONGEST = 40
BLOB = "\ue0ff"

# Thai, Lao, Tibetan, Burmese, Khmer; radicals, kana, bopomofo, ideographs.
_UNSPACED = (
    "\u0e00-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u303b"
    "\u3040-\u30ff\u3100-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
# Vowel signs and points that are no letters to Python, and yet parts of words.
_SIGNS = (
    "\u0591-\u05c7\u0610-\u061a\u064b-\u0670\u06d6-\u06ed\u0730-\u074a\u07a6-\u07b0\u0900-\u0dff"
)

_ASCII = re.compile(r"(\w+)|([^\w\s\x00-\x1f\x7f])", re.ASCII)
_ANY = re.compile(rf"((?:[^\W{_UNSPACED}]|[{_SIGNS}])+)|([^\w\s\x00-\x1f\x7f{_UNSPACED}])|([{_UNSPACED}]+)")  # fmt: skip  # noqa: E501


class _Table(dict[int, str]):
    """Translation table for folding, filled on demand."""

    def __missing__(self, code: int) -> str:
        parts = unicodedata.normalize("NFKD", chr(code)).casefold()
        kept = "".join(c for c in unicodedata.normalize("NFKD", parts) if not _accent(c))
        self[code] = found = unicodedata.normalize("NFC", kept)
        return found


_table = _Table()


def fold(text: str) -> str:
    """The text as it is compared."""
    if text.isascii():
        return text.lower()
    composed = (
        text if unicodedata.is_normalized("NFC", text) else unicodedata.normalize("NFC", text)
    )
    folded = composed.translate(_table)
    if unicodedata.is_normalized("NFC", folded):
        return folded
    return unicodedata.normalize("NFC", folded)


def fold_char(char: str) -> str:
    """The folded form of one character."""
    return _table[ord(char)]


class Run:
    """A run of characters of one kind, and whether it touches others."""

    __slots__ = ("after", "before", "kind", "text")

    def __init__(self, kind: str, text: str, before: bool, after: bool) -> None:
        self.kind = kind  # word, symbol or unspaced
        self.text = text
        self.before = before
        self.after = after


def runs(folded: str) -> list[Run]:
    """The pieces of a text that was folded, in order."""
    found = []
    for match in _ANY.finditer(folded):
        kind = ("word", "symbol", "unspaced")[(match.lastindex or 1) - 1]
        inside = match.start() > 0, match.end() < len(folded)
        found.append(Run(kind, match.group(), *inside))
    return found


def tokens(folded: str) -> tuple[set[str], set[str]]:
    """The index tokens of a text: its words, and all others."""
    words: set[str] = set()
    others: set[str] = set()
    if folded.isascii():
        for word, symbol in set(_ASCII.findall(folded)):
            if word:
                words.add(word)
            else:
                others.add(symbol_token(symbol))
    else:
        for word, symbol, unspaced in set(_ANY.findall(folded)):
            if word:
                words.add(word)
            elif symbol:
                others.add(symbol_token(symbol))
            else:
                others.update(grams(unspaced))
                others.add(unspaced[-1])
    long = [word for word in words if len(word) > LONGEST]
    if long:
        words.difference_update(long)
        others.add(BLOB)
    return words, others


def grams(run: str) -> list[str]:
    """Every two neighbours."""
    return [run[place : place + 2] for place in range(len(run) - 1)]


def symbol_token(symbol: str) -> str:
    """A sign as the index knows it, where signs of ASCII would only separate words."""
    return chr(0xE000 + ord(symbol)) if symbol.isascii() else symbol


def _accent(char: str) -> bool:
    """Marks on Latin, Greek and Cyrillic letters; in other scripts they are not decoration."""
    return (
        "\u0300" <= char <= "\u036f"
        or "\u1ab0" <= char <= "\u1aff"
        or ("\u1dc0" <= char <= "\u1dff" or "\u20d0" <= char <= "\u20ff")
    )


log = Log("hermes.sessions")

# Only which message has a word is kept, not where: a third of the text, where all would double it.
_STEPS = (
    """
CREATE VIRTUAL TABLE found USING fts5 (
    tokens, content = '', columnsize = 0, detail = none, tokenize = "ascii tokenchars '_'");
CREATE TABLE words (word TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE marks (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO marks VALUES ('upto', 0), ('messages', 0), ('postings', 0);
""",
)
_BATCH = 1000
INDEXED = (
    f"e.kind > {SYSTEM} AND e.kind <= {TOOL}"  # the same instructions in each session are noise
)


class Index:
    """The index of a journal as it is now."""

    def __init__(self, database: Database, *, wait: float = 30.0) -> None:
        self.database = database
        self.generation = database.mark("index")
        self.path = path_of(database, self.generation)
        self.connection = connect(self.path, wait=wait)
        try:
            prepare(self.connection, self.path, _STEPS, WORDING)
            self._belong()
        except BaseException:
            self.connection.close()
            raise

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A write transaction. It comes before a transaction on the journal (lock order)."""
        with transaction(self.connection):
            yield self.connection

    def mark(self, name: str) -> int:
        """A number kept under a name."""
        import sqlite3

        row = self.connection.execute("SELECT value FROM marks WHERE name = ?", (name,)).fetchone()
        if row is None:
            raise sqlite3.DatabaseError(f"the index has no mark {name}")
        return int(row[0])

    def _belong(self) -> None:
        """Refuse an index of another journal, or of an earlier state of this one.

        The journal's own mark is on the disk before the index's.
        """
        import sqlite3

        identity = self.database.mark("identity")
        if self.connection.execute("SELECT 1 FROM marks WHERE name = 'journal'").fetchone() is None:
            with self.writing() as connection:
                connection.execute("INSERT OR IGNORE INTO marks VALUES ('journal', ?)", (identity,))
        foreign, upto = self.mark("journal") != identity, self.mark("upto")
        if not self.database.damage and (foreign or upto > self.database.mark("indexed")):
            raise sqlite3.DatabaseError("the index was made from another journal")

    def catch_up(self, check: Callable[[], Any] | None = None) -> None:
        """Take in every message that is not in here yet."""
        while not self.database.in_transaction and self._take_some():
            if check is not None:
                check()

    def _take_some(self) -> bool:
        with self.database.reading() as journal:
            last = journal.execute("SELECT max(seq) FROM entries").fetchone()[0] or 0
        if last <= self.mark("upto"):
            return False
        with self.writing() as connection:
            upto = self.mark("upto")
            with self.database.reading() as journal:
                rows = journal.execute(
                    f"SELECT e.seq, e.kind, {TEXT}, e.data FROM {LINES} "
                    f"WHERE e.seq > ? AND {INDEXED} ORDER BY e.seq LIMIT ?",
                    (upto, _BATCH),
                ).fetchall()
            # Somebody else may have come further since `last` was read.
            reached = rows[-1][0] if rows else upto
            if len(rows) < _BATCH:
                reached = max(reached, last)
            postings, new = 0, set()
            for seq, kind, text, data in rows:
                words, others = tokens(fold(searchable(kind, text, data)))
                new |= words
                postings += len(words) + len(others)
                connection.execute(
                    "INSERT INTO found (rowid, tokens) VALUES (?, ?)",
                    (seq, " ".join((*words, *others))),
                )
            connection.executemany(
                "INSERT OR IGNORE INTO words VALUES (?)", [(word,) for word in sorted(new)]
            )
            self.count(reached, len(rows), postings)
            if not self.database.damage:
                # After a power failure the numbers of lost lines are used again.
                self.database.sync(indexed=reached)
        return len(rows) == _BATCH

    def remove(self, rows: list[Any]) -> None:
        """Forget messages, given as the journal had them; to be called within `writing`."""
        gone: set[str] = set()
        postings = 0
        for seq, kind, text, data in rows:
            words, others = tokens(fold(searchable(kind, text, data)))
            gone |= words
            postings += len(words) + len(others)
            self.connection.execute(
                "INSERT INTO found (found, rowid, tokens) VALUES ('delete', ?, ?)",
                (seq, " ".join((*words, *others))),
            )
        for word in gone:
            if not self.connection.execute(
                "SELECT 1 FROM found WHERE found MATCH ? LIMIT 1", (f'"{word}"',)
            ).fetchone():
                self.connection.execute("DELETE FROM words WHERE word = ?", (word,))
        self.count(self.mark("upto"), -len(rows), -postings)

    def count(self, upto: int, messages: int, postings: int) -> None:
        """Note how far the index reaches and how much it holds."""
        self.connection.execute(
            "UPDATE marks SET value = CASE name WHEN 'upto' THEN ? WHEN 'messages' THEN value + ? "
            "WHEN 'postings' THEN value + ? ELSE value END",
            (upto, messages, postings),
        )


def path_of(database: Database, generation: int) -> str:
    """Where the index of a generation is."""
    return f"{database.path}.search-{generation}"


def catch_up_if_free(database: Database) -> None:
    """Bring the index up to date unless another process does; never blocks an append."""
    import sqlite3

    try:
        with Index(database, wait=0.0) as index:
            index.catch_up()
    except (sqlite3.Error, SessionsError) as error:
        log.info("the index of the sessions is left for later: %s", error)


def at_fault(error: Error) -> bool:
    """Whether an error of SQLite's comes from an index that has to be made again."""
    elsewhere = ("locked", "busy", "full", "readonly", "unable to open", "disk I/O", "interrupted")
    return not any(reason in str(error) for reason in elsewhere)


def start_again(database: Database, generation: int) -> None:
    """Abandon the index of a generation, if it is still the current one."""
    with database.writing() as journal:
        done = journal.execute(
            "UPDATE marks SET value = value + 1 WHERE name = 'index' AND value = ?", (generation,)
        )
    if done.rowcount:
        remove_files(path_of(database, generation))


def remove_files(path: str) -> None:
    """Remove an SQLite file and its side files."""
    for name in (path, f"{path}-wal", f"{path}-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
