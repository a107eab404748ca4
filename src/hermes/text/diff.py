"""Line diff: changed line ranges, unified hunks, excerpts of long lines, a short diff for results.

Lines that occur once on both sides are matched first (patience diff); between them the shortest
edit script is computed (Myers) as long as that is cheap. Beyond, a stretch counts as replaced:
correct, but not the shortest. Time stays in proportion to the number of lines.
"""

from __future__ import annotations

from math import isqrt
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence


# Edits up to which the shortest script of one stretch is computed: time and memory grow with the
# square. Second, the limit on the sum of these squares.
_MOST_EDITS = 400
_MOST_STEPS = 1_000_000
_CONTEXT = 3  # lines around a change, of `short_diff`
_LONGEST = 500  # characters of a line, of `short_diff`
_LEAD = 100
_NO_NEWLINE = "\\ No newline at end of file"


class Change(NamedTuple):
    """Lines `old_start:old_end` became lines `new_start:new_end`, counted from 0."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def line_changes(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[Change]:
    """The changes that turn `old` into `new`, in order; adjacent ones are joined."""
    numbers: dict[Hashable, int] = {}
    # Integers compare faster than long lines.
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
    """Changes grouped into hunks: those whose context lines meet."""
    group: list[Change] = []
    for change in changes:
        if group and change.old_start - group[-1].old_end > 2 * context:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def span(group: Sequence[Change], context: int, old_size: int) -> Change:
    """The lines of both sides that a hunk shows; `old_size` is the length of the old side."""
    first, last = group[0], group[-1]
    before = min(context, first.old_start)
    after = min(context, old_size - last.old_end)
    return Change(
        first.old_start - before,
        last.old_end + after,
        first.new_start - before,
        last.new_end + after,
    )


def hunk_lines(
    old: Sequence[str],
    new: Sequence[str],
    changes: Sequence[Change],
    *,
    context: int,
    most: int,
    lead: int,
    firsts: tuple[int, int] = (1, 1),
) -> Iterator[tuple[str, str, int]]:
    """The lines of a unified diff: mark, text, and the character to show it from.

    Args:
        old: The lines of the old side.
        new: The lines of the new side.
        changes: Those of `line_changes`.
        context: Unchanged lines around a change.
        most: Characters of a line that are shown.
        lead: Of them, those in front of the first difference within a line.
        firsts: Numbers of the first line of either side.
    """
    for group in groups(changes, context):
        start, end, begin, stop = span(group, context, len(old))
        heading = f"-{_hunk_range(start, end, firsts[0])} +{_hunk_range(begin, stop, firsts[1])}"
        yield "@", f"@ {heading} @@", 0
        at = start
        for change in group:
            removed = old[change.old_start : change.old_end]
            added = new[change.new_start : change.new_end]
            starts = first_shown(removed, added, most=most, lead=lead)
            yield from ((" ", line, 0) for line in old[at : change.old_start])
            yield from (("-", line, shown) for line, shown in zip(removed, starts, strict=False))
            yield from (("+", line, shown) for line, shown in zip(added, starts, strict=False))
            at = change.old_end
        yield from ((" ", line, 0) for line in old[at:end])


def _hunk_range(start: int, end: int, first: int) -> str:
    size = end - start
    # An empty range is named by the line before it.
    at = start + first - (size == 0)
    return str(at) if size == 1 else f"{at},{size}"


def _between(old: list[int], new: list[int]) -> Iterator[Change]:
    """The changes of every stretch, after equal lines at both its ends are cut off."""
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
        script = _shortest(old, new, stretch, most)
        spare -= min(most, len(script)) ** 2 if script else most**2
        yield from script or [stretch]


def _split(old: list[int], new: list[int], stretch: Change) -> list[Change]:
    """The stretches between lines that are unique on both sides, in their longest common order."""
    once_old = _once(old, stretch.old_start, stretch.old_end)
    once_new = _once(new, stretch.new_start, stretch.new_end)
    # In the order of the new side: increasing positions in the old side are a common order.
    pairs = [(once_old[line], at) for line, at in once_new.items() if line in once_old]
    chain = _increasing(pairs)
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
    """Positions of the lines that occur once, in order."""
    positions: dict[int, int] = {}
    for at in range(start, end):
        positions[lines[at]] = -1 if lines[at] in positions else at
    return {line: at for line, at in positions.items() if at >= 0}


def _increasing(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest subsequence with increasing first numbers; the second ones increase already."""
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
    """The shortest edit script by Myers' algorithm; empty when it needs more than `most` edits."""
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
    """The single edits along the path that was found."""
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
    """Whether a diagonal is reached further by an insertion than by a removal."""
    if diagonal in (-edits, edits):
        return diagonal == -edits
    return furthest.get(diagonal - 1, -1) < furthest.get(diagonal + 1, -1)


# -- excerpts of long lines ---------------------------------------------------------------------


def first_shown(old: Sequence[str], new: Sequence[str], *, most: int, lead: int) -> list[int]:
    """From which character each line of a change is shown, the same for both sides.

    Lines of up to `most` characters are shown from their start; longer ones from `lead` characters
    before the first difference.
    """
    starts = [0] * max(len(old), len(new))
    if len(old) == len(new):
        for number, (one, other) in enumerate(zip(old, new, strict=True)):
            if max(len(one), len(other)) > most:
                starts[number] = max(0, common_prefix(one, other) - lead)
    return starts


def excerpt(line: str, start: int, most: int) -> str:
    """At most `most` characters of a line, with `…` where it is cut."""
    if len(line) <= most:
        return line
    # A line that ends before `start` is shown by its end.
    start = min(start, len(line) - most)
    ended = start + most >= len(line)
    return f"{'…' if start else ''}{line[start : start + most]}{'' if ended else '…'}"


def common_prefix(one: str, other: str) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if other.startswith(one[low:middle], low):
            low = middle
        else:
            high = middle - 1
    return low


def _common_suffix(one: str, other: str, most: int) -> int:
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if other.endswith(one[len(one) - middle : len(one) - low], 0, len(other) - low):
            low = middle
        else:
            high = middle - 1
    return low


# -- a diff that fits into a tool result --------------------------------------------------------


def short_diff(before: str, after: str, path: str, *, limit: int) -> str:
    """A unified diff of at most about `limit` characters, below a line with its size.

    The first line is "+2 -1 lines"; the result is "" when nothing changed. Lines that do not fit
    are counted.
    """
    if before == after:
        return ""
    if "\n" not in before and "\n" not in after:
        # Without any line feed, lines end at carriage returns.
        before, after = before.replace("\r", "\n"), after.replace("\r", "\n")
    first, old, new = _changed_part(before, after)
    changes = line_changes(old, new)
    added = sum(change.new_end - change.new_start for change in changes)
    removed = sum(change.old_end - change.old_start for change in changes)
    _show_returns(old, new, changes)
    lines = [f"+{added} -{removed} lines", f"--- a/{path}", f"+++ b/{path}"]
    size = sum(map(len, lines))
    left = 0
    for mark, line, start in hunk_lines(
        old, new, changes, context=_CONTEXT, most=_LONGEST, lead=_LEAD, firsts=(first, first)
    ):
        shown = mark + _shown(line, start)
        size += len(shown) + 1
        if size > limit:
            left += 1
        else:
            lines.append(shown)
    if left:
        lines.append(f"… {left} more lines of this difference")
    return "\n".join(lines)


def _changed_part(before: str, after: str) -> tuple[int, list[str], list[str]]:
    """The lines that differ with context around them, and the number of the first of them.

    Only these are split into lines: files may be long.
    """
    start = before.rfind("\n", 0, common_prefix(before, after)) + 1
    tail = _common_suffix(before, after, min(len(before), len(after)) - start)
    for _ in range(_CONTEXT):
        start = before.rfind("\n", 0, max(start - 1, 0)) + 1
    ends = [len(before) - tail, len(after) - tail]
    for _ in range(_CONTEXT + 1):
        feed = before.find("\n", ends[0])
        step = feed + 1 - ends[0] if feed >= 0 else len(before) - ends[0]
        ends = [ends[0] + step, ends[1] + step]
    first = before.count("\n", 0, start) + 1
    return first, _split_lines(before[start : ends[0]]), _split_lines(after[start : ends[1]])


def _split_lines(text: str) -> list[str]:
    lines = text.split("\n")
    if lines[-1]:
        lines[-1] += "\n" + _NO_NEWLINE  # a line without an end is another line
    else:
        lines.pop()
    return lines


def _show_returns(old: list[str], new: list[str], changes: Sequence[Change]) -> None:
    """Make carriage returns visible in changes that consist of nothing else."""
    for change in changes:
        removed = {line.removesuffix("\r") for line in old[change.old_start : change.old_end]}
        added = {line.removesuffix("\r") for line in new[change.new_start : change.new_end]}
        if removed.isdisjoint(added):
            continue
        for side, start, end in ((old, *change[:2]), (new, *change[2:])):
            for at in range(start, end):
                text, feed, note = side[at].partition("\n")
                if text.endswith("\r"):
                    side[at] = f"{text[:-1]}␍{feed}{note}"


def _shown(line: str, start: int) -> str:
    text, feed, note = line.partition("\n")
    content = text.removesuffix("\r")
    if len(content) > _LONGEST:
        content = f"{excerpt(content, start, _LONGEST)} ({len(content)} letters)"
    return content + feed + note
