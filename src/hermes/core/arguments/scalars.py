"""Numbers, booleans, null and enum members out of text, and numbers into text.

Each `to_…` gives the one exact value, or the very value it got where there is none.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from hermes.core.arguments.values import ExactFloat, same

if TYPE_CHECKING:
    from hermes.core.arguments.run import Coercer, Run

SPACE: Final = " \t\r\n"

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_MAX_DIGITS = 4_300


def to_integer(value: Any, _: Run | None = None) -> Any:
    """The integer that JSON number text stands for: `42`, and exactly also `42.0` and `1e3`."""
    if not isinstance(value, str):
        return value
    text = value.strip(SPACE)
    if text.isdigit() and text.isascii() and text[0] != "0" and len(text) <= _MAX_DIGITS:
        return int(text)
    found = _NUMBER.fullmatch(text)
    if found is None or len(text) > _MAX_DIGITS:
        return value
    if found.lastindex is None:
        return int(text)
    exact = _decimal(text)
    if exact.adjusted() >= _MAX_DIGITS or exact != exact.to_integral_value():
        return value
    return int(exact)


def to_number(value: Any, _: Run | None = None) -> Any:
    """The number that JSON number text stands for, where Python holds it without rounding."""
    if not isinstance(value, str):
        return value
    text = value.strip(SPACE)
    found = _NUMBER.fullmatch(text)
    if found is None or len(text) > _MAX_DIGITS:
        return value
    if found.lastindex is None:
        return int(text)
    number = float(text)
    if len(text) <= 15 and found.lastindex == 1:
        return number
    if number - number != 0:
        return value
    exact = _decimal(text)
    # Digits beyond what a double can tell apart would be lost without a word.
    return number if exact in (_decimal(repr(number)), _decimal(f"{number:.17g}")) else value


def to_boolean(value: Any, _: Run | None = None) -> Any:
    """True or False for `true` and `false` in any case."""
    if not isinstance(value, str):
        return value
    word = value.strip(SPACE).lower()
    if word == "true":
        return True
    return False if word == "false" else value


def to_null(value: Any, _: Run | None = None) -> Any:
    """None for a text that can only mean that."""
    return None if isinstance(value, str) and is_null_word(value) else value


def is_null_word(text: str) -> bool:
    """Whether a text can only mean null, where text itself is not allowed."""
    return text == "" or text.strip(SPACE) in ("null", "None")


def to_string(value: Any, _: Run | None = None) -> Any:
    """The decimal text of a number, as it was written where that is known."""
    if isinstance(value, str):
        return value
    if isinstance(value, ExactFloat):
        return value.text
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    return repr(value)


def to_member(value: Any, members: list[Any]) -> Any:
    """The one member that a value means: other case, outer space, or the other spelling."""
    if any(same(value, member) for member in members):
        return value
    if not isinstance(value, str):
        text = ("false", "true")[value] if isinstance(value, bool) else to_string(value)
        return text if text in members else value
    word = value.strip(SPACE)
    names = [member for member in members if isinstance(member, str)]
    for fitting in (
        [name for name in names if name.strip(SPACE) == word],
        [name for name in names if name.strip(SPACE).lower() == word.lower()],
    ):
        if fitting:
            return fitting[0] if len(fitting) == 1 else value
    readings = (to_number(value), to_boolean(value), to_null(value))
    for member in members:
        if any(same(reading, member) for reading in readings):
            return member
    return value


def _decimal(text: str) -> Any:
    from decimal import Decimal

    return Decimal(text)


SCALARS: Final[dict[str, Coercer]] = {
    "integer": to_integer,
    "number": to_number,
    "boolean": to_boolean,
    "string": to_string,
    "null": to_null,
}
