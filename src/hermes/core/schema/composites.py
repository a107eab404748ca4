"""Types of values: unions, arrays, mappings; dates, paths, enums, bytes and other single values."""

from __future__ import annotations

from hermes.core.schema.field import BadValueError, HintError, each, shown

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from hermes.core.schema.field import Convert, Schema, Shape


PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_KINDS = {**PLAIN, list: "array", dict: "object"}
JSON_KINDS = frozenset(_KINDS.values())


def atom(cls: type) -> Shape | None:
    """The shape of a class that stands for one value; None when it is not such a class."""
    if cls in PLAIN:
        return {"type": PLAIN[cls]}, None
    if cls is object:
        return {}, None
    known = _STANDARD.get((cls.__module__.partition(".")[0], cls.__name__))
    if known is not None:
        schema, make, expected = known
        return dict(schema), _reader(cls, make, expected)
    if hasattr(cls, "__members__") and hasattr(cls, "_value2member_map_"):
        return _enum(cls)
    for base in (str, int, float):
        if issubclass(cls, base) and not hasattr(cls, "__origin__"):
            return {"type": PLAIN[base]}, _reader(cls, lambda own, value: own(value), cls.__name__)
    return None


def one_of(values: Iterable[Any]) -> Schema:
    """The schema of a choice between plain values; HintError when JSON can't write one."""
    choices: list[Any] = []
    for value in values:
        if type(value) not in PLAIN:
            raise HintError(
                f"{value!r} is not a value that JSON can write",
                advice="Use text or numbers as the values to choose from.",
            )
        # 1 and True are equal in Python and two values in JSON.
        if not any(value == other and type(value) is type(other) for other in choices):
            choices.append(value)
    kinds = list(dict.fromkeys(PLAIN[type(value)] for value in choices))
    return {"type": kinds[0] if len(kinds) == 1 else kinds, "enum": choices}


def kind(value: object) -> str:
    """The JSON type name of a Python type."""
    return _KINDS.get(type(value), type(value).__name__)


def _enum(cls: Any) -> Shape:
    if hasattr(cls, "_boundary_"):  # flags combine, so every number may be one
        return {"type": "integer"}, _reader(cls, lambda own, value: own(value), cls.__name__)
    members = {member.value: member for member in cls}
    if not members:
        raise HintError(f"{cls.__name__} has no members", advice="Give the enum its members.")

    def convert(value: Any) -> Any:
        if isinstance(value, cls):
            return value
        try:
            return members[value]
        except (KeyError, TypeError):
            choices = ", ".join(map(repr, members))
            raise BadValueError(f"expected one of {choices}, received {shown(value)}") from None

    return one_of(members), convert


def _reader(cls: type, make: Callable[[Any, Any], Any], expected: str) -> Convert:
    def convert(value: Any) -> Any:
        if isinstance(value, cls):
            return value
        try:
            return make(cls, value)
        except (ValueError, TypeError, ArithmeticError) as error:
            raise BadValueError(f"expected {expected}, received {shown(value)} ({error})") from None

    return convert


def _iso(cls: Any, value: Any) -> Any:
    return cls.fromisoformat(value)


def _decimal(cls: Any, value: Any) -> Any:
    if isinstance(value, bool):
        raise TypeError("a boolean is not a number")
    number = cls(str(value).strip())
    if not number.is_finite():
        raise ValueError("not a finite number")
    return number


def _base64(cls: Any, value: Any) -> Any:
    from binascii import a2b_base64

    return cls(a2b_base64(value, strict_mode=True))


def _duration(cls: Any, value: Any) -> Any:
    if isinstance(value, bool):
        raise TypeError("a boolean is not a duration")
    if isinstance(value, (int, float)):
        return cls(seconds=value)
    sign = -1 if value[:1] == "-" else 1
    text = value.lstrip("+-").upper()
    days, clock, times = text[1:].partition("T")
    if text[:1] != "P" or len(text) < 3 or (clock and not times):
        raise ValueError("not like P1DT2H30M")
    parts = {**_amounts(days, "WD"), **_amounts(times, "HMS")}
    words = {"W": "weeks", "D": "days", "H": "hours", "M": "minutes", "S": "seconds"}
    return sign * cls(**{words[unit]: amount for unit, amount in parts.items()})


def _amounts(text: str, units: str) -> dict[str, float]:
    """The numbers of an ISO duration by their unit letter, which stand in the order of `units`."""
    amounts: dict[str, float] = {}
    start = 0
    for position, character in enumerate(text):
        if character in "0123456789.,":
            continue
        if character not in units or character in amounts or start == position:
            raise ValueError("years and months have no fixed length; use weeks, days, hours")
        units = units[units.index(character) :]
        number = text[start:position].replace(",", ".")
        amounts[character] = float(number) if "." in number else int(number)
        start = position + 1
    if start != len(text):
        raise ValueError("a number without a unit")
    return amounts


def _text(cls: Any, value: Any) -> Any:
    if not isinstance(value, str):
        raise TypeError("not text")
    return cls(value)


_PATH = ({"type": "string"}, _text, "a path")
_BYTES = ({"type": "string", "contentEncoding": "base64"}, _base64, "bytes in base64")
_STANDARD: dict[tuple[str, str], tuple[Schema, Callable[[Any, Any], Any], str]] = {
    ("datetime", "datetime"): (
        {"type": "string", "format": "date-time"},
        _iso,
        "a date and time like 2031-05-17T14:30:00Z",
    ),
    ("datetime", "date"): ({"type": "string", "format": "date"}, _iso, "a date like 2031-05-17"),
    ("datetime", "time"): ({"type": "string", "format": "time"}, _iso, "a time like 14:30:00"),
    ("datetime", "timedelta"): (
        {"type": ["number", "string"], "format": "duration"},
        _duration,
        "seconds or a duration like PT1H30M",
    ),
    ("uuid", "UUID"): ({"type": "string", "format": "uuid"}, _text, "a UUID"),
    ("decimal", "Decimal"): ({"type": ["number", "string"]}, _decimal, "a decimal number"),
    ("builtins", "bytes"): _BYTES,
    ("builtins", "bytearray"): _BYTES,
    ("pathlib", "Path"): _PATH,
    ("pathlib", "PurePath"): _PATH,
    ("pathlib", "PosixPath"): _PATH,
    ("pathlib", "PurePosixPath"): _PATH,
    ("pathlib", "WindowsPath"): _PATH,
    ("pathlib", "PureWindowsPath"): _PATH,
    ("ipaddress", "IPv4Address"): ({"type": "string", "format": "ipv4"}, _text, "an IPv4 address"),
    ("ipaddress", "IPv6Address"): ({"type": "string", "format": "ipv6"}, _text, "an IPv6 address"),
}


_REF = "#/definitions/"


def union(shapes: Sequence[Shape], definitions: dict[str, Schema]) -> Shape:
    """The shape of a union; a value is converted by the first member that it fits."""
    members = [
        shape for n, shape in enumerate(shapes) if shape[0] not in [s for s, _ in shapes[:n]]
    ]
    if len(members) == 1:
        return members[0]
    schema = merged([member for member, _ in members])
    converters = [convert for _, convert in members if convert is not None]
    if not converters:
        return schema, None
    if len(members) == 2 and {"type": "null"} in [member for member, _ in members]:
        return schema, _optional(converters[0])
    return schema, _first_fit(members, definitions)


def nullable(shape: Shape) -> Shape:
    """The same shape, which also takes null."""
    schema, convert = shape
    known: dict[str, Schema] = {}
    if "$ref" not in schema and fits(None, schema, known):
        return shape
    words: Schema = {key: schema.pop(key) for key in ("description", "examples") if key in schema}
    widened: Schema = {**merged([schema, {"type": "null"}]), **words}
    return widened, convert and _optional(convert)


def fits(value: Any, schema: Schema, definitions: dict[str, Schema]) -> bool:
    """Whether a value has the form that a schema made by this package asks for."""
    if "$ref" in schema:
        target = definitions.get(schema["$ref"][len(_REF) :])
        return target is None or fits(value, target, definitions)
    if "anyOf" in schema:
        return any(fits(value, member, definitions) for member in schema["anyOf"])
    if "enum" in schema:
        return any(value == choice and kind(value) == kind(choice) for choice in schema["enum"])
    kinds = schema.get("type", ())
    kinds = (kinds,) if isinstance(kinds, str) else kinds
    found = kind(value)
    whole = found == "number" and "integer" in kinds and float(value).is_integer()
    if (
        kinds
        and found not in kinds
        and not (found == "integer" and "number" in kinds)
        and not whole
    ):
        return False
    if found == "array":
        return _fits_array(value, schema, definitions)
    if found == "object":
        return _fits_object(value, schema, definitions)
    return True


def _fits_array(value: list[Any], schema: Schema, definitions: dict[str, Schema]) -> bool:
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        return False
    items = schema.get("items", {})
    rules = items if isinstance(items, list) else [items] * len(value)
    return all(fits(item, rule, definitions) for item, rule in zip(value, rules, strict=False))


def _fits_object(value: dict[str, Any], schema: Schema, definitions: dict[str, Schema]) -> bool:
    if any(name not in value for name in schema.get("required", ())):
        return False
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties", True)
    for name, item in value.items():
        rule = properties.get(name, others)
        if rule is False or (rule is not True and not fits(item, rule, definitions)):
            return False
    return True


def merged(schemas: list[Schema]) -> Schema:
    """One schema for any of these: a list of types where that says it all, `anyOf` elsewhere."""
    flat: list[Schema] = []
    for schema in schemas:
        flat.extend(schema["anyOf"] if schema.keys() == {"anyOf"} else [schema])
    if {} in flat:
        return {}
    null = {"type": "null"}
    rest = [schema for schema in flat if schema != null]
    if len(rest) < len(flat) and len(rest) == 1 and isinstance(rest[0].get("type"), (str, list)):
        single = dict(rest[0])
        kinds = single["type"]
        kinds = [kinds] if isinstance(kinds, str) else kinds
        if "null" not in kinds:
            single["type"] = [*kinds, "null"]
            if "enum" in single:
                single["enum"] = [*single["enum"], None]
        return single
    flat = [schema for n, schema in enumerate(flat) if schema not in flat[:n]]
    plain = [schema for schema in flat if schema.keys() == {"type"}]
    if len(plain) > 1:
        flat = [_one_type(plain) if s is plain[0] else s for s in flat if s not in plain[1:]]
    return flat[0] if len(flat) == 1 else {"anyOf": flat}


def _one_type(schemas: list[Schema]) -> Schema:
    kinds: list[str] = []
    for schema in schemas:
        kinds.extend([schema["type"]] if isinstance(schema["type"], str) else schema["type"])
    kinds = list(dict.fromkeys(kinds))
    if "number" in kinds and "integer" in kinds:
        kinds.remove("integer")  # every integer is a number
    return {"type": kinds[0] if len(kinds) == 1 else kinds}


def _optional(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)


def _first_fit(members: Sequence[Shape], definitions: dict[str, Schema]) -> Convert:
    def convert(value: Any) -> Any:
        reason: BadValueError | None = None
        for schema, member in members:
            if not fits(value, schema, definitions):
                continue
            if member is None:
                return value
            try:
                return member(value)
            except BadValueError as error:
                reason = reason or error
        if kind(value) not in JSON_KINDS:
            return value  # a Python value already
        raise reason or BadValueError(f"no member of the union takes {shown(value)}")

    return convert


def whole_keys(convert: Convert | None) -> Convert:
    """Keys that stand for whole numbers, which JSON writes as text."""

    def read(value: Any) -> Any:
        try:
            number = int(value)
        except ValueError:
            raise BadValueError(
                f"expected a whole number as key, received {shown(value)}"
            ) from None
        return number if convert is None else convert(number)

    return read


def collector(make: Any, convert: Convert | None) -> Convert:
    """Converter of an array: its items, then the collection type of the hint."""

    def collect(value: Any) -> Any:
        if isinstance(value, str) or not hasattr(value, "__iter__"):
            raise BadValueError(f"expected an array, received {shown(value)}")
        items = value if convert is None else each(convert, value)
        try:
            return items if make is None else make(items)
        except TypeError as error:
            raise BadValueError(f"{error}") from None

    return collect


def fixed_tuple(shapes: list[Shape], definitions: dict[str, Schema]) -> Convert:
    """An array with one type per place."""

    def collect(value: Any) -> Any:
        if not isinstance(value, (list, tuple)) or len(value) != len(shapes):
            raise BadValueError(f"expected {len(shapes)} items, received {shown(value)}")
        items = []
        for index, (item, (schema, convert)) in enumerate(zip(value, shapes, strict=True)):
            try:
                if convert is None and not fits(item, schema, definitions):
                    raise BadValueError(f"expected {schema}, received {shown(item)}")
                items.append(item if convert is None else convert(item))
            except BadValueError as error:
                raise error.inside(index) from None
        return tuple(items)

    return collect


def mapper(make: Any, key_convert: Convert | None, convert: Convert | None) -> Convert:
    """Converter of an object: its keys and values."""

    def collect(value: Any) -> Any:
        if not isinstance(value, dict):
            raise BadValueError(f"expected an object, received {shown(value)}")
        result = {}
        for key, item in value.items():
            try:
                name = key if key_convert is None else key_convert(key)
                result[name] = item if convert is None else convert(item)
            except BadValueError as error:
                raise error.inside(key) from None
        return result if make is None else make(result)

    return collect
