"""What becomes an object: object text is read, members are repaired in turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes.core.arguments.lenient import TextError

if TYPE_CHECKING:
    import re

    from hermes.core.arguments.run import Coercer, Run


def parse_object(value: Any, run: Run) -> Any:
    """The object that a text spells; any other value as it is."""
    if not isinstance(value, str) or not value or value.isspace():
        return value
    found = run.parse(value)
    if isinstance(found, TextError):
        run.remarks.append((value, f"the text is no JSON object: {found.reason}"))
    return found if isinstance(found, dict) else value


class ObjectCoercer:
    """Repairs the members of an object, and reads one from text."""

    __slots__ = ("_named", "_others", "_patterns")

    def __init__(
        self,
        named: dict[str, Coercer | None],
        patterns: list[tuple[re.Pattern[str], Coercer | None]],
        others: Coercer | None,
    ) -> None:
        self._named = named
        self._patterns = patterns
        self._others = others

    def __call__(self, value: Any, run: Run) -> Any:
        if not isinstance(value, dict):
            value = parse_object(value, run)
            if not isinstance(value, dict):
                return value
        new = value
        named, patterns = self._named, self._patterns
        others = None if patterns else self._others
        for key, item in value.items():
            made = named.get(key, others)
            fresh = made(item, run) if made else item
            if patterns:
                fresh = self._by_pattern(key, fresh, run)
            if fresh is not item:
                if new is value:
                    new = dict(value)
                new[key] = fresh
        return new

    def _by_pattern(self, key: str, item: Any, run: Run) -> Any:
        matched = [
            made for pattern, made in self._patterns if isinstance(key, str) and pattern.search(key)
        ]
        if not matched and key not in self._named:
            matched = [self._others]
        for made in matched:
            item = made(item, run) if made else item
        return item
