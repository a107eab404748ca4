"""Refusals: what was not done, and all that is needed to do it at the next try."""

from __future__ import annotations

from hermes.core.errors import EditError
from hermes.core.replace.nearest import compare, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.core.replace.source import Source

_MOST_CANDIDATES = 40
_FARTHEST = 12  # lines around a candidate that may tell it from the others
_MOST_LINES = 30  # of a region that are shown
_LONGEST = 500  # letters of a line that are shown
_MOST_DIFFERENCES = 6


class AlreadyAppliedError(EditError):
    """The new text is in place already; `line` is where, counted from 1."""

    already_applied = True

    def __init__(self, line: int) -> None:
        super().__init__(
            f"already applied: the new text is in the file at line {line}; nothing was changed",
            hint="Go on with the next step; read the file first if you expected something else.",
        )
        self.line = line


def ambiguous(source: Source, spans: Sequence[tuple[int, int]]) -> EditError:
    """Every place with its line number and a neighbour that the others do not have."""
    places = [(source.line_at(a), source.line_at(max(a, b - 1))) for a, b in spans]
    shown = []
    around = _Surroundings(source.contents, places)
    for index, (first, last) in enumerate(places[:_MOST_CANDIDATES]):
        text = f"  line {first + 1}: {visible(source.contents[first].strip())}"
        neighbour = around.telling(index)
        if neighbour is not None:
            where = "after" if neighbour < first else "before" if neighbour > last else "on"
            line = visible(source.contents[neighbour].strip())
            text += f"   ({where} line {neighbour + 1}: {line})"
        shown.append(text)
    if len(places) > _MOST_CANDIDATES:
        rest = ", ".join(str(first + 1) for first, _ in places[_MOST_CANDIDATES:][:200])
        shown.append(f"  and at lines {rest}")
    return EditError(
        f"old occurs {len(places)} times; nothing was changed:\n" + "\n".join(shown),
        hint="Add a neighbouring line to old and new so that old names one place, "
        "or pass replace_all=true to change all of them.",
    )


def not_found(source: Source, old: Sequence[str], start: int | None) -> EditError:
    """The nearest region, which starts about at a line, and each difference by character."""
    lines = list(old)
    while len(lines) > 1 and not lines[-1].strip():
        lines.pop()
    if start is None:
        return EditError(
            "old was not found, and nothing in the file resembles it; nothing was changed",
            hint="Read the file again, and copy old from it.",
        )
    first, last, details = compare(source.contents, lines, start)
    where = f"line {first + 1}" if first == last else f"lines {first + 1}-{last + 1}"
    region = source.contents[first : min(last + 1, first + _MOST_LINES)]
    shown = [f"{first + n + 1}|{line[:_LONGEST]}" for n, line in enumerate(region)]
    return EditError(
        f"old was not found; nothing was changed. Nearest text: {where}. "
        f"Difference: {details[0] if details else 'none in the lines themselves'}",
        hint="The nearest text in the file:\n"
        + "\n".join(shown)
        + "\nDifferences:\n"
        + "\n".join(details[:_MOST_DIFFERENCES])
        + "\nIf that is the place, send its text as it is (without the numbers) as old.",
    )


def elided(lines: Sequence[str], name: str) -> EditError:
    """A line that stands for text left out is not expanded."""
    return EditError(
        f"{name} leaves text out: `{visible(lines[0])}`; nothing was changed",
        hint="Write every line in full: in old the lines as the file has them, in new all that "
        "is to stand there. To change two places, make two edits.",
    )


class _Surroundings:
    """The lines around all candidates, by where they are in relation to them."""

    def __init__(self, contents: Sequence[str], places: Sequence[tuple[int, int]]) -> None:
        self._contents = contents
        self._places = places
        self._counts: dict[int, dict[str, int]] = {}

    def telling(self, index: int) -> int | None:
        """The closest line around a candidate that tells it from all others, if there is one."""
        for distance in range(_FARTHEST + 1):
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
