"""JSON schemas of foreign tools: repaired where possible, refused with the reason where not."""

from __future__ import annotations

from hermes.core.errors import HermesError
from hermes.mcp.untrusted_text import PARAMETER_CHARS, SCHEMA_CHARS, clean

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from typing import Any

MAX_DEPTH = 24
MAX_NODES = 4_000
MAX_CHARS = 200_000
_TYPES = frozenset(("null", "boolean", "object", "array", "number", "string", "integer"))
# Keywords with a schema, a list of schemas, or schemas by name as their value.
_SINGLE = ("additionalProperties", "items", "contains", "not", "if", "then", "else",
           "propertyNames", "unevaluatedItems", "unevaluatedProperties",
           "additionalItems")  # fmt: skip
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED = ("properties", "patternProperties", "dependentSchemas")
_DEFINITIONS = ("$defs", "definitions")
_TEXTS = ("description", "title")
# Keywords without a meaning for arguments, or that lead out of the schema.
_DROPPED = frozenset(("$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$vocabulary",
                      "$comment", "contentSchema"))  # fmt: skip
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties",
           "minContains", "maxContains")  # fmt: skip
_KEPT = frozenset(("enum", "const", "default", "examples", "required", "type", "format", "pattern",
                    "uniqueItems", "deprecated", "readOnly", "writeOnly", "nullable",
                    "dependentRequired", "x-mcp-header"))  # fmt: skip


class SchemaError(HermesError):
    """A schema that can't be repaired; the message has the reason."""


class RepairedSchema:
    """A valid schema for the arguments of a call, and notes on the changes."""

    __slots__ = ("notes", "schema")

    def __init__(self, schema: dict[str, Any], notes: list[str]) -> None:
        self.schema = schema
        self.notes = notes


def repair_schema(schema: Any, *, checked_before: bool = False) -> RepairedSchema:
    """The schema in the form that the registry and model APIs accept; raises `SchemaError`.

    Args:
        checked_before: Skip the checks that need the validator library.
    """
    repair = _Repair(schema, checked_before=checked_before)
    repaired = repair.arguments()
    if not checked_before:
        _check_compiles(repaired)
    return RepairedSchema(repaired, list(dict.fromkeys(repair.notes)))


class _Repair:
    """One walk over one schema; collects notes."""

    def __init__(self, schema: Any, *, checked_before: bool) -> None:
        self._root = schema
        self._checked_before = checked_before
        self.notes: list[str] = []
        self._nodes = 0
        self._text = SCHEMA_CHARS

    def arguments(self) -> dict[str, Any]:
        """The repaired root, an object schema."""
        root = self._root
        if root is None or isinstance(root, bool):
            if root is False:
                raise SchemaError("its schema allows no arguments at all, not even none")
            self.notes.append("it had no schema of its own")
            return {"type": "object", "properties": {}}
        if not isinstance(root, dict):
            raise SchemaError(f"its schema is {_kind(root)} and no object")
        schema = self._schema(root, "", ())
        if not isinstance(schema, dict):
            schema = {}
        kind = schema.get("type")
        if kind != "object":
            kinds = kind if isinstance(kind, list) else [kind]
            if kind is not None and "object" not in kinds:
                raise SchemaError(f"its arguments would be {kind!r:.40} and no object")
            if kind is not None:
                self.notes.append("its type was a list")
            schema["type"] = "object"
        schema.setdefault("properties", {})
        self._flatten(schema)
        for name in schema.get("required", ()):
            if name not in schema["properties"]:
                self.notes.append(f"it required {name!r:.40} without saying what that is")
                schema["properties"][name] = {}
        return schema

    def _flatten(self, schema: dict[str, Any]) -> None:
        """Merge alternatives at the top, which model APIs refuse, into one set of properties."""
        for word in ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "enum", "const"):
            branches = schema.pop(word, None)
            if branches is None:
                continue
            self.notes.append(f"{word} at the top is left to the server")
            for branch in branches if isinstance(branches, list) and word in _LISTS else ():
                inner = branch.get("properties") if isinstance(branch, dict) else None
                for name, field in (inner or {}).items():
                    if schema["properties"].setdefault(name, field) != field:
                        # The branches differ on it: the server decides.
                        schema["properties"][name] = {}
                if word == "allOf" and branch.get("required"):
                    both = (*schema.get("required", ()), *branch["required"])
                    schema["required"] = list(dict.fromkeys(both))

    def _schema(self, schema: Any, where: str, open_: tuple[str, ...]) -> Any:
        if isinstance(schema, bool):
            if schema:
                return {}
            return {"not": {}}
        if not isinstance(schema, dict):
            self.notes.append(f"{where or 'the schema'} was {_kind(schema)} and no schema")
            return {}
        self._nodes += 1
        if len(open_) + where.count("/") > MAX_DEPTH or self._nodes > MAX_NODES:
            raise SchemaError("its schema is too large or nested too deeply")
        if "$ref" in schema or "$dynamicRef" in schema:
            return self._resolve(schema, where, open_)
        result: dict[str, Any] = {}
        for word, value in schema.items():
            if not isinstance(word, str) or word in _DROPPED or word in _DEFINITIONS:
                continue
            kept = self._word(word, value, where, open_)
            if kept is not None:
                result[word] = kept
        self._settle(result, where)
        return result

    def _resolve(self, schema: dict[str, Any], where: str, open_: tuple[str, ...]) -> Any:
        """A reference replaced by its target: not every model API follows references."""
        target = schema.get("$ref") or schema.get("$dynamicRef")
        siblings = {k: v for k, v in schema.items() if k not in ("$ref", "$dynamicRef")}
        if not isinstance(target, str) or target in open_:
            self.notes.append(f"{where or 'the schema'} refers to itself: anything is let through")
            rest = self._schema(siblings, where, open_)
            return rest if isinstance(rest, dict) else {}
        resolved = _target(self._root, target)
        if resolved is None:
            self.notes.append(
                f"{where or 'the schema'} refers to {target!r:.60}, which is not there"
            )
            return self._schema(siblings, where, open_)
        inner = self._schema(resolved, where, (*open_, target))
        if not siblings or not isinstance(inner, dict):
            return inner
        outer = self._schema(siblings, where, (*open_, target))
        shared = inner.keys() & outer.keys() - {"description", "title", "default", "examples"}
        return {**inner, **outer} if not shared else {"allOf": [inner, outer]}

    def _word(self, word: str, value: Any, where: str, open_: tuple[str, ...]) -> Any:
        path = f"{where}/{word}"
        if word in _TEXTS:
            text = clean(value, min(PARAMETER_CHARS, self._text)) if self._text > 0 else ""
            self._text -= len(text)
            return text or None
        if word in _NAMED:
            return self._by_name(word, value, where, open_)
        if word in _LISTS:
            return self._several(value, path, open_)
        if word in _SINGLE:
            if word == "items" and isinstance(value, list):
                # A tuple in older drafts.
                self.notes.append(f"{where or 'the schema'} had a list of items")
                options = self._several(value, path, open_)
                return {"anyOf": options} if options else {}
            if isinstance(value, bool):
                return value if word != "items" or not value else {}
            if not isinstance(value, dict):
                self.notes.append(f"{path} was {_kind(value)} and no schema")
                return None
            return self._schema(value, path, open_)
        if word in _NUMBERS:
            return (
                value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
            )
        if word in _COUNTS:
            is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 0
            return value if is_count else None
        return value if word in _KEPT else None

    def _by_name(self, word: str, value: Any, where: str, open_: tuple[str, ...]) -> Any:
        if not isinstance(value, dict):
            self.notes.append(f"{where}/{word} was {_kind(value)} and no object")
            return {} if word == "properties" else None
        return {
            str(name): self._schema(inner, f"{where}/{name}", open_)
            for name, inner in value.items()
        }

    def _several(self, value: Any, path: str, open_: tuple[str, ...]) -> list[Any] | None:
        if not isinstance(value, list) or not value:
            self.notes.append(f"{path} was {_kind(value)} and no list of schemas")
            return None
        return [self._schema(item, f"{path}/{index}", open_) for index, item in enumerate(value)]

    def _settle(self, result: dict[str, Any], where: str) -> None:
        """Repair contradictions between keywords."""
        here = where or "the schema"
        kinds = result.get("type")
        if kinds is not None:
            listed = kinds if isinstance(kinds, list) else [kinds]
            known = [kind for kind in listed if isinstance(kind, str) and kind in _TYPES]
            if len(known) < len(listed):
                self.notes.append(f"{here} had the unknown type {kinds!r:.40}")
            known = list(dict.fromkeys(known))
            if not known:
                del result["type"]
            else:
                result["type"] = known[0] if len(known) == 1 else known
        kinds = result.get("type")
        listed = kinds if isinstance(kinds, list) else [kinds] if kinds else []
        if result.pop("nullable", None) is True and listed and "null" not in listed:
            listed = [*listed, "null"]
            result["type"] = listed
        if "array" in listed and "items" not in result and "prefixItems" not in result:
            self.notes.append(f"{here} was a list of nothing in particular")
            result["items"] = {}
        if "enum" in result:
            self._settle_enum(result, listed, here)
        required = result.get("required")
        if required is not None:
            names = required if isinstance(required, list) else []
            kept = [name for name in dict.fromkeys(map(str, names)) if name]
            if kept != required:
                self.notes.append(f"{here} required what has no name")
            if kept:
                result["required"] = kept
            else:
                del result["required"]
        for word in ("pattern", "format"):
            if word in result and not isinstance(result[word], str):
                del result[word]
        if "pattern" in result and not self._checked_before and not _is_pattern(result["pattern"]):
            self.notes.append(f"{here} had a pattern that can't be read")
            del result["pattern"]

    def _settle_enum(self, result: dict[str, Any], listed: list[str], here: str) -> None:
        values = result["enum"]
        if not isinstance(values, list) or not values:
            self.notes.append(f"{here} had a choice of nothing")
            del result["enum"]
            return
        unique: list[Any] = []
        for value in values:
            if not any(type(value) is type(other) and value == other for other in unique):
                unique.append(value)
        if listed == ["null"] and any(value is not None for value in unique):
            self.notes.append(f"{here} had a choice where only null fits")
            del result["enum"]
            return
        if None in unique and listed and "null" not in listed:
            self.notes.append(f"{here} had null among its choices but not among its types")
            result["type"] = [*listed, "null"]
        result["enum"] = unique


def _target(root: Any, reference: str) -> Any:
    """The target of a reference inside the same schema; None for any other."""
    if reference == "#":
        return root
    if not reference.startswith("#/"):
        return None
    result = root
    for part in reference[2:].split("/"):
        name = part.replace("~1", "/").replace("~0", "~").replace("%24", "$")
        if isinstance(result, dict):
            result = result.get(name)
        elif isinstance(result, list) and name.isdecimal() and int(name) < len(result):
            result = result[int(name)]
        else:
            return None
    return result


def _is_pattern(pattern: str) -> bool:
    import jsonschema_rs

    try:
        jsonschema_rs.validator_for({"pattern": pattern})
    except (ValueError, jsonschema_rs.ValidationError):
        return False
    return True


def _check_compiles(schema: dict[str, Any]) -> None:
    import jsonschema_rs

    from hermes.core.json_text import to_json

    if len(to_json(schema)) > MAX_CHARS:
        raise SchemaError("its schema is too large")
    try:
        jsonschema_rs.validator_for(schema)
    except (ValueError, TypeError, jsonschema_rs.ValidationError) as error:
        raise SchemaError(f"its schema can't be read: {str(error)[:200]}") from None


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
