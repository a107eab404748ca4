"""Default values of a schema, filled in for absent keys."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from hermes.core.arguments.compiled_schema import child

if TYPE_CHECKING:
    from hermes.core.arguments.compiled_schema import Document, Schema

Filler = Callable[[Any], Any]

_ABSENT: Any = object()
_IMMUTABLE = (str, int, float, bool, type(None))


class Defaults:
    """Builds the filler of a document, each piece of the schema once."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._made: dict[str, Filler | None] = {}
        self._referring = False

    def filler(self) -> Filler | None:
        """A function that adds defaults to a copy; None where the schema has none to add."""
        if not self._document.has_defaults:
            return None
        try:
            made = self._at(self._document.root, "")
        except RecursionError:
            return None
        if made is None or not self._referring:
            return made

        def fill(value: Any) -> Any:
            try:
                return made(value)
            except RecursionError:
                # References that only lead to each other.
                return value

        return fill

    def _at(self, schema: Schema, pointer: str) -> Filler | None:
        if isinstance(schema, bool):
            return None
        if pointer in self._made:
            return self._made[pointer]
        self._made[pointer] = lambda value: made(value) if (made := self._made[pointer]) else value
        steps = [
            step
            for step in (
                self._object(schema, pointer),
                self._array(schema, pointer),
                self._reference(schema),
                *(
                    self._at(branch, child(pointer, "allOf", at))
                    for at, branch in enumerate(schema.get("allOf", ()))
                ),
                *(self._union(schema, pointer, keyword) for keyword in ("anyOf", "oneOf")),
            )
            if step is not None
        ]
        self._made[pointer] = _chain(steps)
        return self._made[pointer]

    def _reference(self, schema: dict[str, Any]) -> Filler | None:
        target = self._document.resolve(schema.get("$ref"))
        self._referring = self._referring or target is not None
        return self._at(*target) if target else None

    def _object(self, schema: dict[str, Any], pointer: str) -> Filler | None:
        absent: list[tuple[str, Any, bool]] = []
        inner: list[tuple[str, Filler]] = []
        for name, value in schema.get("properties", {}).items():
            at = child(pointer, "properties", name)
            made = self._at(value, at)
            if made:
                inner.append((name, made))
            default = self._default(value, at)
            if default is not _ABSENT:
                if made:
                    default = made(default)
                absent.append((name, default, not isinstance(default, _IMMUTABLE)))
        others = schema.get("additionalProperties", True)
        rest = self._at(others, child(pointer, "additionalProperties"))
        if not absent and not inner and not rest:
            return None
        known = schema.get("properties", {})

        def fill(value: Any) -> Any:
            if not isinstance(value, dict):
                return value
            new = value
            for name, default, mutable in absent:
                if name not in value:
                    if new is value:
                        new = dict(value)
                    new[name] = deepcopy(default) if mutable else default
            for name, made in inner:
                if name in value and (fresh := made(value[name])) is not value[name]:
                    if new is value:
                        new = dict(value)
                    new[name] = fresh
            if rest and "patternProperties" not in schema:
                for name in value.keys() - known.keys():
                    if (fresh := rest(value[name])) is not value[name]:
                        if new is value:
                            new = dict(value)
                        new[name] = fresh
            return new

        return fill

    def _default(self, schema: Schema, pointer: str) -> Any:
        holder, seen = schema, {pointer}
        while isinstance(holder, dict) and "default" not in holder:
            target = self._document.resolve(holder.get("$ref"))
            if target is None or target[1] in seen:
                return _ABSENT
            holder = target[0]
            seen.add(target[1])
        if isinstance(holder, bool):
            return _ABSENT
        default = holder["default"]
        return default if self._document.part(pointer).check(default) else _ABSENT

    def _array(self, schema: dict[str, Any], pointer: str) -> Filler | None:
        items = schema.get("items", True)
        if isinstance(items, list) or "prefixItems" in schema:
            return None
        made = self._at(items, child(pointer, "items"))
        if made is None:
            return None

        def fill(value: Any) -> Any:
            if not isinstance(value, list):
                return value
            fresh = [made(item) for item in value]
            return value if all(map(_is, fresh, value)) else fresh

        return fill

    def _union(self, schema: dict[str, Any], pointer: str, keyword: str) -> Filler | None:
        branches = [
            (at, branch, self._document.types(branch) & {"object", "array"})
            for at, branch in enumerate(schema.get(keyword, ()))
        ]
        fitting = [(at, branch) for at, branch, types in branches if types]
        if len(fitting) != 1:
            return None
        at, branch = fitting[0]
        return self._at(branch, child(pointer, keyword, at))


def _chain(steps: list[Filler]) -> Filler | None:
    if len(steps) < 2:
        return steps[0] if steps else None

    def fill(value: Any) -> Any:
        for step in steps:
            value = step(value)
        return value

    return fill


def _is(left: Any, right: Any) -> bool:
    return left is right
