"""Coercion plan: a JSON schema compiled once into functions that coerce values."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from hermes.core.arguments.coerce import (
    SCALARS,
    ArrayCoercer,
    ObjectCoercer,
    Run,
    TypesCoercer,
    UnionCoercer,
    parse_object,
    to_member,
)
from hermes.core.arguments.compiled_schema import child
from hermes.core.arguments.json_values import kind

if TYPE_CHECKING:
    from hermes.core.arguments.coerce import Coercer
    from hermes.core.arguments.compiled_schema import Document, Schema


class Plan:
    """The coercions of one document."""

    __slots__ = ("_coerce",)

    def __init__(self, document: Document) -> None:
        try:
            self._coerce = _Planner(document).plan()
        except RecursionError:
            # Too deep to repair; the validator still decides.
            self._coerce = None

    def run(self, arguments: dict[str, Any], *, parsed: bool) -> tuple[dict[str, Any], Run]:
        """The coerced arguments, and remarks on values that could not be coerced."""
        run = Run()
        run.parsed = parsed
        if self._coerce is None:
            return arguments, run
        try:
            found = self._coerce(arguments, run)
        except RecursionError:
            # References that only lead to each other.
            return arguments, run
        # Arguments are an object, also where a schema by mistake asks for something else.
        return (found if isinstance(found, dict) else arguments), run


class _Planner:
    """Builds the coercer of a document, each piece of the schema once."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._made: dict[str, Coercer | None] = {}

    def plan(self) -> Coercer | None:
        """The coercer for the whole arguments; None where there is nothing to repair."""
        return self._at(self._document.root, "")

    def _at(self, schema: Schema, pointer: str) -> Coercer | None:
        if isinstance(schema, bool):
            return None
        if pointer in self._made:
            return self._made[pointer]
        # A reference back to here finds this one; by the time it runs, the real one is made.
        self._made[pointer] = lambda value, run: (
            made(value, run) if (made := self._made[pointer]) else value
        )
        steps = [step for step in self._steps(schema, pointer) if step is not None]
        self._made[pointer] = _chain(steps)
        return self._made[pointer]

    def _steps(self, schema: dict[str, Any], pointer: str) -> list[Coercer | None]:
        steps: list[Coercer | None] = []
        if "$ref" in schema and (target := self._document.resolve(schema["$ref"])):
            steps.append(self._at(*target))
        if "enum" in schema or "const" in schema:
            steps.append(_members(schema["enum"] if "enum" in schema else [schema["const"]]))
        else:
            steps.append(self._typed(schema, pointer))
        for at, branch in enumerate(schema.get("allOf", ())):
            steps.append(self._at(branch, child(pointer, "allOf", at)))
        steps.extend(
            self._union(schema[keyword], child(pointer, keyword))
            for keyword in ("anyOf", "oneOf")
            if keyword in schema
        )
        if "if" in schema:
            steps.append(self._condition(schema, pointer))
        return steps

    def _typed(self, schema: dict[str, Any], pointer: str) -> Coercer | None:
        named = schema.get("type", ())
        types = frozenset((named,) if isinstance(named, str) else named)
        makers: dict[str, Coercer] = {name: SCALARS[name] for name in types if name in SCALARS}
        inner = self._object(schema, pointer)
        if inner or "object" in types:
            makers["object"] = inner or parse_object
        array = self._array(schema, pointer)
        if array or "array" in types:
            makers["array"] = array or ArrayCoercer(None, [], self._document.types(True))
        if not types:
            return _inside(makers) if makers else None
        if len(types) == 1:
            return makers.get(next(iter(types)))
        return TypesCoercer(types, makers)

    def _object(self, schema: dict[str, Any], pointer: str) -> ObjectCoercer | None:
        named = {
            key: self._at(value, child(pointer, "properties", key))
            for key, value in schema.get("properties", {}).items()
        }
        patterns: list[tuple[re.Pattern[str], Coercer | None]] = []
        for pattern, value in schema.get("patternProperties", {}).items():
            try:
                compiled = re.compile(pattern)
            except re.error:
                continue
            patterns.append(
                (compiled, self._at(value, child(pointer, "patternProperties", pattern)))
            )
        others = self._at(
            schema.get("additionalProperties", True), child(pointer, "additionalProperties")
        )
        if not others and not any(named.values()) and not any(made for _, made in patterns):
            return None
        return ObjectCoercer(named, patterns, others)

    def _array(self, schema: dict[str, Any], pointer: str) -> ArrayCoercer | None:
        items = schema.get("items", True)
        if isinstance(items, list):
            prefix, rest = (
                ("items", items),
                ("additionalItems", schema.get("additionalItems", True)),
            )
        else:
            prefix, rest = ("prefixItems", schema.get("prefixItems", [])), ("items", items)
        if not prefix[1] and rest[1] is True:
            return None
        first = [
            self._at(value, child(pointer, prefix[0], at)) for at, value in enumerate(prefix[1])
        ]
        item = prefix[1][0] if prefix[1] else rest[1]
        return ArrayCoercer(
            self._at(rest[1], child(pointer, rest[0])), first, self._document.types(item)
        )

    def _union(self, branches: list[Schema], pointer: str) -> Coercer:
        return UnionCoercer(
            [
                (self._document.part(child(pointer, at)), self._at(branch, child(pointer, at)))
                for at, branch in enumerate(branches)
            ],
            any("null" in self._document.types(branch) for branch in branches),
        )

    def _condition(self, schema: dict[str, Any], pointer: str) -> Coercer | None:
        chosen = {
            name: self._at(schema.get(name, True), child(pointer, name))
            for name in ("then", "else")
        }
        if not any(chosen.values()):
            return None
        test = self._document.part(child(pointer, "if"))

        def coerce(value: Any, run: Run) -> Any:
            made = chosen["then" if run.check(test, value) else "else"]
            return made(value, run) if made else value

        return coerce


def _chain(steps: list[Coercer]) -> Coercer | None:
    if len(steps) < 2:
        return steps[0] if steps else None

    def coerce(value: Any, run: Run) -> Any:
        for step in steps:
            value = step(value, run)
        return value

    return coerce


def _members(members: list[Any]) -> Coercer:
    return lambda value, _: to_member(value, members)


def _inside(makers: dict[str, Coercer]) -> Coercer:
    """Without a type every value is welcome; only the members of containers are looked at."""

    def coerce(value: Any, run: Run) -> Any:
        made = makers.get(kind(value))
        return made(value, run) if made else value

    return coerce
