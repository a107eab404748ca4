"""Redaction inside nested values, and JSON that has to stay JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_DEEPEST = 200


def redact_nested(value: Any, redact: Callable[[str], str], *, depth: int = 0) -> Any:
    """`value` with `redact` done to every text in it, each judged together with its key."""
    if isinstance(value, str):
        return redact(value)
    if depth > _DEEPEST:
        # Deeper than any real result: nothing of it is shown rather than shown unread.
        return "[REDACTED:depth]"
    if isinstance(value, dict):
        named = _named(value)
        return {
            redact(key) if isinstance(key, str) else key: redact_nested(
                item, redact, depth=depth + 1
            )
            if not isinstance(key, str) or not isinstance(item, (str, int))
            else _under_key(
                named if named and key.lower() in ("value", "val") else key, item, redact
            )
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return type(value)([redact_nested(item, redact, depth=depth + 1) for item in value])
    return value


def _named(value: dict[Any, Any]) -> str | None:
    """The `name` of a `{"name": …, "value": …}`."""
    for key in ("name", "key", "Name", "Key"):
        if isinstance(value.get(key), str):
            return str(value[key])
    return None


def _under_key(key: str, item: str | int, redact: Callable[[str], str]) -> Any:
    import json

    if isinstance(item, bool):
        return item
    if isinstance(item, int):
        pair = f"{json.dumps(key)}: {item}"
        return item if redact(pair) == pair else "[REDACTED:number]"
    plain = redact(item)
    if len(item) > 20_000:
        return plain
    # The pair as JSON text says whether the key makes a secret of the value.
    prefix = json.dumps(key) + ": "
    pair = prefix + json.dumps(item)
    masked = redact(pair)
    if masked == pair or not masked.startswith(prefix + '"[REDACTED:') or not masked.endswith(']"'):
        return plain
    whole: str = json.loads(masked[len(prefix) :])
    return whole if whole.count("[REDACTED:") == 1 else plain


def keep_json_valid(text: str, masked: str, redact: Callable[[str], str]) -> str:
    """`masked`, or where that is no longer the JSON that `text` was, each value masked alone."""
    head = text.lstrip()[:1]
    if head not in ("{", "[", '"') or _parses(masked):
        return masked
    import json

    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return masked
    return json.dumps(redact_nested(document, redact), ensure_ascii=text.isascii())


def _parses(text: str) -> bool:
    import json

    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
