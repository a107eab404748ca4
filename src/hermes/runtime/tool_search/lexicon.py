"""Lexicon: maps words of many languages to concepts."""

from __future__ import annotations

from functools import cache

from hermes.runtime.tool_search.tokens import joined, similar, stem

_WEAK = 0.45
_INFLECTED = 0.85
_COMPOUND = 0.75
_EXTENDED = 0.75
_MISSPELLED = 0.6
_LONGEST_UNSPACED = 8

_Concepts = tuple[tuple[str, float], ...]


class Lexicon:
    """Words to concepts, as a table read from text."""

    def __init__(self, text: str) -> None:
        words: dict[str, _Concepts] = {}
        related: dict[str, list[tuple[str, float]]] = {}
        for line in text.split("\n"):
            if not line or line[0] == "#":
                continue
            listed, _, others = line.partition("\t")
            listed, _, hinting = listed.partition(",~")
            concept = listed.partition(",")[0]
            if others:
                related[concept] = [_weighted(other) for other in others.split(",")]
            _enter(words, listed.split(","), (concept, 1.0))
            if hinting:
                _enter(words, hinting.split(",~"), (concept, _WEAK))
        self._words = words
        self._related = related
        # The first words of phrases, each with the words that follow it in one.
        self.openings: dict[str, set[str]] = {}
        for phrase in words:
            if " " in phrase:
                first, second = phrase.split(" ", 2)[:2]
                self.openings.setdefault(first, set()).add(second)
        self._known: dict[str, _Concepts] = {}
        self._by_length: dict[int, str] = {}
        self._by_prefix: dict[str, list[str]] = {}

    def exact(self, word: str) -> _Concepts:
        """Concepts that list exactly this word or phrase, each with its strength."""
        return self._words.get(word, ())

    def concepts(self, word: str) -> _Concepts:
        """Concepts of a word as it is, inflected, or put together from two known ones."""
        known = self._known.get(word)
        if known is None:
            known = self.exact(word) or self._inflected(word) or self._compound(word)
            known = known or self._extended(word)
            if len(self._known) > 20_000:
                self._known = {}
            self._known[word] = known
        return known

    def misspelled(self, word: str) -> _Concepts:
        """Concepts of the words that this one may have been meant to be."""
        best: dict[str, float] = {}
        reach = range(len(word) - 2, len(word) + 3)
        vocabulary = "".join(self._of_length(length) for length in reach)
        for candidate, likeness in similar(word, vocabulary):
            for concept, weight in self.exact(candidate):
                best[concept] = max(best.get(concept, 0.0), weight * likeness * _MISSPELLED)
        return tuple(best.items())

    def _of_length(self, length: int) -> str:
        """The single words of one length, as a vocabulary to look for likeness in."""
        if not self._by_length:
            lengths: dict[int, list[str]] = {}
            for word in self._words:
                if " " not in word:
                    lengths.setdefault(len(word), []).append(word)
            self._by_length = {size: joined(words) for size, words in lengths.items()}
        return self._by_length.get(length, "")

    def related(self, concept: str) -> list[tuple[str, float]]:
        """Related concepts, each with its weight."""
        return self._related.get(concept, [])

    def words_in(self, run: str) -> list[str]:
        """Known words in a run of text without spaces, longest first from the left."""
        found: list[str] = []
        position = 0
        while position < len(run):
            for length in range(min(_LONGEST_UNSPACED, len(run) - position), 0, -1):
                piece = run[position : position + length]
                if piece in self._words:
                    found.append(piece)
                    position += length
                    break
            else:
                position += 1
        return found

    def _inflected(self, word: str) -> _Concepts:
        stemmed = stem(word)
        found: _Concepts = ()
        if stemmed != word:
            found = self.exact(stemmed) or self.exact(stemmed + "e")
        if not found:
            best = 0
            for candidate in self._alike(word):
                common = _common(word, candidate)
                if common < best or not (_ending(word, common) and _ending(candidate, common)):
                    continue
                found = self.exact(candidate) + (found if common == best else ())
                best = common
        return tuple((concept, weight * _INFLECTED) for concept, weight in dict(found).items())

    def _extended(self, word: str) -> _Concepts:
        """Concepts of the longest listed word that this one begins with.

        Endings pile up in Turkish, Finnish or Hungarian: a whole word, then almost anything.
        """
        whole = [listed for listed in self._alike(word) if word.startswith(listed)]
        longest = max(whole, key=len, default="")
        if len(longest) < 5 or len(word) - len(longest) > 6:
            return ()
        return tuple((concept, weight * _EXTENDED) for concept, weight in self.exact(longest))

    def _alike(self, word: str) -> list[str]:
        """Listed words that begin like this one; phrases are left out."""
        root = 4 if word[0] < "\u0590" else 3
        if len(word) < root:
            return []
        if not self._by_prefix:
            for listed in self._words:
                if " " not in listed:
                    size = 4 if listed[0] < "\u0590" else 3
                    self._by_prefix.setdefault(listed[:size], []).append(listed)
        return self._by_prefix.get(word[:root], [])

    def _compound(self, word: str) -> _Concepts:
        """Concepts of both halves of a compound such as German and Dutch make."""
        for cut in range(len(word) - 4, 3, -1):
            head, tail = word[:cut], word[cut:]
            first = self.exact(head) or self._without_joint(head)
            if first:
                last = self.exact(tail) or self._inflected(tail)
                if last:
                    return tuple((concept, weight * _COMPOUND) for concept, weight in first + last)
        return ()

    def _without_joint(self, head: str) -> _Concepts:
        for joint in ("en", "es", "s", "n", "e"):
            if head.endswith(joint) and len(head) - len(joint) >= 4:
                found = self.exact(head[: -len(joint)])
                if found:
                    return found
        return self.exact(head + "e")


@cache
def shared() -> Lexicon:
    """The lexicon that comes with this package, read at the first call."""
    return Lexicon(_data("lexicon.tsv"))


@cache
def stopwords() -> frozenset[str]:
    """Words that say nothing about a need, in the languages of the lexicon."""
    return frozenset(_data("stopwords.txt").split())


@cache
def _endings() -> frozenset[str]:
    """Endings of inflection in the languages of the lexicon, folded."""
    return frozenset(_data("endings.txt").split())


def _data(name: str) -> str:
    with open(f"{__file__.rpartition('lexicon')[0]}{name}", encoding="utf-8") as file:
        return file.read()


def _enter(words: dict[str, _Concepts], listed: list[str], meaning: tuple[str, float]) -> None:
    alone = (meaning,)
    for word in listed:
        words[word] = words[word] + alone if word in words else alone


def _weighted(other: str) -> tuple[str, float]:
    concept, _, weight = other.partition(":")
    return concept, float(weight)


def _common(left: str, right: str) -> int:
    count = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            break
        count += 1
    return count


def _ending(word: str, common: int) -> bool:
    rest = word[common:]
    if word[0] < "\u0590":
        return common >= 4 and (not rest or rest in _endings())
    return common >= 3 and len(rest) <= 3
