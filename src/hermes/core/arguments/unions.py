"""Where several kinds of value are allowed: a value that fits stays, another needs one reading."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes.core.arguments.scalars import is_null_word
from hermes.core.arguments.values import kind, same

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.core.arguments.run import Coercer, Run
    from hermes.core.arguments.schema import Part


class TypesCoercer:
    """Several types in one `type`: a value of any of them stays; another needs one reading."""

    __slots__ = ("_makers", "_types")

    def __init__(self, types: frozenset[str], makers: dict[str, Coercer]) -> None:
        self._types = types | {"integer"} if "number" in types else types
        self._makers = makers

    def __call__(self, value: Any, run: Run) -> Any:
        found = kind(value)
        if found in self._types:
            made = self._makers.get(found)
            return made(value, run) if made and found in ("object", "array") else value
        if "null" in self._types and isinstance(value, str) and is_null_word(value):
            return None
        return _one_reading(value, run, lambda: self._readings(value, run))

    def _readings(self, value: Any, run: Run) -> list[Any]:
        fresh = [made(value, run) for made in self._makers.values()]
        return [item for item in fresh if kind(item) in self._types]


class UnionCoercer:
    """`anyOf` and `oneOf`: a value valid for a branch stays; another needs one reading."""

    __slots__ = ("_branches", "_nullable")

    def __init__(self, branches: list[tuple[Part, Coercer | None]], nullable: bool) -> None:
        self._branches = branches
        self._nullable = nullable

    def __call__(self, value: Any, run: Run) -> Any:
        if self._fits(value, run):
            return value
        if (
            self._nullable
            and isinstance(value, str)
            and is_null_word(value)
            and self._fits(None, run)
        ):
            return None
        if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
            parsed = run.parse(value)
            if isinstance(parsed, dict | list) and self._fits(parsed, run):
                return parsed
        return _one_reading(value, run, lambda: self._readings(value, run))

    def _fits(self, value: Any, run: Run) -> bool:
        return any(run.check(part, value) for part, _ in self._branches)

    def _readings(self, value: Any, run: Run) -> list[Any]:
        readings = []
        for part, made in self._branches:
            run.budget -= 1
            if made and run.budget > 0:
                fresh = made(value, run)
                if fresh is not value and run.check(part, fresh):
                    readings.append(fresh)
        return readings


def _one_reading(value: Any, run: Run, readings: Callable[[], list[Any]]) -> Any:
    """The only reading of a value; wrapping it into an array counts where nothing else does."""
    wrapping, run.wrapping = run.wrapping, False
    try:
        found = readings()
    finally:
        run.wrapping = wrapping
    if not found and wrapping:
        found = readings()
    if not found:
        return value
    if all(same(found[0], other) for other in found[1:]):
        return found[0]
    run.remarks.append((value, "ambiguous: it can be read in more than one way"))
    return value
