"""From terms to what the index is asked: first whole words, then all words that have the piece.

What the index names is only a candidate: a text is looked at before it counts as a hit. So what
is asked here may name too many messages, and never one too few.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.stores.sessions.folding import BLOB, LONGEST, grams, runs, symbol_token

if TYPE_CHECKING:
    from collections.abc import Iterable
    from sqlite3 import Connection

    from hermes.stores.sessions.folding import Run
    from hermes.stores.sessions.query import Choice, Term

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
    """What a piece is kept as when it stands alone."""
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
