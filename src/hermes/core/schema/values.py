"""Converters: from a plain JSON value to the Python value that a handler is annotated with."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    Schema: TypeAlias = dict[str, Any]
    Convert: TypeAlias = Callable[[Any], Any]
    Shape: TypeAlias = tuple[Schema, Convert | None]  # how a value looks, and its way back


class HintError(Exception):
    """A type hint that no schema can be made from; `advice` says what to write instead."""

    def __init__(self, reason: str, *, advice: str) -> None:
        super().__init__(reason)
        self.advice = advice


class BadValueError(ValueError):
    """A JSON value that does not make the Python value; `path` leads to it from the parameter."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = ""

    def inside(self, step: str | int) -> BadValueError:
        """The same error, seen from the container that holds the value."""
        self.path = (f"[{step}]" if isinstance(step, int) else f".{step}") + self.path
        return self


def each(convert: Convert, values: Any) -> list[Any]:
    """Every item converted, in order."""
    converted = []
    for index, value in enumerate(values):
        try:
            converted.append(convert(value))
        except BadValueError as error:
            raise error.inside(index) from None
    return converted


def shown(value: object) -> str:
    """A value as a message quotes it: never long."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
