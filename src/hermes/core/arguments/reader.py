"""ArgumentReader: parse, coerce, fill in defaults, validate; JSON values.

Arguments that are valid already take a fast path: nothing but the validator runs.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from hermes.core.errors import ArgumentError

if TYPE_CHECKING:
    from hermes.core.arguments.coerce import Plan
    from hermes.core.arguments.compiled_schema import Document, Schema
MAX_DEPTH = 200
"""Nesting allowed in arguments; validators and callers recurse, models never come near it."""
# Python turns integers past 4,300 digits into text only on request, and the validator lets
# numbers that it can't turn into text slip past `maximum`.
_MAX_BITS = 14_283
_HARMLESS = frozenset((str, bool, type(None)))
_SMALL = 1 << 64
_KINDS: dict[type, str] = {
    str: "string",
    int: "integer",
    bool: "boolean",
    dict: "object",
    list: "array",
    tuple: "array",
    type(None): "null",
}


class ExactFloat(float):
    """A float that remembers how it was written: 1.10 is not 1.1 once it becomes a string."""

    __slots__ = ("text",)

    text: str


def kind(value: Any) -> str:
    """The JSON type of a value; a float without a fraction is an "integer" as in JSON Schema."""
    found = _KINDS.get(type(value))
    if found is not None:
        return found
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    for base in (bool, int, str, dict, list):
        if isinstance(value, base):
            return _KINDS[base]
    return type(value).__name__


def same(left: Any, right: Any) -> bool:
    """Whether two JSON values are equal; unlike `==`, true is not 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def is_simple(arguments: dict[str, Any]) -> bool:
    """Whether there are only texts, booleans, nulls and integers of a usual size."""
    for value in arguments.values():
        what = type(value)
        if what is int:
            if -_SMALL < value < _SMALL:
                continue
        elif what in _HARMLESS:
            continue
        return False
    return True


def unusable(arguments: dict[str, Any]) -> str | None:
    """Why a value is refused under any schema: too deep, too large, not JSON."""
    level: list[Any] = [arguments]
    for _ in range(MAX_DEPTH):
        inner: list[Any] = []
        for container in level:
            for value in container.values() if isinstance(container, dict) else container:
                what = type(value)
                if what is str or what is bool:
                    continue
                if what is int:
                    if value.bit_length() > _MAX_BITS:
                        return "a number has too many digits"
                elif what is float:
                    if value - value != 0:
                        return f"{value} is not a JSON number"
                elif isinstance(value, (dict, list, tuple)) and value:
                    inner.append(value)
        if not inner:
            return None
        level = inner
    return f"nested more than {MAX_DEPTH} levels deep"


def has_other_keys(value: Any) -> bool:
    """Whether an object somewhere in a value has keys that are no strings."""
    if isinstance(value, dict):
        return not all(isinstance(key, str) for key in value) or any(
            map(has_other_keys, value.values())
        )
    return isinstance(value, (list, tuple)) and any(map(has_other_keys, value))


def plain(value: Any, *, encodable: bool = False) -> Any:
    """A copy made of the plain JSON types only; with `encodable`, also without lone surrogates.

    Lone surrogates are legal in JSON text but not in UTF-8, so the validator can't see them;
    each gets a stand-in of the same length from the last private plane.
    """
    if isinstance(value, str):
        text = str.__str__(value)
        return text.translate(_STAND_INS) if encodable and not text.isascii() else text
    if isinstance(value, dict):
        return {
            plain(key, encodable=encodable): plain(item, encodable=encodable)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [plain(item, encodable=encodable) for item in value]
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return int(value)
    return float(value) if isinstance(value, float) else value


class _StandIns(dict[int, int]):
    def __missing__(self, code: int) -> int:
        return code + 0x102000 if 0xD800 <= code <= 0xDFFF else code


_STAND_INS = _StandIns()


def excerpt(value: Any, limit: int = 80) -> str:
    """A value as JSON text, cut in the middle to at most `limit` characters."""
    import json

    if isinstance(value, str):
        # Only the two ends can show, so a long text is not encoded as a whole.
        short = value if len(value) <= 2 * limit else value[:limit] + value[-limit:]
        text = json.dumps(short, ensure_ascii=False)
    else:
        try:
            text = json.dumps(value, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError):
            text = f"<{type(value).__name__}>"
    return shorten(text, limit)


def shorten(text: str, limit: int) -> str:
    """A text cut in the middle to at most `limit` characters, safe to print and to encode."""
    if len(text) > limit:
        tail = limit // 3
        text = text[: limit - tail - 1] + "…" + text[-tail:]
    return text.encode("utf-8", "backslashreplace").decode()


_NESTED = (float, dict, list)


def whole(arguments: dict[str, Any], document: Document) -> dict[str, Any]:
    """Valid arguments with each such number as an `int`; the very same where there is none."""
    if not _written_long(arguments):
        return arguments
    found: dict[str, Any] = _whole(arguments, document.root, document)
    return found


def _written_long(value: Any) -> bool:
    """Whether there is a float without a fraction anywhere."""
    if isinstance(value, float):
        return value.is_integer()
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, _NESTED) and _written_long(item):
            return True
    return False


def _whole(value: Any, schema: Schema, document: Document) -> Any:
    if isinstance(value, float):
        types = document.types(schema) if value.is_integer() else ()
        return int(value) if "integer" in types and "number" not in types else value
    if isinstance(schema, bool):
        return value
    new = value
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(item, _NESTED):
            fresh = item
            for inner in _inside(schema, key, document):
                fresh = _whole(fresh, inner, document)
            if fresh is not item:
                if new is value:
                    new = value.copy()
                new[key] = fresh
    return new


def _inside(schema: Schema, key: str | int, document: Document, depth: int = 0) -> list[Schema]:
    """The schemas that a member of an object or array surely has to fit."""
    if isinstance(schema, bool) or depth > 8:
        return []
    if isinstance(key, str):
        found = [schema["properties"][key]] if key in schema.get("properties", {}) else []
        others = schema.get("additionalProperties", True)
        if not found and "patternProperties" not in schema:
            found = [others]
    else:
        first, rest = schema.get("prefixItems", []), schema.get("items", True)
        if isinstance(rest, list):
            first, rest = rest, schema.get("additionalItems", True)
        found = [first[key] if key < len(first) else rest]
    wider = [target[0]] if (target := document.resolve(schema.get("$ref"))) else []
    wider += schema.get("allOf", [])
    for keyword in ("anyOf", "oneOf"):
        kind = "object" if isinstance(key, str) else "array"
        fitting = [b for b in schema.get(keyword, []) if kind in document.types(b)]
        # With several branches it is not sure which one the value was meant for.
        wider += fitting if len(fitting) == 1 else []
    for other in wider:
        found += _inside(other, key, document, depth + 1)
    return found


_CACHE_SIZE = 128


class ArgumentReader:
    """Reads the arguments of calls to one tool; cheap to make, compiled at the first call.

    The schema is copied at the first call: later changes to it need a new reader. With
    `for_python`, whole numbers come as `int` where only integers are allowed, also `2.0`.
    """

    __slots__ = ("_document", "_fill", "_for_python", "_is_valid", "_plan", "_schema")

    def __init__(self, schema: dict[str, Any], *, for_python: bool = False) -> None:
        self._schema = schema
        self._for_python = for_python
        self._document: Document | None = None
        self._fill: Filler | None = None
        self._is_valid: Any = None
        self._plan: Plan | None = None

    def read(self, raw: dict[str, Any] | str | None) -> dict[str, Any]:
        """The arguments, coerced and with defaults; raises `ArgumentError` with every problem."""
        document = self._document or self._compile()
        arguments = raw if type(raw) is dict else self._parse(document, raw)
        simple = is_simple(arguments)
        if not simple and (reason := unusable(arguments)):
            raise _unusable(reason)
        fill = self._fill
        filled = fill(arguments) if fill else arguments
        try:
            if self._is_valid(filled):
                return filled if simple else self._handed(document, filled)
        except ValueError:
            if document.check(filled):
                return self._handed(document, filled)
        return self._repair(document, raw, arguments, filled, simple=simple)

    def _handed(self, document: Document, arguments: dict[str, Any]) -> dict[str, Any]:
        """Valid arguments, with whole numbers as `int` where the handler is Python."""
        return whole(arguments, document) if self._for_python else arguments

    def _compile(self) -> Document:
        from hermes.core.arguments.compiled_schema import Document

        document = Document(self._schema)
        self._fill = Defaults(document).filler()
        self._is_valid = document.is_valid
        self._document = document
        return document

    def _parse(self, document: Document, raw: object, *, exact: bool = False) -> dict[str, Any]:
        if isinstance(raw, str):
            from hermes.core.arguments.json_repair import read_object

            found = read_object(raw, exact=exact)
            if found is not None:
                return found
        elif isinstance(raw, dict):
            return dict(raw)
        elif raw is not None:
            raise ArgumentError(
                f"arguments must be an object or its text, received {type(raw).__name__}",
                hint='Send the call again with an object: {"name": value, ...}.',
                problems=[f"expected an object, received {type(raw).__name__}"],
            )
        # Nothing at all is a call without arguments, where the tool can be called that way.
        if document.check({}):
            return {}
        from hermes.core.arguments.problems import explain

        raise explain(document, {}, ())

    def _repair(
        self,
        document: Document,
        raw: object,
        arguments: dict[str, Any],
        filled: dict[str, Any],
        *,
        simple: bool,
    ) -> dict[str, Any]:
        # A default that is fine alone can break a rule between fields; then it stays out.
        if filled is not arguments and document.check(arguments):
            return self._handed(document, arguments)
        if self._plan is None:
            from hermes.core.arguments.coerce import Plan

            self._plan = Plan(document)
        parsed = isinstance(raw, str)
        if parsed:
            arguments = self._parse(document, raw, exact=True)
        coerced, run = self._plan.run(arguments, parsed=parsed)
        if run.parsed:
            coerced = plain(coerced)
        if run.parsed or not simple:
            # Repairs alone make no such number: it was sent, or read from a text.
            coerced = self._handed(document, coerced)
        complete: dict[str, Any] = self._fill(coerced) if self._fill else coerced
        if document.check(complete):
            return complete
        if complete is not coerced and document.check(coerced):
            return coerced
        if has_other_keys(complete):
            raise _unusable("a key is not a string")
        # Inside containers the validator takes a subclass of float for no number at all.
        strict: dict[str, Any] = plain(complete)
        if document.check(strict):
            return strict
        from hermes.core.arguments.problems import explain

        raise explain(document, strict, run.remarks)


def _unusable(reason: str) -> ArgumentError:
    message = f"arguments can't be used, not executed: {reason}"
    return ArgumentError(message, hint="Send a smaller, flatter value.", problems=[message])


_readers: dict[bytes, ArgumentReader] = {}


def coerce_tool_args(schema: dict[str, Any], args: dict[str, Any] | str | None) -> dict[str, Any]:
    """The arguments of one call, read, coerced, completed with defaults and validated.

    Valid arguments come back unchanged. Raises `ArgumentError` with every problem otherwise.
    Compiled schemas are remembered by content, so a schema may change between calls.
    """
    try:
        key = marshal.dumps(schema)
    except ValueError:
        return ArgumentReader(schema).read(args)
    reader = _readers.get(key)
    if reader is None:
        if len(_readers) >= _CACHE_SIZE:
            _readers.clear()
        # The copy keeps a reader from seeing changes that its key does not show.
        reader = _readers[key] = ArgumentReader(marshal.loads(key))
    return reader.read(args)


Filler = Callable[[Any], Any]
_ABSENT: Any = object()
_IMMUTABLE = (str, int, float, bool, type(None))


def child(pointer: str, *steps: str | int) -> str:
    """The JSON pointer some steps further in."""
    for step in steps:
        pointer += "/" + str(step).replace("~", "~0").replace("/", "~1")
    return pointer


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
