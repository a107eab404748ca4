"""Weighted search terms of a query and of a tool's document."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.runtime.tool_search.lexicon import (
    Lexicon,
    bigrams,
    fold,
    shared,
    stem,
    stopwords,
    tokens,
    unspaced,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    _Concepts = tuple[tuple[str, float], ...]

_LONGEST_QUERY = 600
_LONGEST_PHRASE = 4
_PHRASE = 1.2
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


def document_terms(fields: Iterable[tuple[Sequence[str], float]]) -> dict[str, float]:
    """Weighted terms of a document, given the tokens and the weight of each of its fields."""
    terms: dict[str, float] = {}
    for words, weight in fields:
        for term, strength in _field_terms(words).items():
            terms[term] = terms.get(term, 0.0) + weight * strength
    return terms


def document_words(fields: Sequence[Sequence[str]]) -> set[str]:
    """The words and phrases of a document that have terms; see `word_terms`."""
    lexicon, empty = shared(), stopwords()
    alone: set[str] = set().union(*fields)
    found = alone - empty
    if len(found) < len(alone):
        # A text of stop words alone is read as it is.
        for words in fields:
            if empty.issuperset(words):
                found.update(words)
    if not lexicon.openings.keys().isdisjoint(alone):
        for words in fields:
            found.update([" ".join(words[a:b]) for a, b in _phrases(words, lexicon)])
    return found


def word_terms(word: str) -> tuple[tuple[str, float], ...]:
    """Terms of a word or phrase of a document, each with its strength."""
    terms = _known_words.get(word)
    if terms is None:
        if len(_known_words) > _MOST_KNOWN:
            _known_words.clear()
        lexicon = shared()
        if word.isdigit() and not lexicon.exact(word):
            terms = ((word, 1.0),)
        else:
            terms = tuple(_word_terms(word, lexicon))
        _known_words[word] = terms
    return terms


_MOST_KNOWN = 50_000
_known_words: dict[str, tuple[tuple[str, float], ...]] = {}


def _word_terms(word: str, lexicon: Lexicon) -> Iterator[tuple[str, float]]:
    if " " in word:
        yield from _concept_terms(lexicon.exact(word), _PHRASE)
    elif unspaced(word):
        yield from _unspaced_terms(word, lexicon)
    else:
        concepts = lexicon.concepts(word)
        # A word of many meanings is weak evidence as itself, too.
        yield stem(word), 1 / max(1, len(concepts)) ** 0.5
        yield from _concept_terms(concepts, 1.0)


def _concept_terms(concepts: _Concepts, weight: float) -> Iterator[tuple[str, float]]:
    # A word of many meanings says less about each.
    weight /= max(1, len(concepts)) ** 0.5
    for concept, strength in concepts:
        yield "#" + concept, weight * strength


def _unspaced_terms(run: str, lexicon: Lexicon) -> Iterator[tuple[str, float]]:
    for word in lexicon.words_in(run):
        # A single character is often a part of a longer word that the lexicon lacks.
        yield from _concept_terms(lexicon.exact(word), 1.0 if len(word) > 1 else 0.6)
    for pair in bigrams(run):
        yield pair, 0.3


def _field_terms(words: Sequence[str]) -> dict[str, float]:
    """Weighted terms of one text; a term that comes again counts a little more than once."""
    lexicon, empty = shared(), stopwords()
    weights: dict[str, float] = {}
    pieces: list[tuple[str, float]] = []
    in_phrase: set[int] = set()
    for start, end in _phrases(words, lexicon):
        pieces.append((" ".join(words[start:end]), 1.0))
        in_phrase.update(range(start, end))
    some = empty if not empty.issuperset(words) else frozenset()
    pieces += [
        (word, _IN_PHRASE if position in in_phrase else 1.0)
        for position, word in enumerate(words)
        if word not in some
    ]
    for word, weight in pieces:
        for term, strength in _known_words.get(word) or word_terms(word):
            more = strength * weight
            old = weights.get(term)
            if old is None:
                weights[term] = more
            else:
                weights[term] = old + _AGAIN * more if old > more else more + _AGAIN * old
    return weights


class _Terms:
    """Weights by term; a repeated term counts a little more than once."""

    __slots__ = ("weights",)

    def __init__(self) -> None:
        self.weights: dict[str, float] = {}

    def add(self, term: str, weight: float) -> None:
        old = self.weights.get(term, 0.0)
        self.weights[term] = max(old, weight) + _AGAIN * min(old, weight)

    def concepts(self, found: _Concepts, weight: float) -> None:
        for term, strength in _concept_terms(found, weight):
            self.add(term, strength)


def _read(
    words: list[str],
    lexicon: Lexicon,
    terms: _Terms,
    weight: float,
    knows: Callable[[str], bool],
) -> None:
    """Add the terms of a text; the concepts of unknown words are looked up by spelling."""
    in_phrase: set[int] = set()
    for start, end in _phrases(words, lexicon):
        terms.concepts(lexicon.exact(" ".join(words[start:end])), weight * _PHRASE)
        in_phrase.update(range(start, end))
    empty = stopwords()
    if empty.issuperset(words):
        empty = frozenset()
    corrected = 0
    for position, word in enumerate(words):
        own = weight * _IN_PHRASE if position in in_phrase else weight
        if unspaced(word):
            for term, strength in _unspaced_terms(word, lexicon):
                terms.add(term, own * strength)
            continue
        if word in empty:
            continue
        stemmed = stem(word)
        found = lexicon.concepts(word)
        # A word of many meanings is weak evidence as itself, too.
        terms.add(stemmed, own / max(1, len(found)) ** 0.5)
        unknown = not found and len(word) >= 4 and not knows(stemmed)
        if unknown and corrected < _CORRECTED_WORDS and not word.isdigit():
            corrected += 1
            found = lexicon.misspelled(word)
        terms.concepts(found, own)


def _phrases(words: Sequence[str], lexicon: Lexicon) -> Iterator[tuple[int, int]]:
    """Where the phrases of the lexicon begin and end, longest first from the left."""
    openings, last = lexicon.openings, len(words) - 1
    start = 0
    while start < last:
        seconds = openings.get(words[start])
        if seconds is not None and words[start + 1] in seconds:
            for end in range(min(start + _LONGEST_PHRASE, last + 1), start + 1, -1):
                if lexicon.exact(" ".join(words[start:end])):
                    yield start, end
                    start = end - 1
                    break
        start += 1


def _cues(text: str) -> tuple[str, list[str]]:
    """The text without file names, addresses and times, and the concepts of these."""
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
    """The text without its quotations, and the quotations, which weigh less."""
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
