"""Paths into JSON, and placeholders in texts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.corpus import each

from hermes.runtime.yaml_tools.jsonpath import JsonPath, PathError
from hermes.runtime.yaml_tools.template import Template

DOC: Any = {
    "a": {"b-c": [10, {"name": "x"}, [1, 2]], "name": "top"},
    "it's": {'"': 1},
    "items": [{"name": "n1", "sub": {"name": "n2"}}, {"name": None}],
    "*": "star",
    "ünï": 5,
}


@each(
    ("path", "found"),
    [
        ("$", [DOC]),
        ("$.a.b-c[0]", [10]),
        ("$.a.b-c[-1]", [[1, 2]]),
        ("$.a.b-c[-1][*]", [1, 2]),
        ("$['a']['b-c'][1].name", ["x"]),
        ('$["it\'s"]["\\""]', [1]),
        ("$['it\\'s']", [DOC["it's"]]),
        ("$.items[*].name", ["n1", None]),
        ("$..name", ["top", "x", "n1", "n2", None]),
        ("$.items..name", ["n1", "n2", None]),
        ("$..[0]", [10, 1, DOC["items"][0]]),
        ("$.items.*.name", ["n1", None]),
        ("$['*']", ["star"]),
        ("$.ünï", [5]),
        ("$.missing", []),
        ("$.a[0]", []),
        ("$.items.name", []),
        ("$.items[99]", []),
        ("$.a.b-c[0].x", []),
        (" $.a.name ", ["top"]),
        ("$[ 'a' ].name", ["top"]),
    ],
)
def test_a_path_leads_where_it_says(path: str, found: list[Any]) -> None:
    assert JsonPath(path).find(DOC) == found


@each(
    "path",
    [
        "",
        "a",
        "$a",
        "$.",
        "$..",
        "$[",
        "$[]",
        "$['a",
        "$[a]",
        "$.a b",
        "$[?(@.x)]",
        "$[0:2]",
        "$.a..",
        "$.1a",
        "@.a",
        "$[0,1]",
    ],
)
def test_what_can_not_be_read_is_refused(path: str) -> None:
    with pytest.raises(PathError):
        JsonPath(path)


@pytest.mark.parametrize(
    ("path", "definite"), [("$.a[0]['b']", True), ("$.a[*]", False), ("$..a", False)]
)
def test_a_path_knows_whether_it_leads_to_one_place(path: str, definite: bool) -> None:
    assert JsonPath(path).definite is definite


def test_a_deep_document_is_searched_without_recursion() -> None:
    document: Any = {"x": 1}
    for _ in range(50_000):
        document = [document]

    assert JsonPath("$..x").find(document) == [1]


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=20,
)


def _places(value: Any, path: str = "$") -> list[tuple[str, Any]]:
    found = [(path, value)]
    if isinstance(value, dict):
        for key, inner in value.items():
            quoted = key.replace("\\", "\\\\").replace("'", "\\'")
            found += _places(inner, f"{path}['{quoted}']")
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            found += _places(inner, f"{path}[{at}]")
    return found


@given(_json)
def test_every_place_can_be_reached_by_its_path(document: Any) -> None:
    for path, value in _places(document):
        if "\n" not in path:
            assert JsonPath(path).find(document) == [value]


@given(st.text(max_size=30))
def test_any_text_is_a_path_or_refused(text: str) -> None:
    try:
        JsonPath(f"${text}").find(DOC)
    except PathError:
        return


@pytest.mark.parametrize(
    ("text", "names", "filled"),
    [
        ("{a}", ("a",), "<a>"),
        ("x{a}y{b}z{a}", ("a", "b"), "x<a>y<b>z<a>"),
        ("{{a}}", (), "{a}"),
        ("{{{a}}}", (), "{{a}}"),
        ("{ a }", (), "{ a }"),
        ("{}", (), "{}"),
        ("{1}", (), "{1}"),
        ("{{.Names}}", (), "{{.Names}}"),
        ('{"k":{"x":1}}', (), '{"k":{"x":1}}'),
        ("{a", (), "{a"),
        ("", (), ""),
    ],
)
def test_placeholders_are_found_and_other_braces_left(
    text: str, names: tuple[str, ...], filled: str
) -> None:
    template = Template(text)

    assert template.names == names
    assert template.fill(lambda name: f"<{name}>") == filled


@given(st.text(alphabet="{}ab-. ", max_size=20), st.text(max_size=5))
def test_what_is_filled_in_is_not_read_again(text: str, value: str) -> None:
    template = Template(text)

    filled = template.fill(lambda _: f"{{a}}{value}")

    assert filled.count(f"{{a}}{value}") >= len(template.names)
