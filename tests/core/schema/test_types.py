"""Type hints: the schema of each, and the values that handlers get."""

from __future__ import annotations

import dataclasses
import enum
import typing
from collections import OrderedDict, deque
from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import (
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    Required,
    TypeVar,
    Union,
)
from uuid import UUID

import jsonschema_rs
import msgspec
import pytest
import typing_extensions
from tests.corpus import each
from typing_extensions import ReadOnly, TypedDict

from hermes.core.errors import ArgumentError, RegistrationError
from hermes.core.schema import Field, function_schema

T = TypeVar("T")


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Access(enum.Flag):
    READ = 1
    WRITE = 2


@dataclasses.dataclass
class Node:
    """A tree.

    Attributes:
        name: What it is called.
    """

    kinds: ClassVar[int] = 3
    name: str
    born: date | None = None
    children: list[Node] = dataclasses.field(default_factory=list)
    size: int = dataclasses.field(init=False, default=0)


@dataclasses.dataclass
class Box(Generic[T]):
    item: T
    inner: Box[T] | None = None


class Job(TypedDict, total=False):
    name: Required[str]
    at: Annotated[datetime, "When it is due."]
    tags: ReadOnly[NotRequired[list[str]]]


class LinkedJob(TypedDict):
    name: str
    then: NotRequired[LinkedJob]


class Point(NamedTuple):
    x: int
    y: int = 0


class Slug(str):
    __slots__ = ()


UserId = NewType("UserId", int)
Size: typing.TypeAlias = "int | Literal['all']"
Json = typing_extensions.TypeAliasType("Json", "dict[str, Json] | list[Json] | str | None")
Text = typing_extensions.TypeAliasType("Text", str)


def shape_of(hint: Any, **default: Any) -> tuple[dict[str, Any], Any]:
    """The schema and the converter of one hint, with a validator having accepted the schema."""

    def tool(value): ...  # type: ignore[no-untyped-def]

    tool.__annotations__ = {"value": hint}
    if "default" in default:
        tool.__defaults__ = (default["default"],)
    schema = function_schema(tool)
    jsonschema_rs.validator_for(schema.parameters)
    jsonschema_rs.Draft7Validator(schema.parameters)
    convert = schema.convert and (lambda value: schema.convert({"value": value})["value"])  # type: ignore[misc]
    result = dict(schema.parameters["properties"]["value"])
    if "definitions" in schema.parameters:
        result["definitions"] = schema.parameters["definitions"]
    return result, convert


@each(
    ("hint", "expected"),
    [
        ("str", {"type": "string"}),
        ("None", {"type": "null"}),
        (Any, {}),
        (object, {}),
        ("str | None", {"type": ["string", "null"]}),
        (Union[str, int], {"type": ["string", "integer"]}),  # noqa: UP007
        ("int | float", {"type": "number"}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        ("Literal['a', None] | None", {"type": ["string", "null"], "enum": ["a", None]}),
        (Literal["a", 1, None], {"type": ["string", "integer", "null"], "enum": ["a", 1, None]}),
        ("Literal['a'] | None", {"type": ["string", "null"], "enum": ["a", None]}),
        ("list", {"type": "array"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        ("list['int'] | None", {"type": ["array", "null"], "items": {"type": "integer"}}),
        (Iterable[str], {"type": "array", "items": {"type": "string"}}),
        ("Sequence[dict]", {"type": "array", "items": {"type": "object"}}),
        (typing.List[Any], {"type": "array"}),  # noqa: UP006
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        ("Mapping[str, Any]", {"type": "object"}),
        (UserId, {"type": "integer"}),
        (Size, {"anyOf": [{"type": "integer"}, {"type": "string", "enum": ["all"]}]}),
        (Text, {"type": "string"}),
        (typing.LiteralString, {"type": "string"}),
        (T, {}),
        (
            "str | list[str] | int",
            {
                "anyOf": [
                    {"type": ["string", "integer"]},
                    {"type": "array", "items": {"type": "string"}},
                ]
            },
        ),
    ],
)
def test_plain_values_pass_as_they_come(hint: Any, expected: dict[str, Any]) -> None:
    schema, convert = shape_of(hint)

    assert schema == expected
    assert convert is None


@each(
    ("hint", "sent", "value"),
    [
        (Color, "red", Color.RED),
        (Level, 2, Level.HIGH),
        (Access, 3, Access.READ | Access.WRITE),
        (Literal[Color.RED, "other"], "red", Color.RED),
        (Literal[Color.RED, "other"], "other", "other"),
        ("Color | None", None, None),
        (set[int], [1, 2], {1, 2}),
        (frozenset[Color], ["red"], frozenset({Color.RED})),
        (typing.AbstractSet[str], ["a"], {"a"}),
        (tuple[int, str], [1, "a"], (1, "a")),
        (tuple[Path, ...], ["a", "b"], (Path("a"), Path("b"))),
        (tuple[()], [], ()),
        (tuple, [1, "x"], (1, "x")),
        (deque[int], [1, 2], deque([1, 2])),
        (OrderedDict[str, int], {"a": 1}, OrderedDict(a=1)),
        (dict[int, date], {"-3": "2031-05-17"}, {-3: date(2031, 5, 17)}),
        (dict[Color, int], {"blue": 1}, {Color.BLUE: 1}),
        (list[Path], ["a/b"], [Path("a/b")]),
        (datetime, "2031-05-17T14:30:00Z", datetime(2031, 5, 17, 14, 30, tzinfo=UTC)),
        (time, "14:30:00+00:00", time(14, 30, tzinfo=UTC)),
        (timedelta, 1.5, timedelta(seconds=1.5)),
        (timedelta, "P1W2DT3H4M5.5S", timedelta(days=9, hours=3, minutes=4, seconds=5.5)),
        (timedelta, "-PT90M", timedelta(minutes=-90)),
        (Decimal, "0.10", Decimal("0.10")),
        (Decimal, 0.1, Decimal("0.1")),
        (UUID, "12345678123456781234567812345678", UUID("12345678123456781234567812345678")),
        (bytes, "aGk=", b"hi"),
        (Slug, "a", Slug("a")),
        (Node, {"name": "a", "children": [{"name": "b"}]}, Node("a", children=[Node("b")])),
        (Box[Path], {"item": "a", "inner": {"item": "b"}}, Box(Path("a"), Box(Path("b")))),
        (Job, {"name": "a", "at": "2031-01-01"}, {"name": "a", "at": datetime(2031, 1, 1)}),  # noqa: DTZ001
        (Point, {"x": 1}, Point(1)),
        (Point, [1, 2], Point(1, 2)),
        ("int | Color | list[Path]", ["a"], [Path("a")]),
        ("int | Color | list[Path]", "red", Color.RED),
        ("date | str", "soon", "soon"),
        ("Point | Node", {"name": "a"}, Node("a")),
        (Annotated[Path, "Where."] | None, "a", Path("a")),
    ],
)
def test_json_values_become_the_values_that_the_hint_names(
    hint: Any, sent: Any, value: Any
) -> None:
    _, convert = shape_of(hint)

    converted = convert(sent)

    assert converted == value
    assert type(converted) is type(value) or isinstance(converted, frozenset)
    if not isinstance(hint, str):
        assert convert(converted) == value


def test_a_record_that_refers_to_itself_is_a_definition() -> None:
    schema, _ = shape_of(Node)

    assert schema["$ref"] == "#/definitions/Node"
    assert schema["definitions"]["Node"] == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "What it is called."},
            "born": {"type": ["string", "null"], "format": "date", "default": None},
            "children": {
                "type": "array",
                "items": {"$ref": "#/definitions/Node"},
                "default": [],
            },
        },
        "required": ["name"],
        "additionalProperties": False,
    }


def test_a_record_used_once_stands_where_it_is_used() -> None:
    schema, _ = shape_of(Job)

    assert schema == {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "at": {"type": "string", "format": "date-time", "description": "When it is due."},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["name"],
        "additionalProperties": False,
    }


def test_a_record_used_twice_is_written_once() -> None:
    def tool(a: Point, b: Point, c: list[Point]) -> None: ...

    parameters = function_schema(tool).parameters

    assert list(parameters["definitions"]) == ["Point"]
    assert parameters["properties"]["c"]["items"] == {"$ref": "#/definitions/Point"}


def test_two_records_of_one_name_stay_apart() -> None:
    def other() -> type:
        @dataclasses.dataclass
        class Point:
            z: list[Point]

        return Point

    schema, _ = shape_of(tuple[Point, Point, other()])  # type: ignore[misc]

    assert list(schema["definitions"]) == ["Point", "Point_2"]


def test_plain_recursion_needs_no_converter() -> None:
    assert shape_of(LinkedJob)[1] is None
    assert shape_of(Json)[1] is None


def test_types_of_the_surrounding_function_are_found() -> None:
    class Inner(enum.Enum):
        A = "a"

    @dataclasses.dataclass
    class Outer:
        inner: Inner
        more: list[Outer] | None = None

    def tool(value: Outer, other: Inner) -> None: ...

    convert = function_schema(tool).convert

    assert convert is not None
    assert convert({"other": "a", "value": {"inner": "a", "more": [{"inner": "a"}]}}) == {
        "other": Inner.A,
        "value": Outer(Inner.A, [Outer(Inner.A)]),
    }


def test_a_field_may_have_the_name_of_its_type() -> None:
    @dataclasses.dataclass
    class Day:
        date: date | None = None

    assert shape_of(Day)[0]["properties"]["date"]["format"] == "date"


@pytest.mark.parametrize(
    ("hint", "words"),
    [
        (Annotated[int, Field(ge=1, le=9)], {"minimum": 1, "maximum": 9}),
        (Annotated[int | None, Field(gt=0)], {"exclusiveMinimum": 0}),
        (
            Annotated[float, Field(lt=1.5, multiple_of=0.5)],
            {"exclusiveMaximum": 1.5, "multipleOf": 0.5},
        ),
        (Annotated[str, Field(min_length=1, pattern="^a")], {"minLength": 1, "pattern": "^a"}),
        (Annotated[list[int], Field(max_length=3)], {"maxItems": 3}),
        (Annotated[dict[str, int], Field(min_length=1)], {"minProperties": 1}),
        (Annotated[int, "How many."], {"description": "How many."}),
        (
            Annotated[int, Field(description="How\n  many.", examples=[3])],
            {"description": "How many.", "examples": [3]},
        ),
        (Annotated[int, msgspec.Meta(ge=2, description="m")], {"minimum": 2, "description": "m"}),
        (Annotated[int, typing_extensions.Doc("d")], {"description": "d"}),
        (list[Annotated[int, Field(ge=1)]], {"items": {"type": "integer", "minimum": 1}}),
    ],
)
def test_annotated_adds_its_words(hint: Any, words: dict[str, Any]) -> None:
    schema, _ = shape_of(hint)

    assert {key: schema[key] for key in words} == words


def test_limits_that_json_schema_can_not_say_are_checked_on_the_value() -> None:
    _, money = shape_of(Annotated[Decimal, Field(ge=0)])
    _, day = shape_of(Annotated[date, Field(gt=date(2031, 1, 1))])
    _, blob = shape_of(Annotated[bytes, Field(max_length=2)])

    assert money("1.5") == Decimal("1.5")
    for convert, value in ((money, "-1"), (day, "2030-01-01"), (blob, "YWJj")):
        with pytest.raises(ArgumentError, match="expected"):
            convert(value)


def test_a_limit_that_fits_nothing_is_refused() -> None:
    for hint in (Annotated[int, Field(min_length=1)], Annotated[str, Field(ge=1)]):
        with pytest.raises(RegistrationError, match="does not fit"):
            shape_of(hint)


@pytest.mark.parametrize(
    ("hint", "default", "shown"),
    [
        ("Color", Color.RED, "red"),
        ("int", None, None),
        ("tuple[int, int]", (1, 2), [1, 2]),
        ("Sequence[str]", (), []),
        ("Path", Path("a"), "a"),
        ("set[str]", {"b", "a"}, ["a", "b"]),
        ("date", date(2031, 5, 17), "2031-05-17"),
        ("dict[str, Color]", {"a": Color.BLUE}, {"a": "blue"}),
    ],
)
def test_defaults_are_shown_in_json(hint: str, default: Any, shown: Any) -> None:
    schema, _ = shape_of(hint, default=default)

    assert schema["default"] == shown
    jsonschema_rs.Draft7Validator(schema).validate(shown)


@pytest.mark.parametrize("default", [object(), float("nan"), Color.RED, [object()], {1: 2}])
def test_defaults_without_a_json_form_only_make_the_parameter_optional(default: Any) -> None:
    def tool(a: Any = default) -> None: ...

    parameters = function_schema(tool).parameters

    assert parameters["properties"] == {"a": {}}
    assert parameters["required"] == []


def test_a_bad_value_is_named_with_its_place() -> None:
    def tool(tree: Node, when: date) -> None: ...

    convert = function_schema(tool).convert

    assert convert is not None
    with pytest.raises(ArgumentError) as caught:
        convert({"tree": {"name": "a", "children": [{"name": "b", "born": "x"}]}, "when": "soon"})
    first, second = caught.value.problems
    assert first.startswith("tree.children[0].born: expected a date")
    assert second.startswith("when: expected a date")
    assert "'soon'" in second


@each(
    ("hint", "sent"),
    [
        (tuple[int, str], ["a", 1]),
        (tuple[int, str], [1]),
        (bytes, "not base64!"),
        (timedelta, "P1Y"),
        (timedelta, "PT"),
        (timedelta, "P1H"),
        (Decimal, "NaN"),
        (Decimal, True),
        (Color, "green"),
        (Color, ["red"]),
        (Point, {"x": 1, "z": 2}),
        (UUID, "1234"),
        ("Color | date", 3),
    ],
)
def test_values_that_do_not_fit_are_refused(hint: Any, sent: Any) -> None:
    _, convert = shape_of(hint)

    with pytest.raises(ArgumentError, match="value"):
        convert(sent)


def test_what_a_record_itself_refuses_is_passed_on() -> None:
    @dataclasses.dataclass
    class Span:
        first: int
        last: int

        def __post_init__(self) -> None:
            if self.last < self.first:
                raise ValueError("last lies before first")

    _, convert = shape_of(Span)

    with pytest.raises(ArgumentError, match="last lies before first"):
        convert({"first": 2, "last": 1})


def test_the_arguments_of_the_caller_are_left_alone() -> None:
    def tool(a: Path, b: list[Color]) -> None: ...

    sent = {"a": "x", "b": ["red"]}
    convert = function_schema(tool).convert

    assert convert is not None
    assert convert(sent) == {"a": Path("x"), "b": [Color.RED]}
    assert sent == {"a": "x", "b": ["red"]}
