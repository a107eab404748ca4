"""One dialect of regular expressions, and errors that say where."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.errors import ToolError
from hermes.files.search.dialect import PatternError, read_pattern
from hermes.text.regex_worker import FLAGS


@contextmanager
def suppress_look_behind() -> Iterator[None]:
    """Python wants to know how far to look behind; that is said when it is run."""
    try:
        yield
    except re.error as error:
        if "look-behind" not in str(error):
            raise


def finds(pattern: str, text: str, **options: bool) -> bool:
    return re.compile(read_pattern(pattern, **options).python, FLAGS).search(text) is not None


@pytest.mark.parametrize(
    ("pattern", "position"),
    [
        ("foo(", 3),
        ("foo)", 3),
        ("[a-", 0),
        ("a[z-a]", 3),
        ("*a", 0),
        ("a**", 2),
        ("a{2}{3}", 6),
        ("^*", 0),
        (r"\b+", 0),
        (r"a\q", 1),
        ("a\\", 1),
        (r"a\nb", 1),
        ("a\nb", 1),
        ("[\\n]", 0),
        ("(?x)a", 0),
        ("a{3,2}", 1),
        ("a{9999}", 1),
        ("(a{100}){100}", 8),
        (r"\p{Nope}", 0),
        (r"\x{110000}", 0),
        (r"\xZZ", 0),
        (r"a\1", 1),
        ("(?P<n>a)(?P<n>b)", 8),
        ("(?P=n)", 0),
        ("[[:nope:]]", 1),
        ("(?#never closed", 0),
        ("(" * 500 + ")" * 500, 100),
    ],
)
def test_what_is_wrong_is_said_with_its_place(pattern: str, position: int) -> None:
    with pytest.raises(PatternError) as caught:
        read_pattern(pattern)

    assert caught.value.position == position
    assert f"character {position + 1}" in str(caught.value)
    assert "literal=true" in (caught.value.hint or "")


def test_an_empty_pattern_is_refused() -> None:
    with pytest.raises(ToolError, match="empty"):
        read_pattern("")


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("function() {", "function {"),
        ("x{a}", "x{a}"),
        ("a{,2}b", "aab"),
        ("]}", "]}"),
        ("[]a]+", "]a"),
        ("[^]a]", "b"),
        ("[[:upper:]-]x", "-x"),
        (r"[\w.-]+@", "a.b-c@"),
        (r"\<word\>", "a word b"),
        (r"\Aab\z", "ab"),
        (r"\x41\u0042\x{43}", "ABC"),
        ("(?i)straße", "STRAßE"),
        ("a(?i:B)c", "abc"),
        ("(?<year>[0-9]+)", "2024"),
        (r"\p{Lu}\P{L}", "Ä1"),
        ("(?#note)a", "a"),
        (r"(\w)\1", "hello"),
        (r"(?P<q>['\"]).*(?P=q)", "say 'a'"),
        (r"foo(?!bar)", "foobaz"),
        (r"(?<=\$)\d+", "$12"),
        ("(?>a+)b", "aab"),
        ("a++b", "aab"),
    ],
)
def test_what_people_write_means_what_they_mean(pattern: str, text: str) -> None:
    assert finds(pattern, text)


@pytest.mark.parametrize("pattern", [r"(a)\1", "(?=a)", "(?<!a)b", "(?>a)", "a*+"])
def test_what_only_python_can_do_is_marked(pattern: str) -> None:
    assert read_pattern(pattern).rust is None


def test_a_literal_pattern_means_itself() -> None:
    text = "a.b*(c)[d]{e}\\f|g^$é😀\t"

    assert finds(text, f"x{text}y", literal=True)
    assert not finds(text, "aXb", literal=True)
    assert finds("ABC", "abc", literal=True, ignore_case=True)


@given(st.text(max_size=12))
def test_any_text_is_a_pattern_or_an_error(text: str) -> None:
    try:
        pattern = read_pattern(text)
    except ToolError:
        return
    with suppress_look_behind():
        re.compile(pattern.python, FLAGS)


@given(
    st.text(
        alphabet=st.characters(exclude_characters="\n", exclude_categories=["Cs"]),
        min_size=1,
        max_size=12,
    )
)
def test_any_text_is_found_literally(text: str) -> None:
    pattern = read_pattern(text, literal=True)

    assert re.search(pattern.python, f"<{text}>")
    assert pattern.required == text


@pytest.mark.parametrize(
    ("pattern", "required"),
    [("foo.*barbaz", "barbaz"), ("a(xb*)c", "x"), ("(foo|bar)", ""), ("a?b", "b"), ("(?i)abc", "")],
)
def test_the_text_that_every_match_holds(pattern: str, required: str) -> None:
    assert len(read_pattern(pattern).required) == len(required)
    assert read_pattern(pattern).required in (required, "a", "c")
