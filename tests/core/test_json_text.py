"""JSON text that any model can parse, whatever it is made of."""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import enum
import json
import pathlib
import uuid
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple
from unittest.mock import MagicMock

from hypothesis import given
from hypothesis import strategies as st
from tests.corpus import each

from hermes.core.json_text import _careful, to_json

BIG = 2**70


@dataclass
class Point:
    x: int
    y: Any


class Pair(NamedTuple):
    a: int
    b: int


class Colour(enum.Enum):
    RED = "red"


class Unspeakable:
    def __str__(self) -> str:
        raise ZeroDivisionError("no")

    def __getattr__(self, name: str) -> Any:
        raise KeyError(name)


def cycle() -> list[Any]:
    items: list[Any] = [1]
    items.append(items)
    return items


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@each(
    ("value", "text"),
    [
        (None, "null"),
        ("größe ✓ 日本", '"größe ✓ 日本"'),
        ({"a": [1, 2.5, True]}, '{"a":[1,2.5,true]}'),
        (pathlib.PurePosixPath("/a/b"), '"/a/b"'),
        (Colour.RED, '"red"'),
        (Point(1, Colour.RED), '{"x":1,"y":"red"}'),
        (Pair(1, 2), "[1,2]"),
        (ValueError("no"), '"ValueError: no"'),
        (dt.date(2026, 1, 2), '"2026-01-02"'),
        ({1}, "[1]"),
        (BIG, str(BIG)),
        (range(3), "[0,1,2]"),
        ({"a": 1}.keys(), '["a"]'),
        (MappingProxyType({"a": 1}), '{"a":1}'),
        (collections.deque([1, 2]), "[1,2]"),
        (float("nan"), "null"),
        ([float("inf"), float("-inf")], "[null,null]"),
        ({None: 1, True: 2, 3: 4, 1.5: 5}, '{"null":1,"true":2,"3":4,"1.5":5}'),
        ({(1, 2): 3}, '{"(1, 2)":3}'),
        (dt.date, '"date"'),
        ("a\ud800b", '"a\\ud800b"'),
        (b"\xff", '"/w=="'),
    ],
)
def test_values_are_spelled_plainly(value: Any, text: str) -> None:
    assert to_json(value) == text


ODD: list[Any] = [
    Unspeakable(),
    {"x": Unspeakable(), "y": [Unspeakable()]},
    {Unspeakable(): 1},
    MagicMock(),
    cycle(),
    {"a": cycle()},
    deep(500),
    deep(100_000),
    10**5000,
    {10**5000: -(10**5000)},
    [BIG, "\udfff", {"\ud800": "\udc00"}],
    decimal.Decimal("1.5"),
    uuid.UUID(int=5),
    dt.timedelta(days=3),
    Point,
    Pair,
    object(),
    lambda: None,
    (x for x in [1]),
    memoryview(b"abc"),
    {BIG: b"\xff\x00", "n": float("nan")},
    {frozenset({1}): {2, "b", BIG}},
    json,
]


@each("number", range(len(ODD)))
def test_nothing_is_too_odd_to_be_written(number: int) -> None:
    text = to_json(ODD[number])

    json.loads(text)
    text.encode()


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.binary(max_size=5)
    | st.dates()
    | st.sampled_from([Colour.RED, Pair(1, BIG), object()]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(st.characters(), max_size=4) | st.integers(), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(anything)
def test_any_value_becomes_valid_json_and_utf8(value: Any) -> None:
    text = to_json(value)

    json.loads(text)
    text.encode()
    assert "\n" not in text


@given(anything)
def test_the_careful_way_and_the_fast_one_say_the_same(value: Any) -> None:
    assert json.loads(to_json(value)) == json.loads(_careful(value))


plain_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(plain_json)
def test_json_values_come_back_as_they_were(value: Any) -> None:
    assert json.loads(to_json(value)) == value
