"""Parts of a pattern, in the spellings of both engines."""

from __future__ import annotations

from hermes.core.errors import ToolError
from hermes.files.search.sets import CharacterSet, spelled


class PatternError(ToolError):
    """A pattern that means nothing; `position` counts its characters from 0."""

    def __init__(self, why: str, position: int) -> None:
        super().__init__(
            f"invalid pattern at character {position + 1}: {why}",
            hint="Escape the character with \\, or pass literal=true to search for plain text.",
        )
        self.position = position


class Piece:
    """A part of a pattern in both spellings; `literal` is text that it can't match without."""

    __slots__ = ("edge", "exact", "literal", "python", "rust", "weight")

    def __init__(
        self, rust: str, python: str, *, literal: str | None = None, edge: bool = False
    ) -> None:
        self.rust = rust
        self.python = python
        self.literal = literal
        # The text is all that it matches.
        self.exact = False
        # Matches a place between characters, which can't be repeated.
        self.edge = edge
        # By how much repetitions inside multiply its size.
        self.weight = 1


def char(one: str) -> Piece:
    """One character, as it is."""
    piece = Piece(spelled(one, python=False), spelled(one, python=True), literal=one)
    piece.exact = True
    return piece


def set_of(chosen: CharacterSet) -> Piece:
    """One character of a set."""
    return Piece(chosen.rust(), chosen.python())


def counted(least: int, most: int | None) -> str:
    """The sign for so many repetitions."""
    simple = {(0, None): "*", (1, None): "+", (0, 1): "?"}
    return simple.get((least, most)) or f"{{{least},{'' if most is None else most}}}"


def longest_run(pieces: list[Piece]) -> str | None:
    """The longest text that stands in a sequence as it is."""
    runs = [""]
    for piece in pieces:
        if piece.literal is None:
            runs.append("")
        elif piece.exact:
            runs[-1] += piece.literal
        else:
            runs.extend([piece.literal, ""])
    return max(runs, key=len) or None
