"""Atomic types: standard library classes that JSON holds as a string or a number."""

from __future__ import annotations

from hermes.core.schema.field import BadValueError, HintError, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from hermes.core.schema.field import Convert, Schema, Shape

PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_KINDS = {**PLAIN, list: "array", dict: "object"}
JSON_KINDS = frozenset(_KINDS.values())


def atom(cls: type) -> Shape | None:
    """The shape of a class that stands for one value; None when it is not such a class."""
    if cls in PLAIN:
        return {"type": PLAIN[cls]}, None
    if cls is object:
        return {}, None
    known = _STANDARD.get((cls.__module__.partition(".")[0], cls.__name__))
    if known is not None:
        schema, make, expected = known
        return dict(schema), _reader(cls, make, expected)
    if hasattr(cls, "__members__") and hasattr(cls, "_value2member_map_"):
        return _enum(cls)
    for base in (str, int, float):
        if issubclass(cls, base) and not hasattr(cls, "__origin__"):
            return {"type": PLAIN[base]}, _reader(cls, lambda own, value: own(value), cls.__name__)
    return None


def one_of(values: Iterable[Any]) -> Schema:
    """The schema of a choice between plain values; HintError when JSON can't write one."""
    choices: list[Any] = []
    for value in values:
        if type(value) not in PLAIN:
            raise HintError(
                f"{value!r} is not a value that JSON can write",
                advice="Use text or numbers as the values to choose from.",
            )
        # 1 and True are equal in Python and two values in JSON.
        if not any(value == other and type(value) is type(other) for other in choices):
            choices.append(value)
    kinds = list(dict.fromkeys(PLAIN[type(value)] for value in choices))
    return {"type": kinds[0] if len(kinds) == 1 else kinds, "enum": choices}


def kind(value: object) -> str:
    """The JSON type name of a Python type."""
    return _KINDS.get(type(value), type(value).__name__)


def _enum(cls: Any) -> Shape:
    if hasattr(cls, "_boundary_"):  # flags combine, so every number may be one
        return {"type": "integer"}, _reader(cls, lambda own, value: own(value), cls.__name__)
    members = {member.value: member for member in cls}
    if not members:
        raise HintError(f"{cls.__name__} has no members", advice="Give the enum its members.")

    def convert(value: Any) -> Any:
        if isinstance(value, cls):
            return value
        try:
            return members[value]
        except (KeyError, TypeError):
            choices = ", ".join(map(repr, members))
            raise BadValueError(f"expected one of {choices}, received {shown(value)}") from None

    return one_of(members), convert


def _reader(cls: type, make: Callable[[Any, Any], Any], expected: str) -> Convert:
    def convert(value: Any) -> Any:
        if isinstance(value, cls):
            return value
        try:
            return make(cls, value)
        except (ValueError, TypeError, ArithmeticError) as error:
            raise BadValueError(f"expected {expected}, received {shown(value)} ({error})") from None

    return convert


def _iso(cls: Any, value: Any) -> Any:
    return cls.fromisoformat(value)


def _decimal(cls: Any, value: Any) -> Any:
    if isinstance(value, bool):
        raise TypeError("a boolean is not a number")
    number = cls(str(value).strip())
    if not number.is_finite():
        raise ValueError("not a finite number")
    return number


def _base64(cls: Any, value: Any) -> Any:
    from binascii import a2b_base64

    return cls(a2b_base64(value, strict_mode=True))


def _duration(cls: Any, value: Any) -> Any:
    if isinstance(value, bool):
        raise TypeError("a boolean is not a duration")
    if isinstance(value, (int, float)):
        return cls(seconds=value)
    sign = -1 if value[:1] == "-" else 1
    text = value.lstrip("+-").upper()
    days, clock, times = text[1:].partition("T")
    if text[:1] != "P" or len(text) < 3 or (clock and not times):
        raise ValueError("not like P1DT2H30M")
    parts = {**_amounts(days, "WD"), **_amounts(times, "HMS")}
    words = {"W": "weeks", "D": "days", "H": "hours", "M": "minutes", "S": "seconds"}
    return sign * cls(**{words[unit]: amount for unit, amount in parts.items()})


def _amounts(text: str, units: str) -> dict[str, float]:
    """The numbers of an ISO duration by their unit letter, which stand in the order of `units`."""
    amounts: dict[str, float] = {}
    start = 0
    for position, character in enumerate(text):
        if character in "0123456789.,":
            continue
        if character not in units or character in amounts or start == position:
            raise ValueError("years and months have no fixed length; use weeks, days, hours")
        units = units[units.index(character) :]
        number = text[start:position].replace(",", ".")
        amounts[character] = float(number) if "." in number else int(number)
        start = position + 1
    if start != len(text):
        raise ValueError("a number without a unit")
    return amounts


def _text(cls: Any, value: Any) -> Any:
    if not isinstance(value, str):
        raise TypeError("not text")
    return cls(value)


_PATH = ({"type": "string"}, _text, "a path")
_BYTES = ({"type": "string", "contentEncoding": "base64"}, _base64, "bytes in base64")
_STANDARD: dict[tuple[str, str], tuple[Schema, Callable[[Any, Any], Any], str]] = {
    ("datetime", "datetime"): (
        {"type": "string", "format": "date-time"},
        _iso,
        "a date and time like 2031-05-17T14:30:00Z",
    ),
    ("datetime", "date"): ({"type": "string", "format": "date"}, _iso, "a date like 2031-05-17"),
    ("datetime", "time"): ({"type": "string", "format": "time"}, _iso, "a time like 14:30:00"),
    ("datetime", "timedelta"): (
        {"type": ["number", "string"], "format": "duration"},
        _duration,
        "seconds or a duration like PT1H30M",
    ),
    ("uuid", "UUID"): ({"type": "string", "format": "uuid"}, _text, "a UUID"),
    ("decimal", "Decimal"): ({"type": ["number", "string"]}, _decimal, "a decimal number"),
    ("builtins", "bytes"): _BYTES,
    ("builtins", "bytearray"): _BYTES,
    ("pathlib", "Path"): _PATH,
    ("pathlib", "PurePath"): _PATH,
    ("pathlib", "PosixPath"): _PATH,
    ("pathlib", "PurePosixPath"): _PATH,
    ("pathlib", "WindowsPath"): _PATH,
    ("pathlib", "PureWindowsPath"): _PATH,
    ("ipaddress", "IPv4Address"): ({"type": "string", "format": "ipv4"}, _text, "an IPv4 address"),
    ("ipaddress", "IPv6Address"): ({"type": "string", "format": "ipv6"}, _text, "an IPv6 address"),
}
