"""Indentation: how far a block moves, and in tabs or spaces.

A shift is a rule that takes every indentation of the old text to the one in the file. It exists
only where one rule explains all lines; then it holds for the lines of the new text as well.
"""

from __future__ import annotations

from itertools import pairwise
from math import gcd

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class ShiftError(Exception):
    """A line of the new text can't be moved as its block was."""


class Shift:
    """Moves indentations: `width * grow // per + add` characters of the file's kind."""

    __slots__ = ("_add", "_drop", "_expand", "_grow", "_kind", "_per", "_prefix", "_unit")

    def __init__(
        self,
        *,
        prefix: str = "",
        drop: str = "",
        unit: int = 0,
        expand: int = 0,
        kind: str = "",
        grow: int = 1,
        per: int = 1,
        add: int = 0,
    ) -> None:
        self._prefix = prefix
        self._drop = drop
        self._unit = unit
        self._expand = expand
        self._kind = kind
        self._grow = grow
        self._per = per
        self._add = add

    def moved(self, indent: str) -> str:
        """The indentation that a line of the new text gets; ShiftError when there is none."""
        if self._kind:
            return self._scaled(indent)
        if self._expand:
            return indent.expandtabs(self._expand)
        if not indent.startswith(self._drop):
            raise ShiftError("it would have to move further to the left than the margin")
        rest = indent[len(self._drop) :]
        if self._unit and rest.strip(" ") == "":
            levels, spaces = divmod(len(rest), self._unit)
            rest = "\t" * levels + " " * spaces
        return self._prefix + rest

    def _scaled(self, indent: str) -> str:
        if self._kind == "\t" and indent.strip("\t") == "" and indent:
            return indent  # in the file's own kind already
        if len(set(indent)) > 1:
            raise ShiftError("it mixes tabs and spaces")
        whole, rest = divmod(len(indent) * self._grow, self._per)
        if whole + self._add < 0:
            raise ShiftError("it would have to move further to the left than the margin")
        if rest and self._kind == " ":
            raise ShiftError("its indentation lies between two steps")
        return self._kind * (whole + self._add) + " " * (rest // self._grow)


def find_shift(pairs: Iterable[tuple[str, str]], new: Sequence[str], *, tabs: bool) -> Shift | None:
    """The one rule that explains all (old, file) pairs of indentations, or None.

    `new` has the indentations that are to be moved; `tabs` says that the file is indented
    with tabs, which decides where the pairs themselves say nothing.
    """
    known = dict.fromkeys(pairs)
    old, found = [pair[0] for pair in known], [pair[1] for pair in known]
    unit = _unit([*old, *new]) if tabs and not any("\t" in indent for indent in old) else 0
    if all(have == want for have, want in known):
        # Nothing moves; but lines without indentation do not say which kind the file has.
        return Shift(unit=unit) if not any(old) else Shift()
    prefix = found[0].removesuffix(old[0]) if found[0].endswith(old[0]) else ""
    if prefix and all(want == prefix + have for have, want in known):
        return Shift(prefix=prefix, unit=unit if not any(old) else 0)
    drop = old[0].removesuffix(found[0]) if old[0].endswith(found[0]) else ""
    if drop and all(have == drop + want for have, want in known):
        if not (unit and any(found) is False and len(known) == 1):
            return Shift(drop=drop)
        return Shift(drop=drop, unit=unit)
    return _linear(known, _unit([*old, *new])) or _expanded(known)


def _expanded(known: Iterable[tuple[str, str]]) -> Shift | None:
    """The shift where tabs and spaces stand side by side: one tab is so many columns."""
    for columns in (4, 8, 2):
        if all(have.expandtabs(columns) == want for have, want in known):
            return Shift(expand=columns)
        if all(have == want.expandtabs(columns) for have, want in known):
            return Shift(unit=columns)
    return None


def _linear(known: Iterable[tuple[str, str]], unit: int) -> Shift | None:
    points = [(len(have), len(want)) for have, want in known]
    kinds = {char for have, _ in known for char in have}, {c for _, want in known for c in want}
    if len(kinds[0]) > 1 or len(kinds[1]) > 1:
        return None
    kind = next(iter(kinds[1]), " ")
    first = points[0]
    other = next((point for point in points if point[0] != first[0]), None)
    if other is None:
        if len(points) > 1 or kinds[0] == kinds[1]:
            return None  # one old indentation can't become two
        if kind == " ":
            step = max(first[1] // first[0], 1)
            return Shift(kind=kind, grow=step, add=first[1] - first[0] * step)
        return (
            None if first[0] % unit else Shift(kind=kind, per=unit, add=first[1] - first[0] // unit)
        )
    grow, per = other[1] - first[1], other[0] - first[0]
    if per < 0:
        grow, per = -grow, -per
    if grow <= 0:
        return None
    common = gcd(grow, per)
    grow, per = grow // common, per // common
    if (first[0] * grow) % per:
        return None
    add = first[1] - first[0] * grow // per
    if any(have * grow % per or have * grow // per + add != want for have, want in points):
        return None
    return Shift(kind=kind, grow=grow, per=per, add=add)


def _unit(indents: Iterable[str]) -> int:
    """How many spaces make one step, judged by the indentations of one text."""
    widths = sorted({len(indent) for indent in indents if indent.strip(" ") == ""})
    steps = [after - before for before, after in pairwise(widths)]
    if widths and widths[0] and not steps:
        steps = [widths[0]]
    return gcd(*steps) if steps else 4
