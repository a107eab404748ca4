"""Type hints to JSON Schema and converter; dataclasses, typed dicts, pydantic and other records."""

from __future__ import annotations

import sys
from types import UnionType

from hermes.core.schema.composites import (
    atom,
    collector,
    fixed_tuple,
    mapper,
    merged,
    nullable,
    one_of,
    union,
    whole_keys,
)
from hermes.core.schema.docstrings import parse
from hermes.core.schema.field import BadValueError, HintError, as_json, constrain, shown
from hermes.core.schema.function import MISSING, Scope, annotations_of

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from hermes.core.schema.field import Convert, Schema, Shape


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


_ARRAYS = {
    "list",
    "Sequence",
    "MutableSequence",
    "Iterable",
    "Collection",
    "Container",
    "Reversible",
}
_MADE_ARRAYS = {"set", "frozenset", "deque", "Set", "MutableSet"}
_OBJECTS = {"dict", "Mapping", "MutableMapping"}
_MADE_OBJECTS = {"OrderedDict"}
_DEEPEST = 40  # a hint nested further than this refers to itself
_ADVICE = (
    "Use plain types, a dataclass or a TypedDict; a parameter that is not for the model "
    "can be left out of the schema."
)


class _Record:
    """A definition that hints may refer to, itself included."""

    __slots__ = ("complete", "convert", "name", "recursive", "refs", "schema")

    def __init__(self, name: str) -> None:
        self.name = name
        self.schema: Schema = {}
        self.convert: Convert | None = None
        self.refs: list[Schema] = []
        self.recursive = False
        self.complete = False

    def refer(self) -> Schema:
        ref: Schema = {"$ref": f"#/definitions/{self.name}"}
        self.refs.append(ref)
        return ref

    def late(self, value: Any) -> Any:
        """Convert by a definition that is completed later."""
        return value if self.convert is None else self.convert(value)


class Builder:
    """Builds the shapes of one function's hints, which share their definitions."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.schemas: dict[str, Schema] = {}
        self._records: dict[Any, _Record] = {}
        self._variables: dict[Any, Any] = {}
        self._conversions = 0
        self._innermost: Any = None  # the record that is being built
        self._depth = 0

    def within(self, scope: Scope, hint: Any) -> Shape:
        """The shape of a hint with names of another scope."""
        outer, self.scope = self.scope, scope
        try:
            return self.shape(hint)
        finally:
            self.scope = outer

    def shape(self, hint: Any) -> Shape:
        """The schema of a hint, and the converter of its values; HintError when it has none."""
        self._depth += 1
        try:
            if self._depth > _DEEPEST:
                raise HintError(
                    "it refers to itself without a name", advice="Use a dataclass or a TypedDict."
                )
            return self._shape(hint)
        finally:
            self._depth -= 1

    def definitions(self) -> dict[str, Schema]:
        """Definitions with several references or with cycles; the others are inlined."""
        shared: dict[str, Schema] = {}
        for record in reversed(self._records.values()):  # what is inside moves first
            if record.recursive or len(record.refs) > 1:
                shared[record.name] = record.schema
            elif record.refs:
                place = record.refs[0]
                beside = {key: value for key, value in place.items() if key != "$ref"}
                place.clear()
                place.update({**record.schema, **beside})
        return dict(reversed(shared.items()))

    def _shape(self, hint: Any) -> Shape:
        hint = getattr(hint, "__forward_arg__", hint)
        if isinstance(hint, str):
            return self.shape(self.scope.resolve(hint))
        if hint is None or hint is MISSING:
            return {"type": "null"} if hint is None else {}, None
        if hasattr(hint, "__metadata__"):
            return constrain(self.shape(hint.__origin__), hint.__metadata__)
        if isinstance(hint, UnionType):
            return self._union(hint.__args__)
        origin = getattr(hint, "__origin__", None)
        if origin is not None:
            return self._generic(hint, origin, getattr(hint, "__args__", ()))
        if isinstance(hint, type):
            return self._class(hint)
        return self._special(hint)

    def _class(self, cls: Any) -> Shape:
        if is_record(cls):
            return self._record(cls, cls)
        if cls.__module__ == "typing" and cls.__name__ == "Any":
            return {}, None
        found = atom(cls)
        return self._counted(*found) if found else self._container(cls, ())

    def _counted(self, schema: Schema, convert: Convert | None) -> Shape:
        """The same shape, without converters that change nothing."""
        self._conversions += convert is not None
        return schema, convert

    def _generic(self, hint: Any, origin: Any, args: tuple[Any, ...]) -> Shape:
        args = tuple(self._substituted(arg) for arg in args)
        if isinstance(origin, type):
            if is_record(origin):
                return self._with(getattr(origin, "__parameters__", ()), args, origin)
            return self._container(origin, args or (((),) if hasattr(hint, "__args__") else ()))
        name = _name(hint)
        if name in ("Union", "Optional"):
            return self._union(args)
        if name == "Literal":
            return self._literal(args)
        if name in ("Final", "Required", "NotRequired", "ReadOnly"):
            return self.shape(args[0])
        if hasattr(origin, "__value__"):
            return self._with(origin.__type_params__, args, origin)
        raise HintError("no schema can be made from it", advice=_ADVICE)

    def _with(self, names: tuple[Any, ...], args: tuple[Any, ...], owner: Any) -> Shape:
        outer = self._variables
        self._variables = dict(zip(names, args, strict=False))
        try:
            return self._record((owner, args), owner)
        finally:
            self._variables = outer

    def _substituted(self, arg: Any) -> Any:
        """A type argument with the type variables of the surrounding record filled in."""
        if not self._variables:
            return arg
        try:
            if arg in self._variables:
                return self._variables[arg]
        except TypeError:
            return arg
        names = getattr(arg, "__parameters__", ())
        if not names or isinstance(arg, type):
            return arg
        return arg[tuple(self._variables.get(name, name) for name in names)]

    def _special(self, hint: Any) -> Shape:
        if hasattr(hint, "__constraints__"):
            return self._variable(hint)
        if hasattr(hint, "__supertype__"):
            return self.shape(hint.__supertype__)
        if hasattr(hint, "__value__"):
            return self._record(hint, hint)
        if getattr(hint, "_name", None) == "LiteralString":
            return {"type": "string"}, None
        raise HintError("no schema can be made from it", advice=_ADVICE)

    def _variable(self, variable: Any) -> Shape:
        if variable in self._variables:
            return self.shape(self._variables[variable])
        if variable.__constraints__:
            return self._union(variable.__constraints__)
        return self.shape(variable.__bound__) if variable.__bound__ else ({}, None)

    def _union(self, args: tuple[Any, ...]) -> Shape:
        return union([self.shape(arg) for arg in args], self.schemas)

    def _literal(self, args: tuple[Any, ...]) -> Shape:
        members = {arg.value: arg for arg in args if hasattr(type(arg), "__members__")}
        schema = one_of(getattr(arg, "value", arg) for arg in args)
        if not members:
            return schema, None
        return self._counted(schema, lambda value: members.get(value, value))

    def _record(self, key: Any, owner: Any) -> Shape:
        record = self._records.get(key)
        if record is not None:
            if record.complete:
                return record.refer(), record.convert
            record.recursive = True
            if key != self._innermost:
                self._conversions += 1  # not known yet, so expected
            return record.refer(), record.late
        record = self._records[key] = _Record(self._free_name(owner.__name__))
        before = self._conversions
        outer, self._innermost = self._innermost, key
        if isinstance(owner, type):
            record.schema, converters, builds = object_schema(self, owner)
            self._conversions += builds
            convert: Convert | None = from_object(owner, converters, build=builds)
        else:
            record.schema, convert = self.shape(owner.__value__)
        self._innermost = outer
        if self._conversions > before:
            record.convert = convert
        self.schemas[record.name] = record.schema
        record.complete = True
        if not isinstance(owner, type) and not record.recursive:
            del self._records[key]  # an alias for something plain is that thing
            return record.schema, record.convert
        return record.refer(), record.convert

    def _free_name(self, name: str) -> str:
        taken = {record.name for record in self._records.values()}
        number = 1
        free = name
        while free in taken:
            number += 1
            free = f"{name}_{number}"
        return free

    def _container(self, cls: Any, args: tuple[Any, ...]) -> Shape:
        name = cls.__name__
        if cls.__module__ in ("builtins", "collections", "collections.abc", "typing"):
            if name == "tuple":
                return self._tuple(args)
            if name in _ARRAYS or name in _MADE_ARRAYS:
                return self._array(cls, args)
            if name in _OBJECTS or name in _MADE_OBJECTS:
                return self._mapping(cls, args)
        raise HintError("no schema can be made from it", advice=_ADVICE)

    def _array(self, cls: Any, args: tuple[Any, ...]) -> Shape:
        items, convert = self.shape(args[0]) if args else ({}, None)
        schema: Schema = {"type": "array"}
        if items:
            schema["items"] = items
        make: Any = None
        if cls.__name__ in _MADE_ARRAYS:
            make = {"Set": frozenset, "MutableSet": set}.get(cls.__name__, cls)
            if make in (set, frozenset):
                schema["uniqueItems"] = True
        if make is None and convert is None:
            return schema, None
        self._conversions += make is not None
        return schema, collector(make, convert)

    def _tuple(self, args: tuple[Any, ...]) -> Shape:
        self._conversions += 1
        if any(getattr(arg, "__unpacked__", False) or _name(arg) == "Unpack" for arg in args):
            raise HintError("its length is open in the middle", advice="Use tuple[X, ...].")
        if not args:
            return {"type": "array"}, collector(tuple, None)
        if len(args) == 2 and args[1] is Ellipsis:
            items, convert = self.shape(args[0])
            return {"type": "array", **({"items": items} if items else {})}, collector(
                tuple, convert
            )
        if args == ((),):
            args = ()
        shapes = [self.shape(arg) for arg in args]
        schemas = [schema for schema, _ in shapes]
        schema: Schema = {"type": "array"}
        if schemas:
            # Drafts disagree on how to write one schema per place, and some providers refuse
            # every request that has it; the converter looks at the places.
            items = merged(schemas)
            if items:
                schema["items"] = items
        schema["minItems"] = schema["maxItems"] = len(shapes)
        return schema, fixed_tuple(shapes, self.schemas)

    def _mapping(self, cls: Any, args: tuple[Any, ...]) -> Shape:
        schema: Schema = {"type": "object"}
        key_convert = convert = None
        if len(args) == 2:
            keys, key_convert = self._keys(args[0])
            values, convert = self.shape(args[1])
            if keys.keys() - {"type", "description"}:
                schema["propertyNames"] = keys
            if values:
                schema["additionalProperties"] = values
        make = cls if cls.__name__ in _MADE_OBJECTS else None
        if make is None and key_convert is None and convert is None:
            return schema, None
        self._conversions += make is not None or key_convert is not None
        return schema, mapper(make, key_convert, convert)

    def _keys(self, hint: Any) -> Shape:
        schema, convert = self.shape(hint)
        if schema.get("type") == "integer" and "enum" not in schema:
            return {"pattern": "^-?[0-9]+$"}, whole_keys(convert)
        if schema and schema.get("type") != "string":
            raise HintError("the keys of a JSON object are text", advice="Use str for the keys.")
        return schema, convert


def _name(hint: Any) -> str:
    """The name of a special form of `typing` or `typing_extensions`."""
    origin = getattr(hint, "__origin__", None)
    return getattr(origin, "_name", None) or getattr(origin, "__name__", None) or ""
