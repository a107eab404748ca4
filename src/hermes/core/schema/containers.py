"""Containers: converters for arrays and objects, from those of what they hold."""

from __future__ import annotations

from hermes.core.schema.unions import fits
from hermes.core.schema.values import BadValueError, each, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from hermes.core.schema.values import Convert, Schema, Shape


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
    """An array whose items are converted, and which is made into what the hint names."""

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
    """An object whose keys and values are converted."""

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
