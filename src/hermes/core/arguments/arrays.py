"""What becomes an array: array text is read, a bare value is wrapped, items are repaired in turn.

A text that looks like a broken array is neither: wrapping it would hide that something is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes.core.arguments.lenient import TextError
from hermes.core.arguments.values import kind

if TYPE_CHECKING:
    from hermes.core.arguments.run import Coercer, Run

_OPENERS = "[(\"'“‘`"
_INNER_OPENERS = "\"'“‘{[("


class ArrayCoercer:
    """Repairs the items of an array, and makes an array of text or of a bare value."""

    __slots__ = ("_item", "_item_types", "_prefix")

    def __init__(
        self, item: Coercer | None, prefix: list[Coercer | None], item_types: frozenset[str]
    ) -> None:
        self._item = item
        self._prefix = prefix
        self._item_types = item_types

    def __call__(self, value: Any, run: Run) -> Any:
        if isinstance(value, list):
            return self._repair(value, run)
        if isinstance(value, str):
            if not value or value.isspace():
                return value
            if value.lstrip("\ufeff \t\r\n")[:1] in _OPENERS:
                found = run.parse(value)
                if isinstance(found, list):
                    return self._repair(found, run)
                if isinstance(found, TextError) and _is_broken_array(value, found):
                    run.remarks.append((value, f"the text is no JSON array: {found.reason}"))
                    return value
        return self._wrap(value, run)

    def _repair(self, items: list[Any], run: Run) -> list[Any]:
        if self._item is None and not self._prefix:
            return items
        wrapping = run.wrapping
        # [1, 2] where arrays of arrays are wanted could be [[1], [2]] as well as [[1, 2]].
        run.wrapping = wrapping and "array" not in self._item_types
        new = items
        for at, item in enumerate(items):
            fresh = self._coerce(at, item, run)
            if fresh is not item:
                if new is items:
                    new = items.copy()
                new[at] = fresh
        run.wrapping = wrapping
        return new

    def _wrap(self, value: Any, run: Run) -> Any:
        if value is None or not run.wrapping:
            return value
        item = self._coerce(0, value, run)
        found = kind(item)
        return [item] if found in self._item_types else value

    def _coerce(self, at: int, item: Any, run: Run) -> Any:
        made = self._prefix[at] if at < len(self._prefix) else self._item
        return made(item, run) if made else item


def _is_broken_array(text: str, error: TextError) -> bool:
    """Whether a text that can't be read was meant as an array, unlike `[a-z]*.py`."""
    text = text.strip("\ufeff \t\r\n")
    if text[0] not in "[(":
        return False
    inner = text[1:].lstrip()[:1]
    return (bool(inner) and inner in _INNER_OPENERS) or (
        text[0] == "[" and (error.kind != "invalid" or text.endswith("]"))
    )
