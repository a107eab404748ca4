"""Merging two rankings: ours and that of an embedding model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

Embed = Callable[[list[str]], list[list[float]]]

_RANK_OFFSET = 60
_BATCH = 256


def unit_vectors(embed: Embed, texts: list[str]) -> list[list[float]]:
    """Embeddings of length one, so that a dot product is the cosine."""
    vectors: list[list[float]] = []
    for start in range(0, len(texts), _BATCH):
        for vector in embed(texts[start : start + _BATCH]):
            length = sum(x * x for x in vector) ** 0.5 or 1.0
            vectors.append([x / length for x in vector])
    return vectors


def closest(query: list[float], vectors: Mapping[str, list[float]], *, limit: int) -> list[str]:
    """Names of the vectors nearest to the query, nearest first."""
    from heapq import nlargest

    def cosine(name: str) -> float:
        return sum(a * b for a, b in zip(query, vectors[name], strict=False))

    return nlargest(limit, vectors, key=cosine)


def fuse(*rankings: Iterable[str]) -> list[tuple[str, float]]:
    """Names by reciprocal rank over all rankings, best first."""
    scores: dict[str, float] = {}
    for ranking in rankings:
        for rank, name in enumerate(ranking, 1):
            scores[name] = scores.get(name, 0.0) + 1 / (_RANK_OFFSET + rank)
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
