"""The one regular-expression dialect of the search, written out for both engines.

A pattern is read here and nowhere else: what it means, and what is wrong with it, never depends on
who runs it. It is spelled anew for ripgrep and for Python's `re` from the same parts, such that

- matching is by line: no part of a pattern matches a line's end, nor the `\\r` before it unless it
  is named; `^`, `\\A` and `$`, `\\z`, `\\Z` are the two ends of a line;
- `\\w`, `\\d`, `\\s`, `\\b` know all scripts; a brace that is no repetition is a brace;
- look-around, back-references, atomic groups and possessive repetitions work too, in Python alone
  (`Pattern.rust` is None), which takes longer.
"""

from __future__ import annotations

import re

from hermes.core.errors import ToolError
from hermes.files.search.pieces import PatternError, Piece
from hermes.files.search.sets import spelled
from hermes.files.search.syntax import Parser

_HALF = re.compile("[\ud800-\udfff]")
# Characters by number, or by script.
_BEYOND = re.compile(r"\\[uUxpP]")

__all__ = ["Pattern", "PatternError", "read_pattern"]


class Pattern:
    """A pattern, spelled for each engine."""

    __slots__ = ("python", "required", "risky", "rust", "source")

    def __init__(
        self, source: str, rust: str | None, python: str, *, risky: bool, required: str
    ) -> None:
        self.source = source
        # None: only Python can run it.
        self.rust = rust
        self.python = python
        # Python may take years over it, on a line made for that.
        self.risky = risky
        # Text that every match holds, for a quick no; "" when there is none.
        self.required = required

    @property
    def wide(self) -> bool:
        """Whether it asks for characters beyond ASCII, which other encodings spell differently."""
        return not (self.source.isascii() and self.required.isascii()) or (
            _BEYOND.search(self.source) is not None
        )


def read_pattern(source: str, *, literal: bool = False, ignore_case: bool = False) -> Pattern:
    """The pattern that a text describes; raises `PatternError`."""
    if not source:
        raise ToolError("the pattern is empty", hint="Say what to look for.")
    if "\n" in source:
        raise PatternError("it spans lines, and the search is by line", source.index("\n"))
    if half := _HALF.search(source):
        raise PatternError("half of a character is in no text", half.start())
    if literal:
        rust = "".join(spelled(one, python=False) for one in source)
        python = "".join(spelled(one, python=True) for one in source)
        piece = Piece(rust, python, literal=source)
        parser = None
    else:
        parser = Parser(source)
        piece = parser.whole()
    rust, python = piece.rust, piece.python
    if ignore_case:
        rust, python = f"(?i:{rust})", f"(?i:{python})"
    only_python = parser is not None and parser.only_python
    return Pattern(
        source,
        None if only_python else rust,
        python,
        risky=parser is not None and parser.risky,
        required="" if ignore_case or piece.literal is None else piece.literal,
    )
