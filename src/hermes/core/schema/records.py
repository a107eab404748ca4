"""Record types (dataclass, TypedDict, NamedTuple, msgspec, attrs, pydantic) as JSON objects."""

from __future__ import annotations

import sys

from hermes.core.schema.composites import nullable
from hermes.core.schema.docstrings import parse
from hermes.core.schema.field import BadValueError, HintError, as_json, shown
from hermes.core.schema.function import MISSING, annotations_of
from hermes.core.schema.scope import Scope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from hermes.core.schema.field import Convert, Schema
    from hermes.core.schema.types import Builder


class RecordField:
    """One field as its class declares it."""

    __slots__ = ("default", "hint", "name", "optional", "scope")

    def __init__(
        self, name: str, hint: object, scope: Scope, *, optional: bool, default: object = MISSING
    ) -> None:
        self.name = name
        self.hint = hint
        self.scope = scope
        self.optional = optional
        self.default = default


def is_record(cls: Any) -> bool:
    """Whether a class is a dataclass, a typed dict or a named tuple."""
    return (
        hasattr(cls, "__dataclass_fields__")
        or hasattr(cls, "__total__")
        or (issubclass(cls, tuple) and hasattr(cls, "_fields"))
    )


def object_schema(builder: Builder, cls: Any) -> tuple[Schema, dict[str, Convert], bool]:
    """The schema of a record, the converters of its fields, and whether it is built by calling."""
    scope = builder.scope.of_class(cls)
    if hasattr(cls, "__dataclass_fields__"):
        fields = list(_dataclass_fields(cls, builder.scope))
    elif hasattr(cls, "__total__"):
        fields = list(_typed_dict_fields(cls, scope))
    else:
        hints = annotations_of(cls)
        defaults = cls._field_defaults
        fields = [
            RecordField(
                name,
                hints.get(name, MISSING),
                scope,
                optional=name in defaults,
                default=defaults.get(name, MISSING),
            )
            for name in cls._fields
        ]
    _, described = parse(_written_doc(cls), attributes=True)
    properties: dict[str, Schema] = {}
    converters: dict[str, Convert] = {}
    for field in fields:
        try:
            shape = builder.within(field.scope, field.hint)
        except HintError as error:
            raise HintError(f"{cls.__name__}.{field.name}: {error}", advice=error.advice) from None
        if field.default is None:
            shape = nullable(shape)
        schema, convert = shape
        if field.name in described:
            schema.setdefault("description", described[field.name])
        if field.default is not MISSING:
            as_json(field.default, convert, schema)
        properties[field.name] = schema
        if convert is not None:
            converters[field.name] = convert
    result: Schema = {"type": "object", "properties": properties}
    required = [field.name for field in fields if not field.optional]
    if required:
        result["required"] = required
    result["additionalProperties"] = False
    return result, converters, not hasattr(cls, "__total__")


def from_object(cls: Callable[..., Any], converters: dict[str, Convert], *, build: bool) -> Convert:
    """A converter that makes a record, or a dict with converted values, from a JSON object."""

    def convert(value: Any) -> Any:
        if isinstance(cls, type) and build and isinstance(value, cls):
            return value
        if build and isinstance(value, list) and hasattr(cls, "_fields"):
            value = dict(zip(cls._fields, value, strict=False))
        if not isinstance(value, dict):
            raise BadValueError(f"expected an object, received {shown(value)}")
        fields = dict(value)
        for name, field in converters.items():
            if name in fields:
                try:
                    fields[name] = field(fields[name])
                except BadValueError as error:
                    raise error.inside(name) from None
        if not build:
            return fields
        try:
            return cls(**fields)
        except (TypeError, ValueError) as error:
            raise BadValueError(f"{error}") from None

    return convert


def _dataclass_fields(cls: Any, scope: Scope) -> Iterator[RecordField]:
    dataclasses = sys.modules["dataclasses"]
    scopes = {
        name: scope.of_class(owner)
        for owner in reversed(cls.__mro__)
        for name in annotations_of(owner)
        if owner is not object
    }
    for field in cls.__dataclass_fields__.values():
        if not field.init or _is_class_variable(field):
            continue
        default = field.default
        optional = default is not dataclasses.MISSING
        if not optional:
            default = MISSING
            if field.default_factory is not dataclasses.MISSING:
                optional = True
                # A list or a dict is a default to show; anything else may differ from call to call.
                if field.default_factory in (list, dict, set, frozenset, tuple):
                    default = field.default_factory()
        yield RecordField(
            field.name,
            _init_var(field.type),
            scopes.get(field.name, scope),
            optional=optional,
            default=default,
        )


def _is_class_variable(field: Any) -> bool:
    return bool(field._field_type.name == "_FIELD_CLASSVAR")  # noqa: SLF001 - no public word


def _init_var(hint: Any) -> object:
    if isinstance(hint, str):
        head, bracket, rest = hint.partition("[")
        if bracket and head.rpartition(".")[2] == "InitVar":
            return rest.rpartition("]")[0]
    return hint.type if type(hint).__name__ == "InitVar" else hint


def _typed_dict_fields(cls: Any, own: Scope) -> Iterator[RecordField]:
    for name, declared in cls.__annotations__.items():
        hint = getattr(declared, "__forward_arg__", declared)
        # What a class inherits was written in the module of its base.
        home = getattr(declared, "__forward_module__", None)
        scope = Scope.of_module(home, parent=own) if isinstance(home, str) else own
        optional = name not in cls.__required_keys__
        # Written as text, these marks are not yet known to the class itself.
        while True:
            if isinstance(hint, str):
                hint = scope.resolve(hint)
            mark = getattr(getattr(hint, "__origin__", None), "_name", None)
            if mark not in ("Required", "NotRequired", "ReadOnly"):
                break
            optional = optional if mark == "ReadOnly" else mark == "NotRequired"
            hint = getattr(hint.__args__[0], "__forward_arg__", hint.__args__[0])
        yield RecordField(name, hint, scope, optional=optional)


def _written_doc(cls: Any) -> str | None:
    """The docstring that a person wrote; those that Python makes up say nothing new."""
    text = cls.__dict__.get("__doc__")
    return None if not text or text.startswith(f"{cls.__name__}(") else text
