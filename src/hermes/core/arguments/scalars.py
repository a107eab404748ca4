"""Numbers, booleans, null and enum members out of text, and numbers into text.

Each function gives the one exact value, or `NOTHING` where there is none.
"""

from __future__ import annotations

import re
from typing import Any, Final

from hermes.core.arguments.values import ExactFloat, same

SPACE: Final = " \t\r\n"
NOTHING: Final[Any] = type("Nothing", (), {"__repr__": lambda _: "NOTHING"})()

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_MAX_DIGITS = 4_300


def to_integer(text: str) -> Any:
    """The integer that JSON number text stands for: `42`, and exactly also `42.0` and `1e3`."""
    text = text.strip(SPACE)
    if text.isdigit() and text.isascii() and text[0] != "0" and len(text) <= _MAX_DIGITS:
        return int(text)
    found = _NUMBER.fullmatch(text)
    if found is None or len(text) > _MAX_DIGITS:
        return NOTHING
    if found.lastindex is None:
        return int(text)
    exact = _decimal(text)
    if exact.adjusted() >= _MAX_DIGITS or exact != exact.to_integral_value():
        return NOTHING
    return int(exact)


def to_number(text: str) -> Any:
    """The number that JSON number text stands for, where Python holds it without rounding."""
    text = text.strip(SPACE)
    found = _NUMBER.fullmatch(text)
    if found is None or len(text) > _MAX_DIGITS:
        return NOTHING
    if found.lastindex is None:
        return int(text)
    value = float(text)
    if len(text) <= 15 and found.lastindex == 1:
        return value
    if value - value != 0:
        return NOTHING
    exact = _decimal(text)
    # Digits beyond what a double can tell apart would be lost without a word.
    return value if exact in (_decimal(repr(value)), _decimal(f"{value:.17g}")) else NOTHING


def to_boolean(text: str) -> Any:
    """True or False for `true` and `false` in any case."""
    word = text.strip(SPACE).lower()
    if word == "true":
        return True
    return False if word == "false" else NOTHING


def is_null_word(text: str) -> bool:
    """Whether a text can only mean null, where text itself is not allowed."""
    return text == "" or text.strip(SPACE) in ("null", "None")


def to_string(value: Any) -> Any:
    """The decimal text of a number, as it was written where that is known."""
    if isinstance(value, ExactFloat):
        return value.text
    if isinstance(value, bool) or not isinstance(value, int | float):
        return NOTHING
    return repr(value)


def to_member(value: Any, members: list[Any]) -> Any:
    """The one member that a value means: other case, outer space, or the other spelling."""
    if any(same(value, member) for member in members):
        return value
    if not isinstance(value, str):
        text = ("false", "true")[value] if isinstance(value, bool) else to_string(value)
        return text if text is not NOTHING and text in members else NOTHING
    word = value.strip(SPACE)
    names = [member for member in members if isinstance(member, str)]
    for fitting in (
        [name for name in names if name.strip(SPACE) == word],
        [name for name in names if name.strip(SPACE).lower() == word.lower()],
    ):
        if fitting:
            return fitting[0] if len(fitting) == 1 else NOTHING
    readings = [to_number(value), to_boolean(value), None if is_null_word(value) else NOTHING]
    fitting = [
        member
        for member in members
        if any(reading is not NOTHING and same(reading, member) for reading in readings)
    ]
    return fitting[0] if fitting else NOTHING


def _decimal(text: str) -> Any:
    from decimal import Decimal

    return Decimal(text)
