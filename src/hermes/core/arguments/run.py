"""What one coercion carries along: remarks for the error, and what is still allowed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hermes.core.arguments.lenient import TextError
from hermes.core.arguments.text import parse_container
from hermes.core.arguments.values import plain

if TYPE_CHECKING:
    from hermes.core.arguments.schema import Part

_BUDGET = 5_000
"""Union branches tried in one call; recursive unions would otherwise grow without end."""


class Run:
    """The state of one coercion.

    `remarks` holds values that stayed as they were, each with the reason. `wrapping` says whether
    a bare value may become an array. `parsed` says whether some numbers remember their text.
    """

    __slots__ = ("budget", "parsed", "remarks", "wrapping")

    def __init__(self) -> None:
        self.budget = _BUDGET
        self.parsed = False
        self.remarks: list[tuple[Any, str]] = []
        self.wrapping = True

    def parse(self, text: str) -> dict[str, Any] | list[Any] | TextError | None:
        """The object or array that a text spells, None for another value, or why it is none."""
        try:
            found = parse_container(text)
        except TextError as error:
            return error
        self.parsed = self.parsed or "." in text or "e" in text or "E" in text
        return found

    def check(self, part: Part, value: Any) -> bool:
        """Whether a value on its way is valid for a piece of the schema."""
        return part.check(plain(value) if self.parsed else value)


Coercer = Callable[[Any, Run], Any]
