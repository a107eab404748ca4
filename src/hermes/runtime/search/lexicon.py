"""Which concepts a word stands for.

`lexicon.tsv` has one concept per line: its words, comma-separated, of any language, the first
being its name; after a tab the related concepts, each with `:weight` where it is not the usual
one. A word written `~word` only hints at the concept. The file is kept in folded form, so that
reading it is splitting it.
"""

from __future__ import annotations

import re
from functools import cache

from hermes.runtime.search.spelling import similar
from hermes.runtime.search.text import stem

_RELATED = 0.4
_WEAK = 0.45
_INFLECTED = 0.85
_COMPOUND = 0.75
_MISSPELLED = 0.6
_LONGEST_UNSPACED = 8

_Concepts = tuple[tuple[str, float], ...]

# Endings of inflection in the languages of the lexicon, folded.
_ENDINGS = frozenset(
    (
        " a e i o u y s n r t d m z l an en in on un er or ar ir re es as os is us et em am im at it"
        " est st te ten tet end ene ende ern ung ungen ing ings ed ers ier iert ieren iere iers"
        " ez ent ons ait aient ais ant ants ante antes antis ement ee ees ais ai era erai erez"
        " ado ada ados adas ido ida idos idas ando endo iendo ndo ara are ere ire ate ete ite"
        " ar er ir emos amos imos aba ia ian aron aste ao oes cao coes cion ciones zione zioni sion"
        " mente ment ments ation ations ion ions le la lo li los las les me te se mi ti ci lhe nos"
        " aj ac ic yc uj uje owac owa ow ami ach om ego emu ej ie sz cie my ja je ju al ala alo aly"
        " il ila de da den dan ler lar lari leri in un nin nun dir yor sin im um mi mu i si su yi"
        " а я о е и ы у ю ь й ой ый ий ая яя ое ее ые ие ого его ому ему ом ем ым им ых их ую юю"
        " ей ов ев ам ям ами ями ах ях ть ти тись ться ет ит ат ят ют ут ешь ишь ете ите ай яй айте"
        " ал ала ало али ял яла или ил ила ило ул ула ули ыл ать ять ить еть уть ыва ывать ивать"
        " ия ии ию ией ка ки ку кой ке ок ть ся сь ние ния нию ние ании ание ания ение ения і ї ії"
        " ов іс ити ати уй юй уйте ovat ova ni ou u ech mi ta tas tan ni"
    ).split(" ")
)


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
        self._text = text.replace("\n", ",").replace("\t", ",").replace(",~", ",")
        self._openings = frozenset(re.findall(r"(?<=,)[^, ]+(?= )", self._text))
        self._known: dict[str, _Concepts] = {}

    def exact(self, word: str) -> _Concepts:
        """Concepts that list exactly this word or phrase, each with its strength."""
        return self._words.get(word, ())

    def opens_phrase(self, word: str) -> bool:
        """Whether a phrase of the lexicon begins with this word."""
        return word in self._openings

    def concepts(self, word: str) -> _Concepts:
        """Concepts of a word as it is, inflected, or put together from two known ones."""
        known = self._known.get(word)
        if known is None:
            known = self.exact(word) or self._inflected(word) or self._compound(word)
            if len(self._known) > 20_000:
                self._known = {}
            self._known[word] = known
        return known

    def misspelled(self, word: str) -> _Concepts:
        """Concepts of the words that this one may have been meant to be."""
        best: dict[str, float] = {}
        for candidate, likeness in similar(word, self._text):
            for concept, weight in self.exact(candidate):
                best[concept] = max(best.get(concept, 0.0), weight * likeness * _MISSPELLED)
        return tuple(best.items())

    def related(self, concept: str) -> list[tuple[str, float]]:
        """What a need for this concept may also be about, with lower weights."""
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
        if not found and len(word) >= 4:
            best = 0
            for candidate, common in self._same_root(word):
                if common > best:
                    best, found = common, self.exact(candidate)
                elif common == best:
                    found += tuple(p for p in self.exact(candidate) if p not in found)
        return tuple((concept, weight * _INFLECTED) for concept, weight in found)

    def _same_root(self, word: str) -> list[tuple[str, int]]:
        """Listed words that differ from this one in their endings only."""
        root = 4 if word[0] < "\u0590" else 3
        opening = "," + word[:root]
        roots: list[tuple[str, int]] = []
        position = self._text.find(opening)
        while position >= 0:
            end = self._text.find(",", position + 1)
            candidate = self._text[position + 1 : end if end >= 0 else None]
            common = _common(word, candidate)
            if _ending(word, common) and _ending(candidate, common) and " " not in candidate:
                roots.append((candidate, common))
            elif common == len(candidate) >= 5 and len(word) - common <= 6:
                # Endings pile up in Turkish, Finnish or Hungarian: a whole word, then anything.
                roots.append((candidate, common))
            position = self._text.find(opening, end) if end >= 0 else -1
        return roots

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


def _data(name: str) -> str:
    with open(f"{__file__.rpartition('lexicon')[0]}{name}", encoding="utf-8") as file:
        return file.read()


def _enter(
    words: dict[str, _Concepts], listed: list[str], meaning: tuple[str, float]
) -> None:
    fresh = dict.fromkeys(listed, (meaning,))
    for word in words.keys() & fresh.keys():
        fresh[word] = words[word] + fresh[word]
    words.update(fresh)


def _weighted(other: str) -> tuple[str, float]:
    concept, _, weight = other.partition(":")
    return concept, float(weight) if weight else _RELATED


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
        return common >= 4 and rest in _ENDINGS
    return common >= 3 and len(rest) <= 3
