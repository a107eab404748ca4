"""Counts and sums, so that nothing has to be counted by the model."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"-?\d{1,12}(?:\.\d{1,9})?")
# A number that stands alone in a line, be it with a sign of money.
_ALONE = re.compile(r"(?<![\w.,:/-])[$€£]?(-?\d{1,12}(?:\.\d{1,9})?)(?![\w:/-]|[.,]\d)")
_COLUMNS = 4


def number(count: int, what: str) -> str:
    """A count with its word: `1 line`, `2 lines`."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def sums(content: str) -> str:
    """What a table of numbers, or lines with a number each, add up to; nothing if it is neither."""
    rows = [re.split(r"[,;\t|]", line) for line in content.strip().splitlines()]
    width = len(rows[0]) if rows else 0
    if len(rows) < 2 or any(len(row) != width for row in rows):
        return _of_lines(content)
    told = []
    for column in zip(*rows, strict=True):
        cells = [cell.strip() for cell in column]
        head = "" if _NUMBER.fullmatch(cells[0]) else cells[0]
        body = cells[1:] if head else cells
        if len(body) > 1 and all(_NUMBER.fullmatch(cell) for cell in body):
            name = f"the column {head}" if head else "its numbers"
            told.append(_told(name, [float(cell) for cell in body]))
    if width == 1 and not told:
        return _of_lines(content)
    headed = width > 1 and has_heading(rows[0], rows[1:])
    lead = f" The first line is a heading, {number(len(rows) - 1, 'row')} follow." if headed else ""
    return lead + "".join(told[:_COLUMNS])


def has_heading(first: list[str], rest: list[list[str]]) -> bool:
    """Whether the first row of a table names the columns: no numbers there, but below it."""
    return not any(any(map(str.isdigit, cell)) for cell in first) and any(
        any(map(str.isdigit, cell)) for row in rest for cell in row
    )


def _of_lines(content: str) -> str:
    """The sum where lines have one number each, as in `milk 1.20`; dates and the like are none."""
    lines = [line for line in content.splitlines() if line.strip()]
    found = [_ALONE.findall(line) for line in lines]
    numbers = [float(one[0]) for one in found if len(one) == 1]
    if len(numbers) < 2 or any(len(one) > 1 for one in found) or len(numbers) < len(lines) * 2 / 3:
        return ""
    return _told("its lines", numbers)


def _told(what: str, numbers: list[float]) -> str:
    total = sum(numbers)
    return (
        f" In {what} the sum is {total:.12g}, the average {total / len(numbers):.12g}, "
        f"the largest {max(numbers):g}, the smallest {min(numbers):g}."
    )
