"""ArgumentReader: from the text or object that a model sent to validated arguments of one tool."""

from __future__ import annotations

import marshal
from typing import TYPE_CHECKING, Any

from hermes.core.arguments.json_values import has_other_keys, is_simple, plain, unusable
from hermes.core.errors import ArgumentError

if TYPE_CHECKING:
    from hermes.core.arguments.coercion_plan import Plan
    from hermes.core.arguments.compiled_schema import Document, Schema
    from hermes.core.arguments.defaults import Filler


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
        from hermes.core.arguments.defaults import Defaults

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
            from hermes.core.arguments.coercion_plan import Plan

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
