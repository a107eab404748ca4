"""Line diff: changed line ranges, hunks with context, excerpts of long lines."""

from __future__ import annotations

from math import isqrt
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence


# How many single lines may be added and removed in one stretch that is matched to the shortest
# script: time and memory grow with the square. Second, the squares of all stretches together.
_MOST_EDITS = 400
_MOST_STEPS = 1_000_000


class Change(NamedTuple):
    """Lines `old_start:old_end` became lines `new_start:new_end`, counted from 0."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def line_changes(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[Change]:
    """The changes that turn `old` into `new`, in order, apart from each other."""
    numbers: dict[Hashable, int] = {}
    # Whole numbers compare faster than lines, which may be long and alike.
    left = [numbers.setdefault(line, len(numbers)) for line in old]
    right = [numbers.setdefault(line, len(numbers)) for line in new]
    changes: list[Change] = []
    for change in _between(left, right):
        if changes and (changes[-1].old_end, changes[-1].new_end) == change[::2]:
            last = changes.pop()
            change = Change(last.old_start, change.old_end, last.new_start, change.new_end)
        changes.append(change)
    return changes


def groups(changes: Sequence[Change], context: int) -> Iterator[list[Change]]:
    """Changes so near to each other that what is shown around them meets."""
    group: list[Change] = []
    for change in changes:
        if group and change.old_start - group[-1].old_end > 2 * context:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def span(group: Sequence[Change], context: int, old_size: int) -> Change:
    """The lines of both sides that are shown for a group; `old_size` is how many there are."""
    first, last = group[0], group[-1]
    before = min(context, first.old_start)
    after = min(context, old_size - last.old_end)
    return Change(
        first.old_start - before,
        last.old_end + after,
        first.new_start - before,
        last.new_end + after,
    )


def hunk_range(start: int, end: int, first: int = 1) -> str:
    """Lines as the head of a hunk names them; `first` is the number of the first one."""
    size = end - start
    # An empty range is named by the line before it.
    at = start + first - (size == 0)
    return str(at) if size == 1 else f"{at},{size}"


def _between(old: list[int], new: list[int]) -> Iterator[Change]:
    """The changes of every stretch, outermost first cut down by what is equal around it."""
    waiting = [Change(0, len(old), 0, len(new))]
    spare = _MOST_STEPS
    while waiting:
        start, end, begin, stop = waiting.pop()
        while start < end and begin < stop and old[start] == new[begin]:
            start += 1
            begin += 1
        while start < end and begin < stop and old[end - 1] == new[stop - 1]:
            end -= 1
            stop -= 1
        if start == end and begin == stop:
            continue
        if start == end or begin == stop:
            yield Change(start, end, begin, stop)
            continue
        stretch = Change(start, end, begin, stop)
        parts = _split(old, new, stretch)
        if parts:
            waiting.extend(reversed(parts))
            continue
        most = min(_MOST_EDITS, end - start + stop - begin, isqrt(spare))
        found = _shortest(old, new, stretch, most)
        spare -= min(most, len(found)) ** 2 if found else most**2
        yield from found or [stretch]


def _split(old: list[int], new: list[int], stretch: Change) -> list[Change]:
    """The stretches between lines that both sides hold once, in the longest common order."""
    once_old = _once(old, stretch.old_start, stretch.old_end)
    once_new = _once(new, stretch.new_start, stretch.new_end)
    # In the order of the new side, so that a rising row of old places is a common order.
    pairs = [(once_old[line], at) for line, at in once_new.items() if line in once_old]
    chain = _rising(pairs)
    if not chain:
        return []
    parts = []
    start, begin = stretch.old_start, stretch.new_start
    for at_old, at_new in chain:
        if at_old > start or at_new > begin:
            parts.append(Change(start, at_old, begin, at_new))
        start, begin = at_old + 1, at_new + 1
    if stretch.old_end > start or stretch.new_end > begin:
        parts.append(Change(start, stretch.old_end, begin, stretch.new_end))
    return parts


def _once(lines: list[int], start: int, end: int) -> dict[int, int]:
    """Where each line that appears once is, in order."""
    places: dict[int, int] = {}
    for at in range(start, end):
        places[lines[at]] = -1 if lines[at] in places else at
    return {line: at for line, at in places.items() if at >= 0}


def _rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest row of pairs whose first numbers rise; their second ones rise already."""
    from bisect import bisect_left

    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for index, (at, _) in enumerate(pairs):
        length = bisect_left(ends, at)
        if length == len(ends):
            ends.append(at)
            last.append(index)
        else:
            ends[length] = at
            last[length] = index
        before.append(last[length - 1] if length else -1)
    row = []
    index = last[-1] if last else -1
    while index >= 0:
        row.append(pairs[index])
        index = before[index]
    row.reverse()
    return row


def _shortest(old: list[int], new: list[int], stretch: Change, most: int) -> list[Change]:
    """The shortest script by Myers' greedy method; none when it takes more than `most` edits."""
    start, end, begin, stop = stretch
    rows, columns = end - start, stop - begin
    furthest = {1: 0}
    trace: list[dict[int, int]] = []
    for edits in range(most + 1):
        reached: dict[int, int] = {}
        for diagonal in range(-edits, edits + 1, 2):
            down = _goes_down(furthest, diagonal, edits)
            row = furthest.get(diagonal + 1, 0) if down else furthest.get(diagonal - 1, 0) + 1
            column = row - diagonal
            while row < rows and column < columns and old[start + row] == new[begin + column]:
                row += 1
                column += 1
            reached[diagonal] = row
            if row >= rows and column >= columns:
                return _walked_back([*trace, reached], stretch)
        trace.append(reached)
        furthest = reached
    return []


def _walked_back(trace: list[dict[int, int]], stretch: Change) -> list[Change]:
    """The single edits along the way that was found, from its start."""
    start, end, begin, stop = stretch
    row, column = end - start, stop - begin
    changes: list[Change] = []
    for edits in range(len(trace) - 1, 0, -1):
        earlier = trace[edits - 1]
        diagonal = row - column
        down = _goes_down(earlier, diagonal, edits)
        before = diagonal + 1 if down else diagonal - 1
        row = earlier[before]
        column = row - before
        at, to = start + row, begin + column
        changes.append(Change(at, at, to, to + 1) if down else Change(at, at + 1, to, to))
    changes.reverse()
    return changes


def _goes_down(furthest: dict[int, int], diagonal: int, edits: int) -> bool:
    """Whether a diagonal is reached best by adding a line, and not by removing one."""
    if diagonal in (-edits, edits):
        return diagonal == -edits
    return furthest.get(diagonal - 1, -1) < furthest.get(diagonal + 1, -1)


def common_start(one: str, other: str) -> int:
    """How many letters two texts begin with alike."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if other.startswith(one[low:middle], low):
            low = middle
        else:
            high = middle - 1
    return low


def first_letters(old: Sequence[str], new: Sequence[str], *, most: int, lead: int) -> list[int]:
    """From which letter each line of a changed stretch is shown, the same for both sides.

    Args:
        old: The lines as they were.
        new: The lines in their place; those of the same number belong together.
        most: Letters of a line that are shown; shorter ones are shown from their start.
        lead: Letters in front of the first that differs.
    """
    starts = [0] * max(len(old), len(new))
    if len(old) == len(new):
        for number, (one, other) in enumerate(zip(old, new, strict=True)):
            if max(len(one), len(other)) > most:
                starts[number] = max(0, common_start(one, other) - lead)
    return starts


def excerpt(line: str, start: int, most: int) -> str:
    """A piece of a line, with signs where something is left out."""
    if len(line) <= most:
        return line
    # A line that ends before is shown by its end.
    start = min(start, len(line) - most)
    ended = start + most >= len(line)
    return f"{'…' if start else ''}{line[start : start + most]}{'' if ended else '…'}"
