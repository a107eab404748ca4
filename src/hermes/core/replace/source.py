"""A text as lines: what each holds, where it starts, how it ends."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

from hermes.core.replace.folding import fold

BOM = "\ufeff"


class Source:
    """The lines of a text; a byte order mark at its start belongs to none of them."""

    __slots__ = ("_folded", "contents", "endings", "returns", "starts", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        offset = len(BOM) if text.startswith(BOM) else 0
        self.returns = "\r" in text and "\n" not in text  # lines end as they did on old machines
        self.contents, self.endings = split_lines(text[offset:], returns=self.returns)
        lengths = (
            len(content) + len(ending)
            for content, ending in zip(self.contents, self.endings, strict=True)
        )
        self.starts = list(accumulate(lengths, initial=offset))
        self._folded: list[str] | None = None

    @property
    def folded(self) -> list[str]:
        """The lines in plain typography."""
        if self._folded is None:
            plain = self.text.isascii()
            self._folded = self.contents if plain else fold("\n".join(self.contents)).split("\n")
        return self._folded

    def lines_of(self, text: str) -> list[str]:
        """The lines of a text that is to be found here or put here."""
        text = text.replace("\r\n", "\n")
        return (text.replace("\r", "\n") if self.returns else text).split("\n")

    def line_at(self, position: int) -> int:
        """The index of the line that a position lies in."""
        return min(max(bisect_right(self.starts, position) - 1, 0), len(self.contents) - 1)

    def ending_at(self, line: int) -> str:
        """How lines end at this place: this one, else the one before, else any."""
        for candidate in (self.endings[line], self.endings[line - 1] if line else ""):
            if candidate:
                return candidate
        return next((ending for ending in self.endings if ending), "")


def split_lines(text: str, *, returns: bool) -> tuple[list[str], list[str]]:
    """The contents and the endings of lines; the last one has no ending.

    With `returns`, a lone carriage return ends a line as well.
    """
    if "\r" not in text:
        contents = text.split("\n")
        return contents, ["\n"] * (len(contents) - 1) + [""]
    if returns:
        contents = text.split("\r")
        return contents, ["\r"] * (len(contents) - 1) + [""]
    contents = text.split("\n")
    last = contents.pop()
    endings = ["\r\n" if content.endswith("\r") else "\n" for content in contents]
    contents = [content.removesuffix("\r") for content in contents]
    return [*contents, last], [*endings, ""]
