"""Redaction inside nested values, and JSON that has to stay JSON."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    # What stands in a secret's place, from its value, its kind, and whether it was a bare number.
    Show = Callable[[str, str, bool], str]

    class Again(Protocol):
        """The redaction that single values are given to."""

        def __call__(self, text: str, *, show: Show | None = None) -> str: ...


_DEEPEST = 200
_MARK = re.compile(r"\[REDACTED:([\w\-]+)\]")


def redact_nested(value: Any, redact: Again, show: Show | None = None, *, depth: int = 0) -> Any:
    """`value` with `redact` done to every text in it, each judged together with its key."""
    if isinstance(value, str):
        return redact(value, show=show)
    if depth > _DEEPEST:
        # Deeper than any real result: nothing of it is shown rather than shown unread.
        return "[REDACTED:depth]"
    if isinstance(value, dict):
        named = _named(value)
        return {
            redact(key, show=show) if isinstance(key, str) else key: redact_nested(
                item, redact, show, depth=depth + 1
            )
            if not isinstance(key, str) or not isinstance(item, (str, int))
            else _under_key(
                named if named and key.lower() in ("value", "val") else key, item, redact, show
            )
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return type(value)([redact_nested(item, redact, show, depth=depth + 1) for item in value])
    return value


def _named(value: dict[Any, Any]) -> str | None:
    """The `name` of a `{"name": …, "value": …}`."""
    for key in ("name", "key", "Name", "Key"):
        if isinstance(value.get(key), str):
            return str(value[key])
    return None


def _under_key(key: str, item: str | int, redact: Again, show: Show | None) -> Any:
    import json

    if isinstance(item, bool):
        return item
    if isinstance(item, int):
        pair = f"{json.dumps(key)}: {item}"
        if redact(pair) == pair:
            return item
        return show(str(item), "number", True) if show else "[REDACTED:number]"
    plain = redact(item, show=show)
    if len(item) > 20_000:
        return plain
    # The pair as JSON text says whether the key makes a secret of the value.
    prefix = json.dumps(key) + ": "
    pair = prefix + json.dumps(item)
    masked = redact(pair)
    if masked == pair or not masked.startswith(prefix + '"[REDACTED:') or not masked.endswith(']"'):
        return plain
    whole: str = json.loads(masked[len(prefix) :])
    mark = _MARK.fullmatch(whole)
    if not mark:
        return plain
    return show(item, mark[1], False) if show else whole


def keep_json_valid(text: str, masked: str, redact: Again, show: Show | None = None) -> str:
    """`masked`, or where that is no longer the JSON that `text` was, each value masked alone."""
    if text.lstrip()[:1] not in ("{", "[", '"') or is_json(masked):
        return masked
    import json

    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return masked
    return json.dumps(redact_nested(document, redact, show), ensure_ascii=text.isascii())


def is_json(text: str) -> bool:
    """Whether a text is a JSON object, array or string."""
    if text.lstrip()[:1] not in ("{", "[", '"'):
        return False
    import json

    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def unwritten(show: Show) -> Show:
    """`show` for pieces of JSON text: it is given what they stand for."""
    import json

    def shown(value: str, kind: str, number: bool) -> str:
        try:
            return show(str(json.loads(f'"{value}"', strict=False)), kind, number)
        except ValueError:
            return show(value, kind, number)

    return shown
