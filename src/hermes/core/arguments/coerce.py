"""Coercion of arguments: a schema compiled into functions for values, arrays, objects, unions."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from hermes.core.arguments.json_repair import TextError, parse_container
from hermes.core.arguments.reader import ExactFloat, child, kind, plain, same

if TYPE_CHECKING:
    from hermes.core.arguments.compiled_schema import Document, Part, Schema


_BUDGET = 5_000
"""Union branches tried in one call; recursive unions would otherwise grow without end."""


class Run:
    """The state of one coercion.

    `remarks` holds values that stayed as they were, each with the reason. `wrapping` says whether
    a bare value may become an array. `parsed` says whether some numbers remember their text.
    """

    __slots__ = ("budget", "parsed", "remarks", "wrapping")

    def __init__(self) -> None:
        self.budget = _BUDGET
        self.parsed = False
        self.remarks: list[tuple[Any, str]] = []
        self.wrapping = True

    def parse(self, text: str) -> dict[str, Any] | list[Any] | TextError | None:
        """The object or array that a text spells, None for another value, or why it is none."""
        try:
            found = parse_container(text)
        except TextError as error:
            return error
        self.parsed = self.parsed or "." in text or "e" in text or "E" in text
        return found

    def check(self, part: Part, value: Any) -> bool:
        """Whether a value on its way is valid for a piece of the schema."""
        return part.check(plain(value) if self.parsed else value)


Coercer = Callable[[Any, Run], Any]


SPACE: Final = " \t\r\n"

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_MAX_DIGITS = 4_300


def to_integer(value: Any, _: Run | None = None) -> Any:
    """The integer that JSON number text stands for: `42`, and exactly also `42.0` and `1e3`."""
    if not isinstance(value, str):
        return value
    text = value.strip(SPACE)
    if text.isdigit() and text.isascii() and text[0] != "0" and len(text) <= _MAX_DIGITS:
        return int(text)
    match = _NUMBER.fullmatch(text)
    if match is None or len(text) > _MAX_DIGITS:
        return value
    if match.lastindex is None:
        return int(text)
    exact = _decimal(text)
    if exact.adjusted() >= _MAX_DIGITS or exact != exact.to_integral_value():
        return value
    return int(exact)


def to_number(value: Any, _: Run | None = None) -> Any:
    """The number that JSON number text stands for, where Python holds it without rounding."""
    if not isinstance(value, str):
        return value
    text = value.strip(SPACE)
    match = _NUMBER.fullmatch(text)
    if match is None or len(text) > _MAX_DIGITS:
        return value
    if match.lastindex is None:
        return int(text)
    number = float(text)
    if len(text) <= 15 and match.lastindex == 1:
        return number
    if number - number != 0:
        return value
    exact = _decimal(text)
    # Digits beyond what a double can tell apart would be lost without a word.
    return number if exact in (_decimal(repr(number)), _decimal(f"{number:.17g}")) else value


def to_boolean(value: Any, _: Run | None = None) -> Any:
    """True or False for `true` and `false` in any case."""
    if not isinstance(value, str):
        return value
    word = value.strip(SPACE).lower()
    if word == "true":
        return True
    return False if word == "false" else value


def to_null(value: Any, _: Run | None = None) -> Any:
    """None for a text that can only mean that."""
    return None if isinstance(value, str) and is_null_word(value) else value


def is_null_word(text: str) -> bool:
    """Whether a text can only mean null, where text itself is not allowed."""
    return text == "" or text.strip(SPACE) in ("null", "None")


def to_string(value: Any, _: Run | None = None) -> Any:
    """The decimal text of a number, as it was written where that is known."""
    if isinstance(value, str):
        return value
    if isinstance(value, ExactFloat):
        return value.text
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    return repr(value)


def to_member(value: Any, members: list[Any]) -> Any:
    """The one member that a value means: other case, outer space, or the other spelling."""
    if any(same(value, member) for member in members):
        return value
    if not isinstance(value, str):
        text = ("false", "true")[value] if isinstance(value, bool) else to_string(value)
        return text if text in members else value
    word = value.strip(SPACE)
    names = [member for member in members if isinstance(member, str)]
    for fitting in (
        [name for name in names if name.strip(SPACE) == word],
        [name for name in names if name.strip(SPACE).lower() == word.lower()],
    ):
        if fitting:
            return fitting[0] if len(fitting) == 1 else value
    readings = (to_number(value), to_boolean(value), to_null(value))
    for member in members:
        if any(same(reading, member) for reading in readings):
            return member
    return value


def _decimal(text: str) -> Any:
    from decimal import Decimal

    return Decimal(text)


SCALARS: Final[dict[str, Coercer]] = {
    "integer": to_integer,
    "number": to_number,
    "boolean": to_boolean,
    "string": to_string,
    "null": to_null,
}


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
