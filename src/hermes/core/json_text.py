"""JSON encoder for all text that leaves Hermes: valid UTF-8, no NaN, no lone surrogates."""

from __future__ import annotations

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_fast: Callable[[Any], bytes] | None = None


def to_json(value: Any) -> str:
    """`value` as compact JSON text; always valid."""
    global _fast
    if _fast is None:
        # Ten times as fast as the standard library for small values; imported at the first use.
        import msgspec

        _fast = msgspec.json.Encoder(enc_hook=plain).encode
    try:
        return _fast(value).decode()
    except (TypeError, ValueError, OverflowError, RecursionError):
        # Integers past 64 bits, lone surrogates, odd keys, cycles.
        return _careful(value)


def plain(value: Any) -> Any:
    """The nearest JSON value for an object that JSON has no word for."""
    try:
        return _spelled(value)
    except Exception:  # noqa: BLE001 - an object that can't say what it is must not lose the rest
        return f"<{type(value).__name__}>"


def _spelled(value: Any) -> Any:
    import enum
    from collections.abc import Collection, Mapping
    from pathlib import PurePath

    if value is None or isinstance(value, bool):
        # As a key; elsewhere JSON has words for them.
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, (list, tuple, dict)):
        return str(value)
    if isinstance(value, type):
        return value.__qualname__
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {value}"
    if hasattr(value, "isoformat") and isinstance(text := value.isoformat(), str):
        return text
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).decode("utf-8", "backslashreplace")
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr)
    if hasattr(value, "__dataclass_fields__"):
        return {name: getattr(value, name) for name in value.__dataclass_fields__}
    if hasattr(value, "_asdict") and isinstance(fields := value._asdict(), dict):
        return fields
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Collection):
        return list(value)
    return str(value)


def _careful(value: Any) -> str:
    import json

    text = json.dumps(
        _jsonable(value, ()), ensure_ascii=False, separators=(",", ":"), allow_nan=False
    )
    # A lone surrogate can't be written as UTF-8; its escape, which is JSON's too, can.
    return text.encode("utf-8", "backslashreplace").decode()


def _jsonable(value: Any, above: tuple[int, ...]) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        # Python refuses to spell longer ones in decimal.
        return int(value) if value.bit_length() < 14_000 else f"{value:#x}"
    if isinstance(value, float):
        return float(value) if value - value == 0 else None
    if isinstance(value, (bytes, bytearray, memoryview)):
        # As the fast encoder spells them.
        import base64

        return base64.b64encode(value).decode()
    if id(value) in above or len(above) > 100:
        return "…"
    inside = (*above, id(value))
    if isinstance(value, dict):
        return {_key(key): _jsonable(item, inside) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_jsonable(item, inside) for item in value]
    return _jsonable(plain(value), inside)


def _key(key: Any) -> str:
    if isinstance(key, str):
        return str(key)
    if isinstance(key, bool) or key is None:
        return {True: "true", False: "false", None: "null"}[key]
    if isinstance(key, int) and key.bit_length() >= 14_000:
        return f"{key:#x}"
    return str(key if isinstance(key, (int, float, tuple)) else plain(key))
