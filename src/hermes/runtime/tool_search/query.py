"""Weighted search terms of a query and of a tool's document."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.runtime.tool_search.lexicon import Lexicon, shared, stopwords
from hermes.runtime.tool_search.tokens import bigrams, fold, stem, tokens, unspaced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_LONGEST_QUERY = 600
_LONGEST_FIELD = 1_500
_LONGEST_PHRASE = 4
_IN_PHRASE = 0.35
_QUOTED = 0.4
_CONCEPT_IN_NEED = 1.1
_AGAIN = 0.5
_CORRECTED_WORDS = 4
_LAST_RESORT = "#web search"
_LAST_RESORT_WEIGHT = 0.2

# What the form of a piece of text says about the need; the piece itself is then left out.
# `{0}` is the first group; the result is looked up in the lexicon.
_CUES = (
    (re.compile(r"https?://(?:localhost|127\.|\[::1\])\S*", re.I), ("http", "port")),
    (re.compile(r"(?:https?|ftp)://\S+|\bwww\.\S+", re.I), ("url", "web page")),
    (re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+"), ("email",)),
    (re.compile(r"(?:[\d*/,-]+ ){4}[\d*/,-]+(?=\s|$)"), ("schedule", "cron")),
    (re.compile(r"(?<![\w.])\*{1,2}[\w/*]*(\.\w{1,5})\b"), ("glob", "{0}")),
    (re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}\b"), ("ip address",)),
    (
        re.compile(r"(?<![\w.])[\w@~/\\:-]*[\w-](?:\.tar)?(\.[a-z][a-z0-9]{0,9})\b(?!\()", re.I),
        ("{0}",),
    ),
    (re.compile(r"(?<!\w)(?:~|\.{1,2})?(?:/[\w.-]+){2,}/?|\b[A-Z]:\\\S*"), ("path",)),
    (re.compile(r"\d\s*[+*/^×÷]\s*\d|\d\s*%|√"), ("calculate",)),
    (re.compile(r"\b\d{1,2}:\d{2}\b|\b\d{1,2}\s?[ap]m\b", re.I), ("clock time",)),
)
_QUOTES = re.compile(r"\"[^\"\n]{2,}\"|“[^”\n]{2,}”|«[^»\n]{2,}»|„[^“”\n]{2,}[“”]|「[^」\n]{2,}」")
_CODE = re.compile(r"`[^`\n]{2,}`")


def need_terms(query: str, *, knows: Callable[[str], bool]) -> dict[str, float]:
    """Weighted terms of a need; `knows` says whether a word occurs in any document."""
    lexicon = shared()
    text, cues = _cues(query[:_LONGEST_QUERY])
    text, quoted = _quoted(text)
    direct = _Terms()
    for cue in cues:
        direct.concepts(lexicon.exact(cue), 1.0)
    _read(tokens(text), lexicon, direct, 1.0, knows)
    for piece in quoted:
        _read(tokens(piece), lexicon, direct, _QUOTED, knows)
    terms = _with_related(direct.weights, lexicon)
    # Whatever else was understood, the world outside may know.
    terms.setdefault(_LAST_RESORT, _LAST_RESORT_WEIGHT)
    return terms


def document_terms(fields: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Weighted terms of a document, given the text and weight of each of its fields."""
    lexicon = shared()
    terms: dict[str, float] = {}
    for text, weight in fields:
        found = _Terms()
        _read(tokens(text[:_LONGEST_FIELD]), lexicon, found, 1.0, None)
        for term, strength in found.weights.items():
            terms[term] = terms.get(term, 0.0) + weight * strength
    return terms


class _Terms:
    """Weights by term; what is said twice counts a little more than once."""

    __slots__ = ("weights",)

    def __init__(self) -> None:
        self.weights: dict[str, float] = {}

    def add(self, term: str, weight: float) -> None:
        old = self.weights.get(term, 0.0)
        self.weights[term] = max(old, weight) + _AGAIN * min(old, weight)

    def concepts(self, found: tuple[tuple[str, float], ...], weight: float) -> None:
        # A word of many meanings says less about each.
        weight /= max(1, len(found)) ** 0.5
        for concept, strength in found:
            self.add("#" + concept, weight * strength)


def _read(
    words: list[str],
    lexicon: Lexicon,
    terms: _Terms,
    weight: float,
    knows: Callable[[str], bool] | None,
) -> None:
    """Add the terms of a text; misspellings are looked for when `knows` is given."""
    in_phrase: set[int] = set()
    for start, end in _phrases(words, lexicon):
        terms.concepts(lexicon.exact(" ".join(words[start:end])), weight * 1.2)
        in_phrase.update(range(start, end))
    empty = stopwords()
    if all(word in empty for word in words):
        empty = frozenset()
    corrected = 0
    for position, word in enumerate(words):
        own = weight * _IN_PHRASE if position in in_phrase else weight
        if unspaced(word):
            _read_unspaced(word, lexicon, terms, own)
            continue
        if word in empty:
            continue
        stemmed = stem(word)
        found = lexicon.concepts(word)
        # A word of many meanings is a weak witness as itself, too.
        terms.add(stemmed, own / max(1, len(found)) ** 0.5)
        unknown = not found and len(word) >= 4 and knows is not None and not knows(stemmed)
        if unknown and corrected < _CORRECTED_WORDS and not word.isdigit():
            corrected += 1
            found = lexicon.misspelled(word)
        terms.concepts(found, own)


def _read_unspaced(run: str, lexicon: Lexicon, terms: _Terms, weight: float) -> None:
    for word in lexicon.words_in(run):
        # A single character is often a part of a longer word that the lexicon lacks.
        terms.concepts(lexicon.exact(word), weight if len(word) > 1 else weight * 0.6)
    for pair in bigrams(run):
        terms.add(pair, weight * 0.3)


def _phrases(words: list[str], lexicon: Lexicon) -> Iterator[tuple[int, int]]:
    """Where the phrases of the lexicon begin and end, longest first from the left."""
    start = 0
    while start < len(words) - 1:
        longest = _LONGEST_PHRASE if lexicon.opens_phrase(words[start]) else 1
        for length in range(min(longest, len(words) - start), 1, -1):
            if lexicon.exact(" ".join(words[start : start + length])):
                yield start, start + length
                start += length - 1
                break
        start += 1


def _cues(text: str) -> tuple[str, list[str]]:
    """The text without the pieces that speak by their form, and what they say."""
    said: list[str] = []
    for pattern, cues in _CUES:
        for match in pattern.finditer(text):
            groups = match.groups() or ("",)
            said += [fold(cue.format(*groups)) for cue in cues]
        text = pattern.sub(" ", text)
    if _CODE.search(text):
        said.append("command")
    return text, said


def _quoted(text: str) -> tuple[str, list[str]]:
    """The text without its quotations, and those: they are what to use, less what to do."""
    pieces = [match.group() for pattern in (_QUOTES, _CODE) for match in pattern.finditer(text)]
    for piece in pieces:
        text = text.replace(piece, " ")
    return text, pieces


def _with_related(direct: dict[str, float], lexicon: Lexicon) -> dict[str, float]:
    terms = {
        term: weight * _CONCEPT_IN_NEED if term[0] == "#" else weight
        for term, weight in direct.items()
    }
    for term, weight in direct.items():
        if term[0] == "#":
            for concept, share in lexicon.related(term[1:]):
                implied = weight * share * _CONCEPT_IN_NEED
                if implied > terms.get("#" + concept, 0.0):
                    terms["#" + concept] = implied
    return terms
