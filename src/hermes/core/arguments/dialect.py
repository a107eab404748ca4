"""Schemas of every age in, one dialect out: a private copy, rewritten and compiled.

Older spellings that still have one clear meaning are rewritten (`nullable`, tuple `items`,
boolean `exclusiveMinimum`); a schema that does not compile is an `ArgumentError`, so that a call
never runs unchecked.
"""

from __future__ import annotations

import marshal
from typing import TYPE_CHECKING, Any

from hermes.core.arguments.values import plain, shorten
from hermes.core.errors import ArgumentError

if TYPE_CHECKING:
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
