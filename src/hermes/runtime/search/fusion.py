"""Merging what words say with what an embedding model says.

Scores are added, not ranks: words that fit well outvote the model, and the model decides where
words say little. Ranks would give its guesses the same say in both cases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import mul

Embed = Callable[[list[str]], list[list[float]]]

# Below this score, the best match by words is a weak one and counts for less.
_FIRM = 15.0


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
    by_words: list[tuple[str, float]], by_meaning: Iterable[tuple[str, float]]
) -> list[tuple[str, float]]:
    """One ranking of two, best first: the share of the best score by words, plus the cosine."""
    best = max(_FIRM, by_words[0][1]) if by_words else _FIRM
    scores = {name: score / best for name, score in by_words}
    for name, cosine in by_meaning:
        if cosine > 0:
            scores[name] = scores.get(name, 0.0) + cosine
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
