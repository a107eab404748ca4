"""JSON schemas of foreign tools: repaired where possible, refused with the reason where not."""

from __future__ import annotations

from hermes.core.errors import HermesError
from hermes.mcp.untrusted_text import PARAMETER, SCHEMA_TEXT, plain

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from typing import Any

MOST_DEPTH = 24
MOST_NODES = 4_000
MOST_TEXT = 200_000
_TYPES = frozenset(("null", "boolean", "object", "array", "number", "string", "integer"))
# Words whose values are schemas: one, several in a list, several by name.
_ONE = ("additionalProperties", "items", "contains", "not", "if", "then", "else", "propertyNames",
        "unevaluatedItems", "unevaluatedProperties", "additionalItems")  # fmt: skip
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED = ("properties", "patternProperties", "dependentSchemas")
_DEFINITIONS = ("$defs", "definitions")
_TEXTS = ("description", "title")
# What says nothing about arguments, or leads out of the schema.
_DROPPED = frozenset(("$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$vocabulary",
                      "$comment", "contentSchema"))  # fmt: skip
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties",
           "minContains", "maxContains")  # fmt: skip
_PLAIN = frozenset(("enum", "const", "default", "examples", "required", "type", "format", "pattern",
                    "uniqueItems", "deprecated", "readOnly", "writeOnly", "nullable",
                    "dependentRequired", "x-mcp-header"))  # fmt: skip


class SchemaError(HermesError):
    """A schema that can't be mended; the message says why."""


class Mended:
    """A schema for the arguments of a call, and what had to be changed in it."""

    __slots__ = ("notes", "schema")

    def __init__(self, schema: dict[str, Any], notes: list[str]) -> None:
        self.schema = schema
        self.notes = notes


def mended(schema: Any, *, known: bool = False) -> Mended:
    """The schema as registry and model APIs take it; raises `SchemaError` when it can't be one.

    Args:
        known: It was mended before: what needs the validator's library is not looked at again.
    """
    mending = _Mending(schema, known=known)
    whole = mending.arguments()
    if not known:
        _compiles(whole)
    return Mended(whole, list(dict.fromkeys(mending.notes)))


class _Mending:
    """One walk over one schema, with what there is to say about it."""

    def __init__(self, schema: Any, *, known: bool) -> None:
        self._root = schema
        self._known = known
        self.notes: list[str] = []
        self._nodes = 0
        self._text = SCHEMA_TEXT

    def arguments(self) -> dict[str, Any]:
        """The root, which has to describe an object."""
        root = self._root
        if root is None or isinstance(root, bool):
            if root is False:
                raise SchemaError("its schema allows no arguments at all, not even none")
            self.notes.append("it had no schema of its own")
            return {"type": "object", "properties": {}}
        if not isinstance(root, dict):
            raise SchemaError(f"its schema is {_kind(root)} and no object")
        whole = self._schema(root, "", ())
        if not isinstance(whole, dict):
            whole = {}
        kind = whole.get("type")
        if kind != "object":
            kinds = kind if isinstance(kind, list) else [kind]
            if kind is not None and "object" not in kinds:
                raise SchemaError(f"its arguments would be {kind!r:.40} and no object")
            if kind is not None:
                self.notes.append("its type was a list")
            whole["type"] = "object"
        whole.setdefault("properties", {})
        self._flatten(whole)
        for name in whole.get("required", ()):
            if name not in whole["properties"]:
                self.notes.append(f"it required {name!r:.40} without saying what that is")
                whole["properties"][name] = {}
        return whole

    def _flatten(self, whole: dict[str, Any]) -> None:
        """Model APIs refuse alternatives at the top: what they would allow is allowed together."""
        for word in ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "enum", "const"):
            branches = whole.pop(word, None)
            if branches is None:
                continue
            self.notes.append(f"{word} at the top is left to the server")
            for branch in branches if isinstance(branches, list) and word in _LISTS else ():
                inner = branch.get("properties") if isinstance(branch, dict) else None
                for name, schema in (inner or {}).items():
                    if whole["properties"].setdefault(name, schema) != schema:
                        # The branches differ on it: the server decides.
                        whole["properties"][name] = {}
                if word == "allOf" and branch.get("required"):
                    both = (*whole.get("required", ()), *branch["required"])
                    whole["required"] = list(dict.fromkeys(both))

    def _schema(self, schema: Any, where: str, open_: tuple[str, ...]) -> Any:
        if isinstance(schema, bool):
            if schema:
                return {}
            return {"not": {}}
        if not isinstance(schema, dict):
            self.notes.append(f"{where or 'the schema'} was {_kind(schema)} and no schema")
            return {}
        self._nodes += 1
        if len(open_) + where.count("/") > MOST_DEPTH or self._nodes > MOST_NODES:
            raise SchemaError("its schema is too large or nested too deeply")
        if "$ref" in schema or "$dynamicRef" in schema:
            return self._followed(schema, where, open_)
        found: dict[str, Any] = {}
        for word, value in schema.items():
            if not isinstance(word, str) or word in _DROPPED or word in _DEFINITIONS:
                continue
            kept = self._word(word, value, where, open_)
            if kept is not None:
                found[word] = kept
        self._settle(found, where)
        return found

    def _followed(self, schema: dict[str, Any], where: str, open_: tuple[str, ...]) -> Any:
        """What a reference leads to, put in its place: not every model API follows one."""
        target = schema.get("$ref") or schema.get("$dynamicRef")
        beside = {k: v for k, v in schema.items() if k not in ("$ref", "$dynamicRef")}
        if not isinstance(target, str) or target in open_:
            self.notes.append(f"{where or 'the schema'} refers to itself: anything is let through")
            rest = self._schema(beside, where, open_)
            return rest if isinstance(rest, dict) else {}
        led = _target(self._root, target)
        if led is None:
            self.notes.append(
                f"{where or 'the schema'} refers to {target!r:.60}, which is not there"
            )
            return self._schema(beside, where, open_)
        inner = self._schema(led, where, (*open_, target))
        if not beside or not isinstance(inner, dict):
            return inner
        outer = self._schema(beside, where, (*open_, target))
        shared = inner.keys() & outer.keys() - {"description", "title", "default", "examples"}
        return {**inner, **outer} if not shared else {"allOf": [inner, outer]}

    def _word(self, word: str, value: Any, where: str, open_: tuple[str, ...]) -> Any:
        place = f"{where}/{word}"
        if word in _TEXTS:
            said = plain(value, min(PARAMETER, self._text)) if self._text > 0 else ""
            self._text -= len(said)
            return said or None
        if word in _NAMED:
            return self._by_name(word, value, where, open_)
        if word in _LISTS:
            return self._several(value, place, open_)
        if word in _ONE:
            if word == "items" and isinstance(value, list):
                # Older drafts spell a tuple so.
                self.notes.append(f"{where or 'the schema'} had a list of items")
                options = self._several(value, place, open_)
                return {"anyOf": options} if options else {}
            if isinstance(value, bool):
                return value if word != "items" or not value else {}
            if not isinstance(value, dict):
                self.notes.append(f"{place} was {_kind(value)} and no schema")
                return None
            return self._schema(value, place, open_)
        if word in _NUMBERS:
            return (
                value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
            )
        if word in _COUNTS:
            whole = isinstance(value, int) and not isinstance(value, bool) and value >= 0
            return value if whole else None
        # Whatever else there is: words of ours to let through, and unknown ones to leave out.
        return value if word in _PLAIN else None

    def _by_name(self, word: str, value: Any, where: str, open_: tuple[str, ...]) -> Any:
        if not isinstance(value, dict):
            self.notes.append(f"{where}/{word} was {_kind(value)} and no object")
            return {} if word == "properties" else None
        return {
            str(name): self._schema(inner, f"{where}/{name}", open_)
            for name, inner in value.items()
        }

    def _several(self, value: Any, place: str, open_: tuple[str, ...]) -> list[Any] | None:
        if not isinstance(value, list) or not value:
            self.notes.append(f"{place} was {_kind(value)} and no list of schemas")
            return None
        return [self._schema(one, f"{place}/{at}", open_) for at, one in enumerate(value)]

    def _settle(self, found: dict[str, Any], where: str) -> None:
        """Put right what one word says about another."""
        here = where or "the schema"
        kinds = found.get("type")
        if kinds is not None:
            listed = kinds if isinstance(kinds, list) else [kinds]
            known = [kind for kind in listed if isinstance(kind, str) and kind in _TYPES]
            if len(known) < len(listed):
                self.notes.append(f"{here} had the unknown type {kinds!r:.40}")
            known = list(dict.fromkeys(known))
            if not known:
                del found["type"]
            else:
                found["type"] = known[0] if len(known) == 1 else known
        kinds = found.get("type")
        listed = kinds if isinstance(kinds, list) else [kinds] if kinds else []
        if found.pop("nullable", None) is True and listed and "null" not in listed:
            listed = [*listed, "null"]
            found["type"] = listed
        if "array" in listed and "items" not in found and "prefixItems" not in found:
            self.notes.append(f"{here} was a list of nothing in particular")
            found["items"] = {}
        if "enum" in found:
            self._settle_enum(found, listed, here)
        required = found.get("required")
        if required is not None:
            names = required if isinstance(required, list) else []
            kept = [name for name in dict.fromkeys(map(str, names)) if name]
            if kept != required:
                self.notes.append(f"{here} required what has no name")
            if kept:
                found["required"] = kept
            else:
                del found["required"]
        for word in ("pattern", "format"):
            if word in found and not isinstance(found[word], str):
                del found[word]
        if "pattern" in found and not self._known and not _is_pattern(found["pattern"]):
            self.notes.append(f"{here} had a pattern that can't be read")
            del found["pattern"]

    def _settle_enum(self, found: dict[str, Any], listed: list[str], here: str) -> None:
        values = found["enum"]
        if not isinstance(values, list) or not values:
            self.notes.append(f"{here} had a choice of nothing")
            del found["enum"]
            return
        unique: list[Any] = []
        for value in values:
            if not any(type(value) is type(one) and value == one for one in unique):
                unique.append(value)
        if listed == ["null"] and any(value is not None for value in unique):
            # A choice on the branch that only allows nothing.
            self.notes.append(f"{here} had a choice where only null fits")
            del found["enum"]
            return
        if None in unique and listed and "null" not in listed:
            self.notes.append(f"{here} had null among its choices but not among its types")
            found["type"] = [*listed, "null"]
        found["enum"] = unique


def _target(root: Any, reference: str) -> Any:
    """What a reference inside the same schema leads to; None for any other."""
    if reference == "#":
        return root
    if not reference.startswith("#/"):
        return None
    found = root
    for part in reference[2:].split("/"):
        name = part.replace("~1", "/").replace("~0", "~").replace("%24", "$")
        if isinstance(found, dict):
            found = found.get(name)
        elif isinstance(found, list) and name.isdecimal() and int(name) < len(found):
            found = found[int(name)]
        else:
            return None
    return found


def _is_pattern(pattern: str) -> bool:
    import jsonschema_rs

    try:
        jsonschema_rs.validator_for({"pattern": pattern})
    except (ValueError, jsonschema_rs.ValidationError):
        return False
    return True


def _compiles(schema: dict[str, Any]) -> None:
    import jsonschema_rs

    from hermes.core.json_text import to_json

    if len(to_json(schema)) > MOST_TEXT:
        raise SchemaError("its schema is too large")
    try:
        jsonschema_rs.validator_for(schema)
    except (ValueError, TypeError, jsonschema_rs.ValidationError) as error:
        raise SchemaError(f"its schema can't be read: {str(error)[:200]}") from None


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
