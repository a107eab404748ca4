"""Default values, written into the schema where JSON can say them."""

from __future__ import annotations

from hermes.core.schema.values import BadValueError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from hermes.core.schema.values import Convert, Schema


class _UnwritableError(Exception):
    """A value that JSON has no form for."""


def as_json(default: object, convert: Convert | None, schema: Schema) -> None:
    """Put a default into the schema, if filling it in would give the handler the same value."""
    try:
        encoded = _encode(default, rich=convert is not None)
        if convert is None or convert(encoded) == default:
            schema["default"] = encoded
    except (_UnwritableError, BadValueError):
        return


def _encode(value: Any, *, rich: bool) -> Any:
    kind = type(value)
    if value is None or kind in (str, int, bool):
        return value
    if kind is float:
        if value - value != 0:  # infinite, or not a number
            raise _UnwritableError
        return value
    if kind in (list, tuple):
        return [_encode(item, rich=rich) for item in value]
    if kind is dict:
        if not all(type(key) is str for key in value):
            raise _UnwritableError
        return {key: _encode(item, rich=rich) for key, item in value.items()}
    if not rich:
        raise _UnwritableError
    if hasattr(kind, "__members__"):
        return _encode(value.value, rich=rich)
    if kind in (set, frozenset):
        return sorted((_encode(item, rich=rich) for item in value), key=repr)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "total_seconds"):
        return value.total_seconds()
    if hasattr(value, "__fspath__") or kind.__module__ in ("decimal", "uuid"):
        return str(value)
    raise _UnwritableError
