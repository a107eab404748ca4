"""Fields of a schema: converter types, constraints and descriptions inside `Annotated`, default
values.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, TypeAlias


if TYPE_CHECKING:
    Schema: TypeAlias = dict[str, Any]
    Convert: TypeAlias = Callable[[Any], Any]
    Shape: TypeAlias = tuple[Schema, Convert | None]  # how a value looks, and its way back


class HintError(Exception):
    """A type hint without a schema; `advice` proposes another hint."""

    def __init__(self, reason: str, *, advice: str) -> None:
        super().__init__(reason)
        self.advice = advice


class BadValueError(ValueError):
    """A JSON value that does not make the Python value; `path` leads to it from the parameter."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = ""

    def inside(self, step: str | int) -> BadValueError:
        """The same error, seen from the container that holds the value."""
        self.path = (f"[{step}]" if isinstance(step, int) else f".{step}") + self.path
        return self


def each(convert: Convert, values: Any) -> list[Any]:
    """Every item converted, in order."""
    converted = []
    for index, value in enumerate(values):
        try:
            converted.append(convert(value))
        except BadValueError as error:
            raise error.inside(index) from None
    return converted


def shown(value: object) -> str:
    """A value as a message quotes it: never long."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


_BOUNDS = {
    "ge": ("minimum", "at least"),
    "gt": ("exclusiveMinimum", "more than"),
    "le": ("maximum", "at most"),
    "lt": ("exclusiveMaximum", "less than"),
}
_LENGTHS = {
    "string": ("minLength", "maxLength"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}
_LATER = {*_BOUNDS, "multiple_of", "min_length", "max_length"}  # can wait for the Python value
_NAMES = (*_BOUNDS, "multiple_of", "min_length", "max_length", "pattern", "examples")


class Field:
    """Constraints and description of a parameter inside `Annotated`."""

    __slots__ = (
        "description",
        "examples",
        "ge",
        "gt",
        "hidden",
        "le",
        "lt",
        "max_length",
        "min_length",
        "multiple_of",
        "pattern",
    )

    def __init__(
        self,
        *,
        description: str | None = None,
        ge: Any = None,
        gt: Any = None,
        le: Any = None,
        lt: Any = None,
        min_length: int | None = None,
        max_length: int | None = None,
        pattern: str | None = None,
        multiple_of: float | None = None,
        examples: Sequence[Any] | None = None,
        hidden: bool = False,
    ) -> None:
        self.description = description
        # Accepted in a call, and left out of the definition that models are sent.
        self.hidden = hidden
        self.ge = ge
        self.gt = gt
        self.le = le
        self.lt = lt
        self.min_length = min_length
        self.max_length = max_length
        self.pattern = pattern
        self.multiple_of = multiple_of
        self.examples = examples


def constrain(shape: Shape, metadata: Iterable[object]) -> Shape:
    """The shape of `Annotated[T, *metadata]`, from the shape of T."""
    schema, convert = shape
    metadata = tuple(metadata)
    if any(getattr(item, "hidden", False) is True for item in metadata):
        schema["x-hidden"] = True
    rules, description = _read(metadata)
    late = {
        name: value
        for name, value in rules.items()
        if not _apply(schema, name, value, converted=convert is not None)
    }
    if late:
        if convert is None or not late.keys() <= _LATER:
            names = ", ".join(late)
            raise HintError(
                f"{names} does not fit a value of this type",
                advice="Bounds belong to numbers, lengths to text and containers.",
            )
        convert = _checked(convert, late)
    if description:
        schema["description"] = description
    return schema, convert


def _read(metadata: Iterable[object]) -> tuple[dict[str, Any], str | None]:
    rules: dict[str, Any] = {}
    description: str | None = None
    for item in metadata:
        if isinstance(item, str):
            description = item
            continue
        if isinstance(item, type):
            continue
        for name in _NAMES:
            value = getattr(item, name, None)
            if value is not None and not callable(value):
                rules[name] = value
        for name in ("description", "documentation"):
            value = getattr(item, name, None)
            if isinstance(value, str):
                description = value
        nested = getattr(item, "metadata", None)
        if isinstance(nested, (list, tuple)):
            inner, text = _read(nested)
            rules.update(inner)
            description = text or description
    return rules, description and " ".join(description.split())


def _apply(schema: Schema, name: str, value: Any, *, converted: bool) -> bool:
    """Write one rule into the schema; False when this schema has no word for it."""
    if name == "examples":
        schema["examples"] = list(value)
        return True
    if "anyOf" in schema:
        members = [_apply(member, name, value, converted=converted) for member in schema["anyOf"]]
        return any(members)
    kinds = schema.get("type", ())
    kinds = (kinds,) if isinstance(kinds, str) else kinds
    numeric = "integer" in kinds or "number" in kinds
    if name in _BOUNDS or name == "multiple_of":
        # Text that becomes a number or a date is compared after its conversion.
        late = converted and "string" in kinds
        if not numeric or late or not isinstance(value, (int, float)):
            return False
        schema[_BOUNDS[name][0] if name in _BOUNDS else "multipleOf"] = value
        return True
    if name == "pattern":
        if "string" not in kinds:
            return False
        schema["pattern"] = getattr(value, "pattern", value)
        return True
    if "contentEncoding" in schema:
        return False  # the length of base64 text is not the length of the bytes
    found = False
    for kind, words in _LENGTHS.items():
        if kind in kinds:
            schema[words[name == "max_length"]] = value
            found = True
    return found


def _checked(convert: Convert, rules: dict[str, Any]) -> Convert:
    def check(value: Any) -> Any:
        result = convert(value)
        if result is None:
            return result
        for name, limit in rules.items():
            try:
                holds = _holds(name, result, limit)
            except TypeError:
                continue  # another member of a union, which this rule is not about
            if not holds:
                words = _BOUNDS[name][1] if name in _BOUNDS else name.replace("_", " ")
                raise BadValueError(f"expected {words} {limit}, received {shown(value)}")
        return result

    return check


def _holds(name: str, value: Any, limit: Any) -> bool:
    match name:
        case "ge":
            return bool(value >= limit)
        case "gt":
            return bool(value > limit)
        case "le":
            return bool(value <= limit)
        case "lt":
            return bool(value < limit)
        case "min_length":
            return bool(len(value) >= limit)
        case "max_length":
            return bool(len(value) <= limit)
        case _:
            return not value % limit


class _UnwritableError(Exception):
    """A value that JSON has no form for."""


def as_json(default: object, convert: Convert | None, schema: Schema) -> None:
    """Put a default into the schema, if filling it in would give the handler the same value."""
    try:
        encoded = _encode(default, rich=convert is not None)
        if convert is None or convert(encoded) == default:
            schema["default"] = encoded
    except (_UnwritableError, BadValueError):
        return


def _encode(value: Any, *, rich: bool) -> Any:
    kind = type(value)
    if value is None or kind in (str, int, bool):
        return value
    if kind is float:
        if value - value != 0:  # infinite, or not a number
            raise _UnwritableError
        return value
    if kind in (list, tuple):
        return [_encode(item, rich=rich) for item in value]
    if kind is dict:
        if not all(type(key) is str for key in value):
            raise _UnwritableError
        return {key: _encode(item, rich=rich) for key, item in value.items()}
    if not rich:
        raise _UnwritableError
    if hasattr(kind, "__members__"):
        return _encode(value.value, rich=rich)
    if kind in (set, frozenset):
        return sorted((_encode(item, rich=rich) for item in value), key=repr)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "total_seconds"):
        return value.total_seconds()
    if hasattr(value, "__fspath__") or kind.__module__ in ("decimal", "uuid"):
        return str(value)
    raise _UnwritableError
