"""What holds for every schema and every value, not only for those that someone thought of."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from hermes.core.arguments import ArgumentReader, coerce_tool_args, split_glued
from hermes.core.arguments.reader import same
from hermes.core.errors import ArgumentError

quick = settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None
)

texts = st.text(st.characters(codec=None), max_size=12) | st.sampled_from(
    ["", " ", "5", "-1.5", "true", "null", "[1]", "['a']", '{"a": 1}', "007", "[", "\ud800", "\\"]
)
integers = st.integers() | st.integers(-(10**40), 10**40)
floats = st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | integers | floats | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=8,
)
objects = st.dictionaries(texts, values, max_size=5)


def _typed(kind: str, instances: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, Any]]:
    return instances.map(lambda value: ({"type": kind}, value))


leaves: st.SearchStrategy[tuple[Any, Any]] = st.one_of(
    _typed("string", texts),
    _typed("integer", integers),
    _typed("number", integers | floats),
    _typed("boolean", st.booleans()),
    _typed("null", st.none()),
    values.map(lambda value: ({}, value)),
    values.map(lambda value: (True, value)),
    st.tuples(st.lists(texts, min_size=1, max_size=4), st.integers(0, 3)).map(
        lambda pair: ({"enum": pair[0]}, pair[0][pair[1] % len(pair[0])])
    ),
)


def _grown(
    inner: st.SearchStrategy[tuple[Any, Any]],
) -> st.SearchStrategy[tuple[Any, Any]]:
    """A schema around others, with an instance that is valid because theirs are."""
    members = st.dictionaries(texts, inner, max_size=3)
    return st.one_of(
        st.tuples(inner, st.integers(0, 3)).map(
            lambda pair: ({"type": "array", "items": pair[0][0]}, [pair[0][1]] * pair[1])
        ),
        members.map(
            lambda found: (
                {"type": "object", "properties": {k: v[0] for k, v in found.items()}},
                {k: v[1] for k, v in found.items()},
            )
        ),
        st.tuples(inner, inner).map(lambda pair: ({"anyOf": [pair[0][0], pair[1][0]]}, pair[1][1])),
        inner.map(lambda pair: ({"allOf": [pair[0]]}, pair[1])),
    )


pairs = st.recursive(leaves, _grown, max_leaves=4)


def attempt(reader: ArgumentReader, raw: dict[str, Any] | str) -> dict[str, Any] | None:
    """What a reader makes of some input; None where it refuses as it should."""
    refusal: ArgumentError
    try:
        return reader.read(raw)
    except ArgumentError as error:
        refusal = error
    assert refusal.problems
    assert len(str(refusal)) <= 2_000
    assert str(refusal).encode()
    return None


@st.composite
def calls(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """A schema and arguments that are valid for it."""
    members = draw(st.dictionaries(texts, pairs, max_size=4))
    schema = {
        "type": "object",
        "properties": {name: pair[0] for name, pair in members.items()},
        "required": list(members),
    }
    return schema, {name: pair[1] for name, pair in members.items()}


@quick
@given(calls())
def test_valid_arguments_come_back_unchanged(
    call: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    schema, arguments = call

    assert repr(coerce_tool_args(schema, arguments)) == repr(arguments)


@quick
@given(calls())
def test_text_and_object_are_read_alike(call: tuple[dict[str, Any], dict[str, Any]]) -> None:
    schema, arguments = call

    for ascii_only in (True, False):
        text = json.dumps(arguments, ensure_ascii=ascii_only)
        assume(json.loads(text) == arguments)  # two halves of a pair become one character
        assert same(coerce_tool_args(schema, text), arguments)
        assert same(coerce_tool_args(schema, json.dumps(text)), arguments)


@quick
@given(calls(), objects)
def test_reading_twice_is_reading_once_and_no_key_is_lost(
    call: tuple[dict[str, Any], dict[str, Any]], wild: dict[str, Any]
) -> None:
    schema, arguments = call
    reader = ArgumentReader({**schema, "required": []})
    mixed = dict(zip(arguments, wild.values(), strict=False)) | wild
    before = repr(mixed)
    read = attempt(reader, mixed)

    if read is not None:
        assert read.keys() >= mixed.keys()
        assert same(reader.read(read), read)
    assert repr(mixed) == before


typed = st.one_of(
    _typed("integer", integers),
    _typed("number", integers | floats),
    _typed("boolean", st.booleans()),
    st.lists(integers, max_size=4).map(
        lambda found: ({"type": "array", "items": {"type": "integer"}}, found)
    ),
    st.lists(texts, max_size=4).map(
        lambda found: ({"type": "array", "items": {"type": "string"}}, found)
    ),
    st.dictionaries(texts, values, max_size=3).map(lambda found: ({"type": "object"}, found)),
)


@quick
@given(st.dictionaries(texts, typed, max_size=4))
def test_values_sent_as_text_are_read_back_exactly(members: dict[str, tuple[Any, Any]]) -> None:
    schema = {"properties": {name: pair[0] for name, pair in members.items()}}
    sent = {name: json.dumps(pair[1]) for name, pair in members.items()}

    read = coerce_tool_args(schema, sent)

    assert repr(read) == repr({name: json.loads(text) for name, text in sent.items()})


@quick
@given(objects, st.data())
def test_a_text_cut_anywhere_is_refused(arguments: dict[str, Any], data: st.DataObject) -> None:
    reader = ArgumentReader({"type": "object"})
    for text in (
        json.dumps(arguments),
        json.dumps(arguments, ensure_ascii=False, indent=1),
        json.dumps(json.dumps(arguments)),
    ):
        end = data.draw(st.integers(1, len(text) - 1))
        with pytest.raises(ArgumentError, match="incomplete"):
            reader.read(text[:end])
    literal = repr(arguments)
    with pytest.raises(ArgumentError):
        reader.read(literal[: data.draw(st.integers(1, len(literal) - 1))])


@quick
@given(objects)
def test_python_literals_are_read_exactly(arguments: dict[str, Any]) -> None:
    text = repr(arguments)
    assume(json.loads(json.dumps(arguments)) == arguments)

    read = attempt(ArgumentReader({"type": "object"}), text)

    # An escape that only Python knows is read where the first string is Python's for certain.
    if read is None:
        assert "\\" in text
        assert text[1] == '"'
    else:
        assert repr(read) == text


@quick
@given(objects, objects)
def test_glued_objects_are_one_call_or_none(left: dict[str, Any], right: dict[str, Any]) -> None:
    first, second = json.dumps(left), json.dumps(right)
    reader = ArgumentReader({"type": "object"})

    assert same(reader.read(first + first), reader.read(first))
    if not same(json.loads(first), json.loads(second)):
        assert split_glued(first + second) == [first, second]
        with pytest.raises(ArgumentError, match="several"):
            reader.read(first + "\n" + second)


@quick
@given(
    st.text(st.characters(codec=None)) | st.text("{}[]()\"'\\:,.-+eE0123tfnTFN `“”\n", max_size=30)
)
def test_any_text_gives_an_object_or_an_argument_error(text: str) -> None:
    read = attempt(ArgumentReader({"type": "object"}), text)

    assert read is None or type(read) is dict


schemas = st.recursive(
    st.booleans()
    | st.builds(lambda kind: {"type": kind}, st.sampled_from(["string", "integer", "null", "odd"]))
    | st.builds(lambda ref: {"$ref": ref}, st.sampled_from(["#", "#/$defs/x", "#/properties/a"]))
    | st.dictionaries(st.sampled_from(["type", "enum", "items", "default", "nullable"]), values),
    lambda inner: st.one_of(
        st.builds(lambda part: {"anyOf": part}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda part: {"type": "array", "items": part}, inner),
        st.builds(
            lambda a, b: {"properties": {"a": a, "b": b}, "additionalProperties": a}, inner, inner
        ),
        st.builds(
            lambda part, rest: {"allOf": [part], "$ref": "#/$defs/x", **rest}, inner, st.just({})
        ),
    ),
    max_leaves=5,
)


@quick
@given(schemas, schemas, st.dictionaries(st.sampled_from("abc"), values))
def test_any_schema_gives_arguments_or_an_argument_error(
    first: Any, second: Any, arguments: dict[str, Any]
) -> None:
    schema = {"properties": {"a": first, "b": second}, "$defs": {"x": second}}

    try:
        read = coerce_tool_args(schema, arguments)
    except ArgumentError:
        return
    assert read.keys() >= arguments.keys()
    assert same(coerce_tool_args(schema, read), read)
