"""Words of a search: folding, splitting, stemming, and the concepts of a word."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


_MARKS = re.compile("[\u0300-\u036f\u0610-\u061a\u064b-\u065f\u0670\u0640\u093c]+")
_LETTERS = str.maketrans(
    {"ı": "i", "ø": "o", "ł": "l", "đ": "d", "æ": "ae", "œ": "oe", "ð": "d", "þ": "th"}
    | {"ى": "ي", "ة": "ه", "ک": "ك", "ی": "ي", "’": "'", "ʼ": "'", "`": "'"}
)
# Scripts written without spaces between words; Hangul is here because particles hang on its words.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3"
# Vowel signs of Indic scripts are no letters to `\w`, but they are part of the word.
_TOKEN = re.compile(rf"[{_UNSPACED}]+|(?:(?![{_UNSPACED}])[^\W_]|[\u0900-\u0dff])+")
_DOCUMENT, _FIELD = "\x00", "\x01"
_NO_SEPARATORS = {0: " ", 1: " "}
_TOKEN_OR_SEPARATOR = re.compile(f"[{_DOCUMENT}{_FIELD}]|{_TOKEN.pattern}")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_INNER_APOSTROPHE = re.compile(r"(?<=[\u0400-\u04ff])'(?=[\u0400-\u04ff])")
_DIGIT_EDGE = re.compile(r"(?<=[a-z]{3})(?=\d)")


def fold(text: str) -> str:
    """The text in lower case, full-width forms narrowed and accents taken off."""
    if text.isascii():
        return text.lower()
    loose = unicodedata.normalize("NFKD", text.casefold())
    return unicodedata.normalize("NFKC", _MARKS.sub("", loose)).translate(_LETTERS)


def tokens(text: str) -> list[str]:
    """Folded tokens in order; identifiers are split, unspaced scripts stay as whole runs."""
    folded = fold(_CAMEL.sub(" ", text))
    if not folded.isascii():
        folded = _INNER_APOSTROPHE.sub("", folded)
    return _TOKEN.findall(_DIGIT_EDGE.sub(" ", folded))


def document_tokens(documents: Iterable[Sequence[str]]) -> Iterator[list[list[str]]]:
    """The tokens of each field of each document, found in one pass over all texts."""
    texts = []
    for fields in documents:
        text = _FIELD.join(fields)
        if _DOCUMENT in text or text.count(_FIELD) >= len(fields):
            text = _FIELD.join([part.translate(_NO_SEPARATORS) for part in fields])
        texts.append(text)
    folded = fold(_CAMEL.sub(" ", _DOCUMENT.join(texts)))
    if not folded.isascii():
        folded = _INNER_APOSTROPHE.sub("", folded)
    words: list[str] = []
    found = [words]
    for token in _TOKEN_OR_SEPARATOR.findall(_DIGIT_EDGE.sub(" ", folded)):
        if token == _FIELD:
            words = []
            found.append(words)
        elif token == _DOCUMENT:
            yield found
            words = []
            found = [words]
        else:
            words.append(token)
    yield found


def unspaced(token: str) -> bool:
    """Whether the token is a run of a script without spaces, so a sentence and not a word."""
    first = token[0]
    return (
        "\u3005" <= first <= "\u9fff"
        or "\uac00" <= first <= "\ud7a3"
        or "\u0e00" <= first <= "\u0eff"
        or "\u1000" <= first <= "\u109f"
        or "\u1780" <= first <= "\u17ff"
    )


def bigrams(run: str) -> list[str]:
    """Overlapping pairs of characters of an unspaced run."""
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


def stem(word: str) -> str:
    """The English stem of a folded word, near enough that forms of one word meet."""
    if len(word) < 4 or not word.isascii():
        return word
    word = _singular(word)
    for suffix in ("ingly", "edly", "ing", "ed", "er", "ly"):
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            return _tidy(word[: -len(suffix)])
    if word.endswith("ation") and len(word) > 7:
        return word[:-5]
    if word.endswith("ion") and len(word) > 6:
        return word[:-3]
    return word[:-1] if word.endswith("e") and len(word) > 4 else word


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _tidy(base: str) -> str:
    """Normalise a stem after its ending was cut: `stopp` to `stop`, `compile` to `compil`."""
    if len(base) > 3 and base[-1] == base[-2] and base[-1] not in "lsz":
        return base[:-1]
    return base[:-1] if base.endswith("e") and len(base) > 4 else base


_HITS_PER_TRIGRAM = 300
_VERIFIED = 12


def joined(words: list[str]) -> str:
    """A vocabulary that `similar` can look into."""
    return f",{','.join(words)},"


def similar(word: str, vocabulary: str, *, limit: int = 3) -> list[tuple[str, float]]:
    """Words of the vocabulary that `word` may be a misspelling of, each with a likeness to 1."""
    candidates = by_trigrams(word, vocabulary)
    if not candidates:
        return []
    # Two edits in a short word make another word.
    allowed = 1 if len(word) < 8 else 2
    found: list[tuple[int, float, str]] = []
    for candidate, share in candidates[:_VERIFIED]:
        distance = edits(word, candidate, allowed)
        if distance <= allowed:
            found.append((distance, -share, candidate))
    found.sort()
    best = found[0][0] if found else 0
    return [(name, 1 - far / len(word)) for far, _, name in found[:limit] if far == best]


def by_trigrams(word: str, vocabulary: str) -> list[tuple[str, float]]:
    """Words that share trigrams with `word`, with the Dice coefficient, best first."""
    padded = f",{word},"
    grams = {padded[i : i + 3] for i in range(len(padded) - 2)}
    shared: dict[int, int] = {}
    for gram in grams:
        _count(gram, vocabulary, shared)
    least = max(1, len(grams) // 3)
    scored: list[tuple[str, float]] = []
    for start, count in shared.items():
        if count >= least:
            candidate = vocabulary[start : vocabulary.index(",", start)]
            scored.append((candidate, 2 * count / (len(grams) + len(candidate))))
    scored.sort(key=lambda pair: (-pair[1], pair[0]))
    return scored


def _count(gram: str, vocabulary: str, shared: dict[int, int]) -> None:
    position = vocabulary.find(gram)
    previous = -1
    for _ in range(_HITS_PER_TRIGRAM):
        if position < 0:
            return
        start = position + 1 if gram[0] == "," else vocabulary.rfind(",", 0, position + 1) + 1
        if start != previous:
            shared[start] = shared.get(start, 0) + 1
            previous = start
        position = vocabulary.find(gram, position + 1)


def edits(left: str, right: str, limit: int) -> int:
    """Insertions, deletions, substitutions and swaps of neighbours between two words.

    Gives up with `limit + 1` as soon as there are more than that.
    """
    if abs(len(left) - len(right)) > limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        before, previous, row = row, before, [i]
        for j, b in enumerate(right, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, previous[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
    return min(row[-1], limit + 1)


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
        texts: list[str] = []
        position = 0
        while position < len(run):
            for length in range(min(_LONGEST_UNSPACED, len(run) - position), 0, -1):
                piece = run[position : position + length]
                if piece in self._words:
                    texts.append(piece)
                    position += length
                    break
            else:
                position += 1
        return texts

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
