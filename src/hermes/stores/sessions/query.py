"""Query language: `deploy error`, `"a phrase"`, `conf*`, `this OR that`, `NOT those`."""

from __future__ import annotations

import re

from hermes.stores.sessions.index import fold, runs
from hermes.stores.sessions.records import QueryError, writable

_PART = re.compile(r'"((?:[^"]|"")*)"(?=\s|$)|(\S+)')
_OPERATORS = ("AND", "OR", "NOT")
_MOST_TERMS = 64


class Term:
    """One thing to find: as a part of the text, or, with `starts`, where a word begins."""

    __slots__ = ("_pattern", "starts", "text")

    def __init__(self, text: str, *, starts: bool = False) -> None:
        self.text = text
        self.starts = starts
        pieces = r"\s+".join(re.escape(piece) for piece in text.split(" "))
        # A script that writes no spaces has its words begin anywhere.
        edge = starts and runs(text)[0].kind == "word"
        simple = not edge and " " not in text
        self._pattern = None if simple else re.compile((r"(?<!\w)" if edge else "") + pieces)

    def is_in(self, folded: str) -> bool:
        """Whether a text that was folded has it."""
        if self._pattern is None:
            return self.text in folded
        return self._pattern.search(folded) is not None

    def places(self, folded: str, most: int = 50) -> list[tuple[int, int]]:
        """Where it begins and ends."""
        found = []
        for match in (self._pattern or re.compile(re.escape(self.text))).finditer(folded):
            found.append(match.span())
            if len(found) >= most:
                break
        return found


class Choice:
    """Terms that must all be there, and terms that must not."""

    __slots__ = ("terms", "without")

    def __init__(self) -> None:
        self.terms: list[Term] = []
        self.without: list[Term] = []

    def is_in(self, folded: str) -> bool:
        """Whether a text that was folded fits."""
        return all(term.is_in(folded) for term in self.terms) and not any(
            term.is_in(folded) for term in self.without
        )


def parse(query: str) -> list[Choice]:
    """The choices of a query, any of which may fit; raises `QueryError`."""
    choices = [Choice()]
    pending = ""
    for text, quoted, place in _parts(writable(query)):
        if not quoted and text in _OPERATORS:
            if pending and not (pending == "AND" and text == "NOT"):
                raise QueryError(
                    f"{pending} is followed by {text}", hint=f"{_meaning(text)} {_LITERAL}"
                )
            if text != "NOT" and not (choices[-1].terms or choices[-1].without):
                raise QueryError(
                    f"nothing stands before {text} at character {place + 1}",
                    hint=f"{_meaning(text)} {_LITERAL}",
                )
            if text == "OR":
                _check(choices[-1])
                choices.append(Choice())
            pending = text
            continue
        term = _term(text, quoted)
        if term is not None:
            (choices[-1].without if pending == "NOT" else choices[-1].terms).append(term)
        pending = ""
    if pending:
        raise QueryError(
            f"nothing follows {pending} at the end", hint=f"{_meaning(pending)} {_LITERAL}"
        )
    _check(choices[-1])
    if sum(len(choice.terms) + len(choice.without) for choice in choices) > _MOST_TERMS:
        raise QueryError(
            f"more than {_MOST_TERMS} words to look for", hint="Use the few that matter."
        )
    return choices


_LITERAL = "To look for the word itself, write it in small letters or in quotes."


def _parts(query: str) -> list[tuple[str, bool, int]]:
    found = []
    for match in _PART.finditer(query):
        quoted = match.group(1) is not None
        text = match.group(1).replace('""', '"') if quoted else match.group(2)
        if not quoted and text.startswith('"') and text.count('"') % 2:
            raise QueryError(
                f"the quote at character {match.start() + 1} is never closed",
                hint='Write "a phrase" with two quotes; inside of it, "" is a quote itself.',
            )
        found.append((text, quoted, match.start()))
    return found


def _term(text: str, quoted: bool) -> Term | None:
    starts = not quoted and len(text) > 1 and text[-1] == "*" and text[:-1].rstrip("*") == text[:-1]
    starts = starts and "*" not in text[:-1] and (text[-2].isalnum() or text[-2] == "_")
    folded = " ".join(fold(text[:-1] if starts else text).split())
    return Term(folded, starts=starts) if folded else None


def _check(choice: Choice) -> None:
    if choice.terms:
        return
    if choice.without:
        raise QueryError(
            "the search only says what must not be there",
            hint="Add a word that must be: `deploy NOT staging`.",
        )
    raise QueryError("there is nothing to look for", hint="Write a word or a piece of one.")


def _meaning(operator: str) -> str:
    return {
        "OR": "`this OR that` finds either.",
        "AND": "`this that` finds both; AND may be left out.",
        "NOT": "`this NOT that` leaves out what has the second.",
    }[operator]
