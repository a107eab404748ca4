"""Merging what words say with what an embedding model says.

Scores are added, not ranks: words that fit well outvote the model, and the model decides where
words say little. Ranks would give its guesses the same say in both cases, and did far worse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import log
from operator import mul

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
