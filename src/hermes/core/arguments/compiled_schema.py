"""Compiled schema of one tool: validator, resolved references, allowed types. Older drafts are
rewritten to one dialect.
"""

from __future__ import annotations

import marshal
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from hermes.core.arguments.reader import kind, plain, shorten
from hermes.core.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable

    from jsonschema_rs import Validator


_ONE = frozenset(
    (
        "additionalItems",
        "additionalProperties",
        "contains",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    )
)
_LIST = frozenset(("allOf", "anyOf", "items", "oneOf", "prefixItems"))
_MAP = frozenset(
    ("$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties")
)


def private_copy(schema: Any) -> Any:
    """A deep copy of a schema that may come from anywhere."""
    try:
        # The quickest deep copy there is; what it can't copy was never JSON.
        return marshal.loads(marshal.dumps(schema))
    except ValueError:
        pass
    import json

    try:
        return json.loads(json.dumps(schema))
    except (TypeError, ValueError, RecursionError) as error:
        raise _invalid(str(error)) from None


def compile_schema(schema: Any, *, nullable: bool) -> tuple[Validator, Any, Any]:
    """The validator, the schema as rewritten, and the schema as the validator could take it.

    Raises `ArgumentError` where there is no way to compile it.
    """
    import jsonschema_rs

    try:
        schema = _rewrite(schema, modern=False, nullable=nullable)
        if isinstance(schema, dict) and "$schema" in schema:
            try:
                declared = jsonschema_rs.validator_for(schema, validate_formats=False, offline=True)
                return declared, schema, schema
            except ValueError:
                schema = {key: value for key, value in schema.items() if key != "$schema"}
        schema = _rewrite(schema, modern=True, nullable=nullable)
        try:
            return _modern(schema), schema, schema
        except ValueError:
            encodable = plain(schema, encodable=True)
            return _modern(encodable), schema, encodable
    except jsonschema_rs.ValidationError as error:
        where = "/".join(map(str, error.instance_path))
        raise _invalid(f"{error.message} (at #/{where})") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise _invalid(str(error)) from None
    except RecursionError:
        raise _invalid("nested too deeply") from None


def mentions(schema: Any, word: str) -> bool:
    """Whether a word is a key anywhere in a schema."""
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if word in part:
                return True
            waiting.extend(part.values())
        elif isinstance(part, list | tuple):
            waiting.extend(part)
    return False


def _modern(schema: Any) -> Validator:
    import jsonschema_rs

    return jsonschema_rs.Draft202012Validator(schema, validate_formats=False, offline=True)


def _invalid(reason: str) -> ArgumentError:
    message = f"the tool's own schema is invalid: {shorten(reason, 300)}"
    return ArgumentError(
        message,
        hint="This tool can't be called until its schema is repaired. Use another tool.",
        problems=[message],
    )


def _rewrite(schema: Any, *, modern: bool, nullable: bool) -> Any:
    """A copy of a schema in today's spelling.

    With `modern`, as if no older dialect was declared; with `nullable`, that word has a meaning.
    """
    if not isinstance(schema, dict):
        return schema
    new: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _LIST and isinstance(value, list | tuple):
            new[key] = [_rewrite(item, modern=modern, nullable=nullable) for item in value]
        elif key in _MAP and isinstance(value, dict):
            new[key] = {
                name: _rewrite(item, modern=modern, nullable=nullable)
                for name, item in value.items()
            }
        elif key in _ONE:
            new[key] = _rewrite(value, modern=modern, nullable=nullable)
        else:
            new[key] = value
    if modern:
        _modernise(new)
    return _open_to_null(new) if nullable and new.get("nullable") is True else new


def _modernise(schema: dict[str, Any]) -> None:
    if isinstance(schema.get("items"), list):
        schema["prefixItems"] = schema.pop("items")
        if "additionalItems" in schema:
            schema["items"] = schema.pop("additionalItems")
    for bound, exclusive in (
        ("minimum", "exclusiveMinimum"),
        ("maximum", "exclusiveMaximum"),
    ):
        if isinstance(schema.get(exclusive), bool):
            flag = schema.pop(exclusive)
            if flag and bound in schema:
                schema[exclusive] = schema.pop(bound)


def _open_to_null(schema: dict[str, Any]) -> dict[str, Any]:
    del schema["nullable"]
    null = {"type": "null"}
    named = schema.get("type")
    if isinstance(named, str | list):
        names = [named] if isinstance(named, str) else named
        schema["type"] = [*names, *({"null"} - set(names))]
    if "const" in schema:
        schema["enum"] = [schema.pop("const")]
    if isinstance(schema.get("enum"), list) and None not in schema["enum"]:
        schema["enum"] = [*schema["enum"], None]
    for keyword in ("anyOf", "oneOf"):
        if isinstance(schema.get(keyword), list):
            schema[keyword] = [*schema[keyword], null]
    inner = {key: schema.pop(key) for key in ("$ref", "allOf") if key in schema}
    if inner:
        schema["allOf"] = [{"anyOf": [inner, null]}]
    return schema


Schema = dict[str, Any] | bool

TYPES = frozenset(("null", "boolean", "integer", "number", "string", "array", "object"))
_NUMBERS = frozenset(("integer", "number"))

_ROOT = "urn:hermes:arguments"


class Document:
    """One schema, compiled: `is_valid` and `errors` for the whole, `part` for pieces of it."""

    __slots__ = ("_compiled", "_registry", "_validator", "has_defaults", "is_valid", "root")

    def __init__(self, schema: object) -> None:
        copy = private_copy(schema)
        self._validator, self.root, self._compiled = compile_schema(copy, nullable=True)
        self._registry: Any = None
        self.has_defaults = mentions(self.root, "default")
        is_valid = self._validator.is_valid
        self.is_valid: Callable[[Any], bool] = is_valid
        if mentions(copy, "nullable"):
            # With the word ignored, as the standard has it, an `oneOf` may accept more.
            strict = compile_schema(copy, nullable=False)[0].is_valid
            self.is_valid = lambda value: is_valid(value) or strict(value)
        if self._compiled is not self.root:
            # Names with lone surrogates are compiled as stand-ins, so values need them as well.
            either = self.is_valid
            self.is_valid = lambda value: either(plain(value, encodable=True))

    def check(self, value: Any) -> bool:
        """Whether a value is valid, also where the validator itself can't look at it."""
        return _check(self.is_valid, value)

    def errors(self, value: Any) -> Any:
        """The validator's errors, one after the other, for a value of plain JSON types."""
        return self._validator.iter_errors(value)

    def part(self, pointer: str) -> Part:
        """The validator for the piece of the schema at a JSON pointer."""
        import jsonschema_rs

        if self._registry is None:
            draft = getattr(jsonschema_rs, type(self._validator).__name__.removesuffix("Validator"))
            self._registry = jsonschema_rs.Registry([(_ROOT, self._compiled)], draft=draft)
        return Part(
            type(self._validator)(
                {"$ref": f"{_ROOT}#{quote(plain(pointer, encodable=True), safe='/~$')}"},
                registry=self._registry,
                validate_formats=False,
                offline=True,
            ),
            encoding=self._compiled is not self.root,
        )

    def resolve(self, reference: object) -> tuple[Schema, str] | None:
        """The target of a reference within this document, and its JSON pointer."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            return None
        pointer = unquote(reference[1:])
        found: Any = self.root
        for step in pointer.split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict) and name in found:
                found = found[name]
            elif isinstance(found, list) and name.isdecimal() and int(name) < len(found):
                found = found[int(name)]
            else:
                return None
        if pointer[:1] not in ("", "/") or not isinstance(found, dict | bool):
            return None
        return found, pointer

    def types(self, schema: Schema, depth: int = 0) -> frozenset[str]:
        """The JSON types that a piece of this schema can accept at most."""
        if schema is False:
            return frozenset()
        if schema is True or depth > 8:
            return TYPES
        found = TYPES
        if "type" in schema:
            named = schema["type"]
            own = frozenset((named,) if isinstance(named, str) else named)
            found &= own | _NUMBERS if "number" in own else own
        for members in (schema.get("enum"), [schema["const"]] if "const" in schema else None):
            if members is not None:
                found &= frozenset(map(kind, members))
        for keyword in ("anyOf", "oneOf"):
            if branches := schema.get(keyword):
                found &= frozenset().union(*(self.types(b, depth + 1) for b in branches))
        for branch in schema.get("allOf", ()):
            found &= self.types(branch, depth + 1)
        if "$ref" in schema and (target := self.resolve(schema["$ref"])):
            found &= self.types(target[0], depth + 1)
        return found


class Part:
    """The validator for one piece of a schema."""

    __slots__ = ("_encoding", "_is_valid")

    def __init__(self, validator: Validator, *, encoding: bool) -> None:
        self._is_valid = validator.is_valid
        self._encoding = encoding

    def check(self, value: Any) -> bool:
        """Whether a value is valid for this piece."""
        return _check(self._is_valid, plain(value, encodable=True) if self._encoding else value)


def _check(is_valid: Callable[[Any], bool], value: Any) -> bool:
    try:
        return is_valid(value)
    except ValueError:
        # Lone surrogates and subclasses of the JSON types are JSON all the same.
        try:
            return is_valid(plain(value, encodable=True))
        except (ValueError, RecursionError):
            return False
