"""For any supported type: a value of it, written as JSON, fits the schema and comes back equal."""

from __future__ import annotations

import base64
import dataclasses
import enum
import functools
import json
import operator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, NamedTuple
from uuid import UUID

import jsonschema_rs
from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import TypedDict

from hermes.core.schema import function_schema


class Fruit(enum.Enum):
    APPLE = "apple"
    PEAR = 2


@dataclasses.dataclass(frozen=True)
class Leaf:
    day: date
    tags: tuple[str, ...] = ()
    next: Leaf | None = None


class Pair(NamedTuple):
    left: Path
    right: int = 3


class Entry(TypedDict, total=False):
    id: UUID
    leaf: Leaf


def plain(value: Any) -> Any:
    """A value as a model would write it."""
    match value:
        case enum.Enum():
            return value.value
        case datetime() | date():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case Path() | Decimal() | UUID():
            return str(value)
        case bytes():
            return base64.b64encode(value).decode()
        case Leaf():
            return {"day": plain(value.day), "tags": list(value.tags), "next": plain(value.next)}
        case Pair():
            return {"left": str(value.left), "right": value.right}
        case dict():
            return {str(plain(key)): plain(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [plain(item) for item in value]
    return value


leaves = st.recursive(
    st.builds(Leaf, st.dates()),
    lambda inner: st.builds(Leaf, st.dates(), st.tuples(st.text()), inner),
    max_leaves=3,
)
paths = st.text("abc/. ", min_size=1).map(Path)
ATOMS: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (str, st.text()),
    (int, st.integers()),
    (float, st.floats(allow_nan=False, allow_infinity=False)),
    (bool, st.booleans()),
    (None, st.none()),
    (Fruit, st.sampled_from(Fruit)),
    (Literal["a", 1, True], st.sampled_from(["a", 1, True])),
    (date, st.dates()),
    (datetime, st.datetimes(min_value=datetime(1000, 1, 1), timezones=st.just(UTC))),  # noqa: DTZ001
    (timedelta, st.integers(-(10**6), 10**6).map(lambda n: timedelta(seconds=n))),
    (Path, paths),
    (Decimal, st.decimals(allow_nan=False, allow_infinity=False)),
    (UUID, st.uuids()),
    (bytes, st.binary()),
    (Leaf, leaves),
    (Pair, st.builds(Pair, paths, st.integers())),
    (Entry, st.fixed_dictionaries({}, optional={"id": st.uuids(), "leaf": leaves})),
]
HASHABLE = [atom for atom in ATOMS if atom[0] is not Entry]
# Within a union a JSON value may belong to two members; these never do.
DISTINCT = [atom for atom in ATOMS if atom[0] in (int, None, date, Leaf)]


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Pairs of a type and a strategy, one level further out."""
    return st.one_of(
        inner.map(lambda pair: (list[pair[0]], st.lists(pair[1], max_size=3))),
        st.sampled_from(HASHABLE).map(lambda pair: (set[pair[0]], st.sets(pair[1], max_size=3))),
        inner.map(lambda pair: (tuple[pair[0], ...], st.lists(pair[1], max_size=3).map(tuple))),
        st.tuples(inner, inner).map(
            lambda pairs: (tuple[pairs[0][0], pairs[1][0]], st.tuples(pairs[0][1], pairs[1][1]))
        ),
        inner.map(
            lambda pair: (dict[str, pair[0]], st.dictionaries(st.text(), pair[1], max_size=3))
        ),
        inner.map(
            lambda pair: (dict[int, pair[0]], st.dictionaries(st.integers(), pair[1], max_size=3))
        ),
        inner.filter(lambda pair: pair[0] is not None).map(
            lambda pair: (pair[0] | None, pair[1] | st.none())
        ),
    )


unions = st.lists(
    st.sampled_from(DISTINCT), min_size=2, max_size=4, unique_by=lambda a: str(a[0])
).map(
    lambda members: (
        functools.reduce(operator.or_, [hint for hint, _ in members]),
        st.one_of([values for _, values in members]),
    )
)
typed = st.recursive(
    st.sampled_from(ATOMS) | unions.filter(lambda pair: pair[0] is not None),
    containers,
    max_leaves=4,
).flatmap(lambda pair: st.tuples(st.just(pair[0]), pair[1]))


@settings(max_examples=300, deadline=None)
@given(typed)
def test_a_value_written_as_json_fits_the_schema_and_comes_back(pair: tuple[Any, Any]) -> None:
    hint, value = pair

    def tool(value): ...  # type: ignore[no-untyped-def]

    tool.__annotations__ = {"value": hint}
    schema = function_schema(tool)
    sent = json.loads(json.dumps({"value": plain(value)}))
    jsonschema_rs.Draft7Validator(schema.parameters).validate(sent)
    received = schema.convert(sent) if schema.convert else sent

    assert received["value"] == value
    assert json.dumps(function_schema(tool).parameters) == json.dumps(schema.parameters)
