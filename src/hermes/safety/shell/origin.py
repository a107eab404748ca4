"""Where a piece of text stands in what the caller gave."""

from __future__ import annotations


class Origin:
    """A stretch of the given text; `exact` when offsets inside the piece still hold outside."""

    __slots__ = ("end", "exact", "start")

    def __init__(self, start: int, end: int, *, exact: bool = True) -> None:
        self.start = start
        self.end = end
        self.exact = exact

    def at(self, start: int, end: int) -> Origin:
        """The part from `start` to `end` of this piece, as closely as it can be told."""
        if not self.exact:
            return self
        return Origin(self.start + start, self.start + end)

    def vague(self) -> Origin:
        """The same stretch, for text that was changed on the way."""
        return Origin(self.start, self.end, exact=False)
