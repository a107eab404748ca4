"""Already-applied check: is the result of an edit in the text, when its old text is not?"""

from __future__ import annotations

from hermes.text.replace.match import find_matches, resembles
from hermes.text.replace.needle_variants import find_words
from hermes.text.replace.source_lines import is_word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.text.replace.source_lines import Source

TELLING = 6  # letters and signs that have to be there before a repetition is no coincidence
_UNMISTAKABLE = 40  # of them are no coincidence anywhere
_SLACK = 2  # lines around the nearest region that still count as there


def applied_at(source: Source, old: str, new: str, start: int | None) -> int | None:
    """The line of the new text, if it stands alone and about where the old text would be.

    `start` is the line of the region nearest to the old text.
    """
    size = len("".join(new.split()))
    if size < TELLING:
        return _short_at(source, source.lines_of(old), source.lines_of(new), start)
    matches = find_words(source, new) or find_matches(source, new, new)
    if len(matches) != 1:
        return None
    line, last = source.line_at(matches[0].start), source.line_at(max(matches[0].end - 1, 0))
    before, after = source.lines_of(old), source.lines_of(new)
    if new in old and "\n" not in old.strip("\n") and source.contents[line].strip() != new.strip():
        return None  # part of a line, of which the rest may just be another one
    if not removed_is_gone(source, before, after, line, last + 1):
        return None
    near = start is not None and start - _SLACK <= last and line <= start + len(before) + _SLACK
    return line if near or size >= _UNMISTAKABLE else None


def _short_at(
    source: Source, old: Sequence[str], new: Sequence[str], start: int | None
) -> int | None:
    """The line of a new text of few letters: whole lines, once, and just where old would be."""
    wanted = [line.strip() for line in new]
    if start is None or not any(map(is_word, "".join(wanted))):
        return None
    stripped = [line.strip() for line in source.contents]
    places = [
        place
        for place, line in enumerate(stripped)
        if line == wanted[0] and stripped[place : place + len(wanted)] == wanted
    ]
    if len(places) != 1 or not start <= places[0] < start + len(old):
        return None
    gone = removed_is_gone(source, old, new, places[0], places[0] + len(wanted))
    return places[0] if gone else None


def removed_is_gone(
    source: Source, old: Sequence[str], new: Sequence[str], first: int, last: int
) -> bool:
    """Whether lines that the edit takes from the edge of a text are not there in another state.

    `first` and `last` are the lines of the file where the new text stands.
    """
    before = [line.strip() for line in old if line.strip()]
    after = [line.strip() for line in new if line.strip()]
    size = len(after)
    if size < len(before) and before[len(before) - size :] == after:
        gone, around = before[: len(before) - size], source.contents[max(first - 5, 0) : first]
    elif size < len(before) and before[:size] == after:
        gone, around = before[size:], source.contents[last : last + 5]
    else:
        return True
    beside = [line for line in around if line.strip()]
    return not any(resembles(line, other) for line in gone[:5] + gone[-5:] for other in beside)
