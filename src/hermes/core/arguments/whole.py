"""Whole numbers as Python wants them: where only integers are allowed, 2.0 becomes 2.

To JSON Schema both are the same integer, and many models write the longer one; to Python code
that counts or slices with it, only the shorter is a whole number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hermes.core.arguments.schema import Document, Schema

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
