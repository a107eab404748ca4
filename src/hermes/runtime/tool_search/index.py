"""Search index: BM25 over weighted terms, fused with embedding similarity where a model is
available.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from itertools import islice
from math import log
from operator import mul
from threading import Lock

TYPE_CHECKING = False


Embed = Callable[[list[str]], list[list[float]]]

# A perfect match in meaning weighs as much as this many matches of the rarest word there can be.
_RARE_WORDS = 8.0


def unit_vectors(embed: Embed, texts: list[str]) -> list[list[float]]:
    """Embeddings of length one, so that a dot product is the cosine."""
    vectors: list[list[float]] = []
    for vector in embed(texts):
        length = sum(x * x for x in vector) ** 0.5 or 1.0
        vectors.append([x / length for x in vector])
    return vectors


def closest(
    query: list[float], vectors: Mapping[str, list[float]], *, limit: int
) -> list[tuple[str, float]]:
    """The names of the vectors nearest to the query with their cosines, nearest first."""
    from heapq import nlargest

    cosines = {name: sum(map(mul, query, vector)) for name, vector in vectors.items()}
    return [(name, cosines[name]) for name in nlargest(limit, cosines, key=cosines.__getitem__)]


def fuse(
    by_words: Iterable[tuple[str, float]], by_meaning: Iterable[tuple[str, float]], *, total: int
) -> list[tuple[str, float]]:
    """One ranking of two, best first; `total` is how many documents there are to rank."""
    # Rare words score higher among many documents; cosines do not.
    weight = _RARE_WORDS * log(2 * total + 2)
    scores = dict(by_words)
    for name, cosine in by_meaning:
        if cosine > 0:
            scores[name] = scores.get(name, 0.0) + weight * cosine
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))


_NAME = 3.0
_TAG = 2.0
_FIRST_SENTENCE = 1.2
_DESCRIPTION = 0.8
_TOOLSET = 0.6
_PARAMETER = 0.35

_SATURATION = 4.0
_LENGTH_SHARE = 0.15
_USUAL_LENGTH = 45.0

_LONGEST_FIELD = 1_500
# Terms are read rarest first. Once this many documents were read, frequent terms add no further
# candidates: they re-rank the best so far.
_DOCUMENTS_READ = 1_200
# So many candidates are ranked where even the rarest term is in more documents than are read.
_CANDIDATES = 400
_RERANKED = 200
_FUSED = 50
# How many documents a search may hand to the embedding model; the rest waits for the next one.
_EMBEDDED = 128


class Document:
    """One tool as the index sees it."""

    __slots__ = ("description", "name", "parameters", "tags", "toolset")

    def __init__(
        self,
        name: str,
        toolset: str = "",
        description: str = "",
        tags: tuple[str, ...] = (),
        parameters: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.toolset = toolset
        self.description = description
        self.tags = tuple(tags)
        self.parameters = tuple(parameters)


class Hit:
    """A tool that was found; scores compare within one search only."""

    __slots__ = ("name", "score")

    def __init__(self, name: str, score: float) -> None:
        self.name = name
        self.score = score

    def __repr__(self) -> str:
        return f"Hit({self.name!r}, {self.score:.3f})"


class SearchIndex:
    """Search index of tools. Adding or removing one does not rebuild the rest.

    Safe to use from several threads. `embed` turns texts into vectors, one each; with it,
    results merge both rankings, and its exceptions reach the caller of `search`. It may
    return an empty list when it is not ready, and an empty vector for a text that it can't read.
    """

    def __init__(self, embed: Callable[[list[str]], list[list[float]]] | None = None) -> None:
        self._embed = embed
        self._lock = Lock()
        self._pending: dict[str, Document] = {}
        self._documents: dict[str, Document] = {}
        # Tokens of each document, by field; weights of its terms, computed when it is first ranked.
        self._fields: dict[str, list[list[str]]] = {}
        self._terms: dict[str, dict[str, float]] = {}
        # Documents by word, words by term; and documents by term, joined of these when asked for.
        self._by_word: dict[str, dict[str, None]] = {}
        self._words_of: dict[str, list[str]] = {}
        self._by_term: dict[str, dict[str, None]] = {}
        self._vectors: dict[str, list[float]] = {}

    def __len__(self) -> int:
        return len(self._documents.keys() | self._pending.keys())

    def add(self, doc: Document) -> None:
        """Put a document in, replacing one of the same name; it is read at the next search."""
        with self._lock:
            self._drop(doc.name)
            self._pending[doc.name] = doc

    def remove(self, name: str) -> None:
        """Take a document out, if it is there."""
        with self._lock:
            self._drop(name)

    def search(self, query: str, *, limit: int = 5) -> list[Hit]:
        """The documents that fit the need best, best first.

        `select:a,b` gives exactly those names in that order, as many of them as exist.
        """
        prefix, _, names = query.strip().partition(":")
        if prefix.lower() == "select" and names:
            return self._selected(names)
        if limit < 1 or not query.strip():
            return []
        with self._lock:
            self._settle()
            ranked = self._rank(query, max(limit, _FUSED if self._embed else 0))
        if self._embed is not None:
            ranked = self._fused(query, ranked)
        return [Hit(name, score) for name, score in ranked[:limit]]

    def nearest(self, name: str, limit: int = 3) -> list[str]:
        """Names that look like this one, most alike first."""
        from hermes.runtime.tool_search.lexicon import by_trigrams, joined

        with self._lock:
            names = {n.lower(): n for n in (*self._documents, *self._pending)}
        close = by_trigrams(name.strip().lower(), joined(list(names)))
        return [names[found] for found, _ in close[: max(limit, 0)]]

    def _selected(self, names: str) -> list[Hit]:
        wanted = dict.fromkeys(name.strip() for name in names.split(","))
        with self._lock:
            return [Hit(n, 1.0) for n in wanted if n in self._documents or n in self._pending]

    def _drop(self, name: str) -> None:
        self._pending.pop(name, None)
        if self._documents.pop(name, None) is None:
            return
        from hermes.runtime.tool_search.query import document_words

        self._terms.pop(name, None)
        for word in document_words(self._fields.pop(name)):
            del self._by_word[word][name]
        self._by_term = {}
        self._vectors.pop(name, None)

    def _settle(self) -> None:
        """Index the words of the documents that were added since the last search."""
        if not self._pending:
            return
        from hermes.runtime.tool_search.lexicon import document_tokens
        from hermes.runtime.tool_search.query import document_words, word_terms

        texts = [[text for text, _ in _fields(doc)] for doc in self._pending.values()]
        for name, fields in zip(self._pending, document_tokens(texts), strict=True):
            self._fields[name] = fields
            for word in document_words(fields):
                documents = self._by_word.get(word)
                if documents is None:
                    documents = self._by_word[word] = {}
                    for term, _ in word_terms(word):
                        self._words_of.setdefault(term, []).append(word)
                documents[name] = None
        self._documents |= self._pending
        self._pending = {}
        self._by_term = {}

    def _with_term(self, term: str) -> dict[str, None]:
        """The documents that have a term."""
        documents = self._by_term.get(term)
        if documents is None:
            words = self._words_of.get(term, ())
            documents = self._by_word[words[0]] if len(words) == 1 else {}
            if len(words) > 1:
                for word in words:
                    documents |= self._by_word[word]
            self._by_term[term] = documents
        return documents

    def _worth(self, name: str) -> dict[str, float]:
        """The terms of a document, each with its BM25 weight less the rarity."""
        terms = self._terms.get(name)
        if terms is None:
            from hermes.runtime.tool_search.query import document_terms

            weights = [weight for _, weight in _fields(self._documents[name])]
            terms = document_terms(zip(self._fields[name], weights, strict=True))
            length = sum(weight for term, weight in terms.items() if term[0] != "#")
            norm = _SATURATION * (1 - _LENGTH_SHARE + _LENGTH_SHARE * length / _USUAL_LENGTH)
            for term, weight in terms.items():
                terms[term] = weight * (_SATURATION + 1) / (weight + norm)
            self._terms[name] = terms
        return terms

    def _rank(self, query: str, limit: int) -> list[tuple[str, float]]:
        from heapq import nlargest

        from hermes.runtime.tool_search.query import need_terms

        total = len(self._documents)
        terms: list[tuple[str, float, dict[str, None]]] = []
        for term, weight in need_terms(query, knows=self._words_of.__contains__).items():
            documents = self._with_term(term)
            if documents:
                count = len(documents)
                rarity = log(1 + (total - count + 0.5) / (count + 0.5))
                terms.append((term, weight * rarity, documents))
        terms.sort(key=lambda entry: len(entry[2]))
        scores: dict[str, float] = {}
        read = 0
        for position, (term, weight, documents) in enumerate(terms):
            read += len(documents)
            if read > _DOCUMENTS_READ:
                names = _common(terms, limit)
                if scores:
                    names = nlargest(max(limit, _RERANKED), scores, key=scores.__getitem__)
                scores = {name: scores.get(name, 0.0) for name in names}
                self._add(scores, names, terms[position:])
                break
            self._add(scores, documents, [(term, weight, documents)])
        found = nlargest(limit * 2, scores, key=scores.__getitem__)
        found.sort(key=lambda name: (-scores[name], name))
        return [(name, scores[name]) for name in found[:limit]]

    def _add(
        self,
        scores: dict[str, float],
        names: Iterable[str],
        terms: list[tuple[str, float, dict[str, None]]],
    ) -> None:
        """Add the weights of terms to the scores of documents."""
        known, worth = self._terms.get, self._worth
        for name in names:
            own = known(name) or worth(name)
            score = scores.get(name, 0.0)
            for term, weight, _ in terms:
                score += weight * own.get(term, 0.0)
            scores[name] = score

    def _fused(self, query: str, ranked: list[tuple[str, float]]) -> list[tuple[str, float]]:

        assert self._embed is not None
        with self._lock:
            # Those found by words first: they are what there is to choose from.
            names = dict.fromkeys([*(name for name, _ in ranked), *self._documents])
            missing = [
                self._documents[name]
                for name in names
                if name in self._documents and name not in self._vectors
            ][:_EMBEDDED]
        # The model is asked outside the lock: it may be slow, and searches need not wait for it.
        vectors = unit_vectors(self._embed, [query, *map(_text, missing)])
        if len(vectors) != len(missing) + 1:
            return ranked
        with self._lock:
            for doc, vector in zip(missing, vectors[1:], strict=True):
                if self._documents.get(doc.name) is doc:
                    self._vectors[doc.name] = vector
            similar = closest(vectors[0], self._vectors, limit=_FUSED)
            return fuse(ranked, similar, total=len(self._documents))


def _common(terms: list[tuple[str, float, dict[str, None]]], limit: int) -> list[str]:
    """Documents to rank where every term is frequent: those that have the most terms."""
    first = terms[0][2]
    common: AbstractSet[str] = first.keys()
    for _, _, documents in terms[1:]:
        if len(common) <= _CANDIDATES:
            break
        common = (common & documents.keys()) or common
    return list(islice((name for name in first if name in common), max(limit, _CANDIDATES)))


def _fields(doc: Document) -> Iterable[tuple[str, float]]:
    first, _, rest = doc.description.partition(". ")
    yield doc.name, _NAME
    yield doc.toolset, _TOOLSET
    yield first[:_LONGEST_FIELD], _FIRST_SENTENCE
    yield rest[:_LONGEST_FIELD], _DESCRIPTION
    for tag in doc.tags:
        yield tag, _TAG
    yield " . ".join(doc.parameters), _PARAMETER


def _text(doc: Document) -> str:
    return f"{doc.name}: {doc.description} {', '.join(doc.tags)}"


_WORDS = 5
_CHARACTERS = 32
_ENOUGH = 2
_LOOKED_AT = 300

_DROPPED = frozenset({"a", "an", "the", "its", "their", "this", "these", "all", "one", "current"})
# Words that a phrase may hold, but neither begin nor end with.
_JOINTS = frozenset(
    {"of", "or", "and", "to", "in", "on", "for", "with", "from", "by", "at", "into", "as", "about"}
    | {"that", "which", "is", "are", "be", "was", "when", "how", "what", "so", "such", "between"}
    | {"it", "them", "you", "can", "lets", "allows", "provides", "tool", "use", "using", "used"}
    | {"return", "returns", "given", "more", "any", "some", "not", "than", "per", "via", "through"}
    | {"before", "after", "until", "while", "under", "against", "where", "whose"}
)
# Where a sentence goes on to something else; after these two, often to more of the same.
_TURNS = frozenset({"with", "that", "which", "when", "so", "such", "by", "using"})
_PAIRING = frozenset({"and", "or"})
_EDGES = "`'\"()[]{}<>*_.,;:!?…。、，"
# A list of single words that the sentence goes on after, as in "create, list and remove jobs".
_LIST = (
    r"\b([\w-]+)(?:, [\w-]+)+,? (?:and|or) (?!(?:a|an|the|in|on|of|to|by|at|for)\b)[\w-]+(?= [\w-])"
)


def hint(description: str, name: str) -> str:
    """Purpose of a tool, as a phrase of up to five words that continues its name.

    Empty when the description adds nothing to the name.
    """
    said = {_root(part) for part in name.replace("-", "_").replace(":", "_").lower().split("_")}
    words = _phrase(_first_sentence(description), said)
    while words and (words[0] in _JOINTS or _root(words[0]) in said):
        del words[0]
    words = _short(words)
    while words and words[-1] in _JOINTS:
        del words[-1]
    return " ".join(words).rstrip(",")


def _phrase(sentence: str, said: set[str]) -> list[str]:
    """The words up to where the sentence turns, once enough of them are new."""
    words: list[str] = []
    new: set[str] = set()
    turned = explained = False
    for place, raw in enumerate(sentence.split()):
        word = raw.strip(_EDGES)
        plain = word.lower()
        if new and (explained or raw[0] == "("):
            break
        turned = turned or plain in _TURNS
        if len(new) >= _ENOUGH + (not turned) and (turned or plain in _PAIRING):
            break
        explained, turned = raw[-1] == ":", raw[-1] in ",;)"
        if not word or plain in _DROPPED:
            continue
        # Acronyms and product names keep their capitals; the word that opens the sentence does not.
        kept = plain if place == 0 and word[1:].islower() else word
        words.append(f"{kept}," if raw[-1] == "," else kept)
        if plain not in _JOINTS and _root(word) not in said:
            new.add(plain)
    return words if new else []


def _short(words: list[str]) -> list[str]:
    """As many of the words as there is room for, without a part that would break off."""
    kept = [words[0][:_CHARACTERS]] if words else []
    length = sum(map(len, kept))
    for word in words[1:_WORDS]:
        length += len(word) + 1
        if length > _CHARACTERS:
            break
        kept.append(word)
    if len(kept) < len(words) and words[len(kept)] not in _JOINTS:
        joints = [place for place, word in enumerate(kept) if word in _JOINTS]
        del kept[joints[-1] if joints else len(kept) :]
    return kept


def _first_sentence(description: str) -> str:
    import re

    text = " ".join(description[:_LOOKED_AT].split())
    for end in (". ", "。", "; "):
        text = text.partition(end)[0]
    return re.sub(_LIST, r"\1", text.replace("one or more ", ""))


def _root(word: str) -> str:
    word = word.lower().replace("-", "").rstrip(",")
    for ending in ("ing", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word
