"""Ambiguity: every place that the old text may mean, each with what tells it from the others."""

from __future__ import annotations

from hermes.core.errors import EditError
from hermes.core.replace.describing import visible
from hermes.core.replace.naming import NEW, OLD
from hermes.core.replace.refusals import numbered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.core.replace.source import Source

_MOST_LISTED = 40
_MOST_COMPARED = 2_000  # places; a text that repeats itself further tells nothing more
_FARTHEST = 40  # lines around a candidate that may tell it from the others
_MANY, _CLOSE = 100, 12  # from so many candidates on, only lines this close are looked at
_MOST_SHOWN = 60  # lines to copy
_LONGEST_BLOCK = 12


def ambiguous(source: Source, spans: Sequence[tuple[int, int]]) -> EditError:
    """The refusal to choose between several places."""
    listed, copies = candidates(source, spans)
    lead = f":\n{copies}\nOr" if copies else ", or"
    return EditError(
        f"{OLD} occurs {len(spans)} times; nothing was changed:\n{listed}",
        hint=f"Add a neighbouring line to {OLD} and {NEW} so that {OLD} names one place"
        f"{lead} pass replace_all=true to change all of them.",
    )


def candidates(source: Source, spans: Sequence[tuple[int, int]]) -> tuple[str, str]:
    """Every place with its line number and a neighbour that the others do not have.

    The second text has the lines from each place to its neighbour, to copy from.
    """
    places = [(source.line_at(a), source.line_at(max(a, b - 1))) for a, b in spans[:_MOST_COMPARED]]
    around = _Surroundings(source.contents, places)
    shown: list[str] = []
    blocks: list[str] = []
    for index, (first, last) in enumerate(places[:_MOST_LISTED]):
        text = f"  line {first + 1}: {visible(source.contents[first].strip())}"
        neighbour = around.telling(index)
        if neighbour is not None:
            where = "after" if neighbour < first else "before" if neighbour > last else "on"
            line = visible(source.contents[neighbour].strip())
            text += f"   ({where} line {neighbour + 1}: {line})"
            block = range(min(first, neighbour), max(last, neighbour) + 1)
            if len(block) <= _LONGEST_BLOCK and len(blocks) + len(block) < _MOST_SHOWN:
                blocks += [*(numbered(source.contents, line) for line in block), "--"]
        shown.append(text)
    if len(spans) > _MOST_LISTED:
        rest = ", ".join(str(first + 1) for first, _ in places[_MOST_LISTED:][:200])
        shown.append(f"  and at lines {rest}" + ", …" * (len(spans) > _MOST_LISTED + 200))
    return "\n".join(shown), "\n".join(blocks)


class _Surroundings:
    """The lines around all candidates, by where they are in relation to them."""

    def __init__(self, contents: Sequence[str], places: Sequence[tuple[int, int]]) -> None:
        self._contents = contents
        self._places = places
        self._farthest = _FARTHEST if len(places) <= _MANY else _CLOSE
        self._counts: dict[int, dict[str, int]] = {}

    def telling(self, index: int) -> int | None:
        """The closest line around a candidate that tells it from all others, if there is one."""
        for distance in range(self._farthest + 1):
            for offset in (-distance, distance):
                line = self._line(self._places[index], offset)
                if line is None or not self._contents[line].strip():
                    continue
                if self._count(offset)[self._contents[line]] == 1:
                    return line
        return None

    def _line(self, place: tuple[int, int], offset: int) -> int | None:
        line = (place[0] if offset < 0 else place[1]) + offset
        return line if 0 <= line < len(self._contents) else None

    def _count(self, offset: int) -> dict[str, int]:
        if offset not in self._counts:
            counts = self._counts[offset] = {}
            for place in self._places:
                line = self._line(place, offset)
                if line is not None:
                    text = self._contents[line]
                    counts[text] = counts.get(text, 0) + 1
        return self._counts[offset]
