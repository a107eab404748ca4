"""JSON values: type names, strict equality, short display."""

from __future__ import annotations

from typing import Any

MAX_DEPTH = 200
"""Nesting allowed in arguments; validators and callers recurse, models never come near it."""

# Python turns integers past 4,300 digits into text only on request, and the validator lets
# numbers that it can't turn into text slip past `maximum`.
_MAX_BITS = 14_283

_HARMLESS = frozenset((str, bool, type(None)))
_SMALL = 1 << 64

_KINDS: dict[type, str] = {
    str: "string",
    int: "integer",
    bool: "boolean",
    dict: "object",
    list: "array",
    tuple: "array",
    type(None): "null",
}


class ExactFloat(float):
    """A float that remembers how it was written: 1.10 is not 1.1 once it becomes a string."""

    __slots__ = ("text",)

    text: str


def kind(value: Any) -> str:
    """The JSON type of a value; a float without a fraction is an "integer" as in JSON Schema."""
    found = _KINDS.get(type(value))
    if found is not None:
        return found
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    for base in (bool, int, str, dict, list):
        if isinstance(value, base):
            return _KINDS[base]
    return type(value).__name__


def same(left: Any, right: Any) -> bool:
    """Whether two JSON values are equal; unlike `==`, true is not 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def is_simple(arguments: dict[str, Any]) -> bool:
    """Whether there are only texts, booleans, nulls and integers of a usual size."""
    for value in arguments.values():
        what = type(value)
        if what is int:
            if -_SMALL < value < _SMALL:
                continue
        elif what in _HARMLESS:
            continue
        return False
    return True


def unusable(arguments: dict[str, Any]) -> str | None:
    """Why a value is refused under any schema: too deep, too large, not JSON."""
    level: list[Any] = [arguments]
    for _ in range(MAX_DEPTH):
        inner: list[Any] = []
        for container in level:
            for value in container.values() if isinstance(container, dict) else container:
                what = type(value)
                if what is str or what is bool:
                    continue
                if what is int:
                    if value.bit_length() > _MAX_BITS:
                        return "a number has too many digits"
                elif what is float:
                    if value - value != 0:
                        return f"{value} is not a JSON number"
                elif isinstance(value, (dict, list, tuple)) and value:
                    inner.append(value)
        if not inner:
            return None
        level = inner
    return f"nested more than {MAX_DEPTH} levels deep"


def has_other_keys(value: Any) -> bool:
    """Whether an object somewhere in a value has keys that are no strings."""
    if isinstance(value, dict):
        return not all(isinstance(key, str) for key in value) or any(
            map(has_other_keys, value.values())
        )
    return isinstance(value, (list, tuple)) and any(map(has_other_keys, value))


def plain(value: Any, *, encodable: bool = False) -> Any:
    """A copy made of the plain JSON types only; with `encodable`, also without lone surrogates.

    Lone surrogates are legal in JSON text but not in UTF-8, so the validator can't see them;
    each gets a stand-in of the same length from the last private plane.
    """
    if isinstance(value, str):
        text = str.__str__(value)
        return text.translate(_STAND_INS) if encodable and not text.isascii() else text
    if isinstance(value, dict):
        return {
            plain(key, encodable=encodable): plain(item, encodable=encodable)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [plain(item, encodable=encodable) for item in value]
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return int(value)
    return float(value) if isinstance(value, float) else value


class _StandIns(dict[int, int]):
    def __missing__(self, code: int) -> int:
        return code + 0x102000 if 0xD800 <= code <= 0xDFFF else code


_STAND_INS = _StandIns()


def excerpt(value: Any, limit: int = 80) -> str:
    """A value as JSON text, cut in the middle to at most `limit` characters."""
    import json

    if isinstance(value, str):
        # Only the two ends can show, so a long text is not encoded as a whole.
        short = value if len(value) <= 2 * limit else value[:limit] + value[-limit:]
        text = json.dumps(short, ensure_ascii=False)
    else:
        try:
            text = json.dumps(value, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError):
            text = f"<{type(value).__name__}>"
    return shorten(text, limit)


def shorten(text: str, limit: int) -> str:
    """A text cut in the middle to at most `limit` characters, safe to print and to encode."""
    if len(text) > limit:
        tail = limit // 3
        text = text[: limit - tail - 1] + "…" + text[-tail:]
    return text.encode("utf-8", "backslashreplace").decode()
