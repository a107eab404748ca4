"""A text as lines: what each holds, where it starts, how it ends."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

BOM = "\ufeff"


class Source:
    """The lines of a text; a byte order mark at its start belongs to none of them."""

    __slots__ = ("contents", "endings", "starts", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        offset = len(BOM) if text.startswith(BOM) else 0
        self.contents, self.endings = split_lines(text[offset:], text)
        lengths = (
            len(content) + len(ending)
            for content, ending in zip(self.contents, self.endings, strict=True)
        )
        self.starts = list(accumulate(lengths, initial=offset))

    def line_at(self, position: int) -> int:
        """The index of the line that a position lies in."""
        return min(max(bisect_right(self.starts, position) - 1, 0), len(self.contents) - 1)

    def ending_at(self, line: int) -> str:
        """How lines end at this place: this one, else the one before, else any."""
        for candidate in (self.endings[line], self.endings[line - 1] if line else ""):
            if candidate:
                return candidate
        return next((ending for ending in self.endings if ending), "")


def split_lines(text: str, whole: str) -> tuple[list[str], list[str]]:
    """The contents and the endings of lines; the last one has no ending.

    A lone carriage return ends a line only where `whole`, the text around, has no other endings.
    """
    if "\r" not in text:
        contents = text.split("\n")
        return contents, ["\n"] * (len(contents) - 1) + [""]
    if "\n" not in whole and "\n" not in text:
        contents = text.split("\r")
        return contents, ["\r"] * (len(contents) - 1) + [""]
    contents = text.split("\n")
    last = contents.pop()
    endings = ["\r\n" if content.endswith("\r") else "\n" for content in contents]
    contents = [content.removesuffix("\r") for content in contents]
    return [*contents, last], [*endings, ""]


def unified(text: str) -> str:
    """A text with every line ending written as a line feed."""
    if "\r" not in text:
        return text
    return text.replace("\r\n", "\n") if "\n" in text else text.replace("\r", "\n")
