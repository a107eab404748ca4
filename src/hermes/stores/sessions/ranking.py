"""How well a message answers a query."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.stores.sessions.entries import TOOL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.stores.sessions.query import Term

_USUAL_CHARS = 400
_WORD = re.compile(r"\w")


def score(terms: Sequence[Term], kind: int, text: str, folded: str) -> float:
    """Points: for whole words, for being about it, for a short text, for the very spelling.

    What people and models said counts more than what a tool printed.
    """
    length = 0.25 + 0.75 * len(folded) / _USUAL_CHARS
    points = 0.0
    for term in terms:
        places = term.places(folded, 20)
        if not places:
            continue
        often = len(places) / (len(places) + 1.2 * length)
        points += often * max(_fit(folded, place) for place in places)
    said = " ".join(term.text for term in terms)
    if len(terms) > 1 and said in folded:
        points *= 1.5
    if any(term.text in text for term in terms):
        points *= 1.05
    return points * (0.8 if kind == TOOL else 1.0)


def _fit(folded: str, place: tuple[int, int]) -> float:
    """1 for a whole word, less for its beginning, least for a piece inside of one."""
    start, end = place
    begins = start == 0 or not (_WORD.match(folded[start - 1]) and _WORD.match(folded[start]))
    ends = end == len(folded) or not (_WORD.match(folded[end]) and _WORD.match(folded[end - 1]))
    return 1.0 if begins and ends else 0.7 if begins else 0.4
