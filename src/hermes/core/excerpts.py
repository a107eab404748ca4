"""Long lines that are shown in part: the part in which they differ."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


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
