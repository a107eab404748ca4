"""The part of a text that shows why it was found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.stores.sessions.folding import fold_char

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.stores.sessions.query import Term

_CHARS = 160
_LEAD = 50


def snippet(text: str, folded: str, terms: Sequence[Term]) -> tuple[str, list[tuple[int, int]]]:
    """Some words around the first place that was found, on one line, and where to mark them."""
    places = sorted({place for term in terms for place in term.places(folded, 20)})
    places = _unfolded(text, folded, places)
    start = max(0, places[0][0] - _LEAD) if places else 0
    end = min(len(text), start + _CHARS)
    shown = "…" if start else ""
    marks: list[tuple[int, int]] = []
    position = start
    for first, last in places:
        if first < position or last > end:
            continue
        shown += _line(text[position:first])
        begin = len(shown)
        shown += _line(text[first:last])
        marks.append((begin, len(shown)))
        position = last
    shown += _line(text[position:end]) + ("…" if end < len(text) else "")
    return shown, marks


def _line(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)


def _unfolded(text: str, folded: str, places: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Where the places of the folded text are in the text itself."""
    if len(folded) == len(text) and folded.isascii() and text.isascii():
        return places
    starts: list[int] = []
    for place, char in enumerate(text):
        starts.extend([place] * len(fold_char(char)))
    if len(starts) != len(folded):
        return []  # characters were composed on the way: nothing is marked
    ends = [*starts, len(text)]
    return [(starts[first], max(ends[last], starts[last - 1] + 1)) for first, last in places]
