"""How many columns of a terminal a text takes, and as much of it as fits."""

from __future__ import annotations

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from collections.abc import Iterator


def widths(text: str) -> Iterator[int]:
    """How many columns each character takes."""
    from unicodedata import category, east_asian_width

    for character in text:
        if character.isascii():
            yield 1
        elif category(character) in ("Mn", "Me", "Cf"):
            yield 0
        else:
            yield 2 if east_asian_width(character) in "WF" else 1


def columns(text: str) -> int:
    """How many columns a line takes."""
    return len(text) if text.isascii() else sum(widths(text))


def padded(text: str, width: int) -> str:
    """A line with blanks up to a width."""
    return text + " " * (width - columns(text))


def cut(line: str, width: int) -> str:
    """As much of a line as fits, marked where it is cut."""
    used = fitting = 0
    for at, size in enumerate(widths(line)):
        used += size
        if used < width:
            fitting = at + 1
        elif used > width:
            return f"{line[:fitting].rstrip()}…" if width > 0 else ""
    return line
