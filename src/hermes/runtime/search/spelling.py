"""Nearest words by shared trigrams, confirmed by edit distance.

A vocabulary is one string with a comma on either side of every word: finding a trigram in it
is a scan at the speed of C, and there is no index to build or to keep.
"""

from __future__ import annotations

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
