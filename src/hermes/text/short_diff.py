"""short_diff: unified diff of one edit, cut to fit a tool result."""

from __future__ import annotations

from bisect import bisect_left

from hermes.text.diff import common_start, excerpt, first_letters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Stretch = tuple[int, int, int, int]  # old lines from, to; new lines from, to

_CONTEXT = 3
_MOST_PAIRS = 40_000  # lines compared with lines; beyond, a stretch is shown as replaced
_LONGEST = 500  # letters of a line that are shown
_LEAD = 100  # of them in front of what changed
_BARE = "\\ No newline at end of file"


def short_diff(before: str, after: str, path: str, *, limit: int) -> str:
    """A unified diff of at most about `limit` characters, below a line with its size.

    The first line is "+2 -1 lines"; "" when nothing changed. What did not fit is counted.
    """
    if before == after:
        return ""
    if "\n" not in before and "\n" not in after:
        # Without any line feed, lines end at carriage returns.
        before, after = before.replace("\r", "\n"), after.replace("\r", "\n")
    head, old, new = _middle(before, after)
    stretches = _changes(old, new)
    added = sum(d - c for _, _, c, d in stretches)
    removed = sum(b - a for a, b, _, _ in stretches)
    lines = [f"+{added} -{removed} lines", f"--- a/{path}", f"+++ b/{path}"]
    size = sum(map(len, lines))
    left = 0
    for line in _hunks(old, new, stretches, head):
        size += len(line) + 1
        if size > limit:
            left += 1
        else:
            lines.append(line)
    if left:
        lines.append(f"… {left} more lines of this difference")
    return "\n".join(lines)


def _middle(before: str, after: str) -> tuple[int, list[str], list[str]]:
    """How many lines both begin with, and the lines that differ with some around them."""
    start = before.rfind("\n", 0, common_start(before, after)) + 1
    tail = _common_end(before, after, min(len(before), len(after)) - start)
    for _ in range(_CONTEXT):
        start = before.rfind("\n", 0, max(start - 1, 0)) + 1
    ends = [len(before) - tail, len(after) - tail]
    for _ in range(_CONTEXT + 1):
        place = before.find("\n", ends[0])
        step = place + 1 - ends[0] if place >= 0 else len(before) - ends[0]
        ends = [ends[0] + step, ends[1] + step]
    head = before.count("\n", 0, start)
    return head, _lines(before[start : ends[0]]), _lines(after[start : ends[1]])


def _common_end(one: str, other: str, most: int) -> int:
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if other.endswith(one[len(one) - middle : len(one) - low], 0, len(other) - low):
            low = middle
        else:
            high = middle - 1
    return low


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    if lines[-1]:
        lines[-1] += "\n" + _BARE  # a line without an end is another line, and is shown so
    else:
        lines.pop()
    return lines


def _changes(old: Sequence[str], new: Sequence[str]) -> list[Stretch]:
    """The stretches that differ, in order."""
    found: list[Stretch] = []
    waiting: list[Stretch] = [(0, len(old), 0, len(new))]
    while waiting:
        a, b, c, d = waiting.pop()
        while a < b and c < d and old[a] == new[c]:
            a, c = a + 1, c + 1
        while a < b and c < d and old[b - 1] == new[d - 1]:
            b, d = b - 1, d - 1
        if a == b or c == d:
            found += [(a, b, c, d)] if a < b or c < d else []
        elif (b - a) * (d - c) <= _MOST_PAIRS:
            found += _compared(old, new, (a, b, c, d))
        else:
            gaps = _gaps(old, new, (a, b, c, d))
            if len(gaps) > 1:
                waiting += reversed(gaps)  # the first one is taken next
            else:
                found.append((a, b, c, d))
    return found


def _compared(old: Sequence[str], new: Sequence[str], stretch: Stretch) -> list[Stretch]:
    from difflib import SequenceMatcher

    a, b, c, d = stretch
    matcher = SequenceMatcher(None, old[a:b], new[c:d], autojunk=False)
    return [
        (a + i, a + j, c + k, c + m) for tag, i, j, k, m in matcher.get_opcodes() if tag != "equal"
    ]


def _gaps(old: Sequence[str], new: Sequence[str], stretch: Stretch) -> list[Stretch]:
    """The stretches between the lines that both have once; one stretch when there are none."""
    a, b, c, d = stretch
    once: dict[str, int] = {}
    for index in range(c, d):
        once[new[index]] = -1 if new[index] in once else index
    seen: dict[str, int] = {}
    for index in range(a, b):
        seen[old[index]] = -1 if old[index] in seen else index
    pairs = [(i, once.get(line, -1)) for line, i in seen.items() if i >= 0]
    gaps: list[Stretch] = []
    for i, k in [*_increasing([pair for pair in pairs if pair[1] >= 0]), (b, d)]:
        gaps.append((a, i, c, k))
        a, c = i + 1, k + 1
    return gaps


def _increasing(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest run of pairs whose second numbers grow as the first ones do."""
    ends: list[int] = []  # the smallest last number of a run of each length
    last: list[int] = []  # the pair that it belongs to
    before: list[int] = []
    for index, (_, number) in enumerate(pairs):
        length = bisect_left(ends, number)
        before.append(last[length - 1] if length else -1)
        ends[length : length + 1] = [number]
        last[length : length + 1] = [index]
    chain: list[tuple[int, int]] = []
    index = last[-1] if last else -1
    while index >= 0:
        chain.append(pairs[index])
        index = before[index]
    return chain[::-1]


def _hunks(
    old: Sequence[str], new: Sequence[str], stretches: Sequence[Stretch], head: int
) -> Iterator[str]:
    index = 0
    while index < len(stretches):
        last = index
        while (
            last + 1 < len(stretches)
            and stretches[last + 1][0] - stretches[last][1] <= 2 * _CONTEXT
        ):
            last += 1
        group = stretches[index : last + 1]
        index = last + 1
        a, b = max(group[0][0] - _CONTEXT, 0), min(group[-1][1] + _CONTEXT, len(old))
        c = group[0][2] - (group[0][0] - a)
        d = group[-1][3] + (b - group[-1][1])
        yield f"@@ -{_range(head + a, b - a)} +{_range(head + c, d - c)} @@"
        reached = a
        for first, end, start, stop in group:
            removed, added = old[first:end], new[start:stop]
            returns = _only_returns(removed, added)
            starts = first_letters(removed, added, most=_LONGEST, lead=_LEAD)
            yield from (f" {_shown(line)}" for line in old[reached:first])
            for mark, lines in (("-", removed), ("+", added)):
                for line, at in zip(lines, starts, strict=False):
                    yield f"{mark}{_shown(line, start=at, returns=returns)}"
            reached = end
        yield from (f" {_shown(line)}" for line in old[reached:b])


def _range(start: int, size: int) -> str:
    return f"{start + 1 if size else start},{size}"


def _only_returns(removed: Sequence[str], added: Sequence[str]) -> bool:
    """Whether a line differs in nothing but its carriage return."""
    return not {line.removesuffix("\r") for line in removed}.isdisjoint(
        line.removesuffix("\r") for line in added
    )


def _content(line: str) -> str:
    return line.partition("\n")[0].removesuffix("\r")


def _shown(line: str, *, start: int = 0, returns: bool = False) -> str:
    """A line as it can be shown: cut when long, with its carriage return where that changed."""
    content = _content(line)
    text, bare, mark = line.partition("\n")
    if len(content) > _LONGEST:
        content = f"{excerpt(content, start, _LONGEST)} ({len(content)} letters)"
    return content + ("␍" if returns and text.endswith("\r") else "") + bare + mark
