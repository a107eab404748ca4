"""Patterns are those of ripgrep, or of Python where there is none; errors say where."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.files.search.conftest import make, search

from hermes.core.errors import ToolError
from hermes.files.search.query import PatternError, read_pattern


@pytest.mark.parametrize("pattern", ["foo(", "[a-", "a[z-a]", "*a", "a{3,2}", "a\\"])
def test_an_invalid_pattern_is_an_error_with_its_position(
    tmp_path: Path, engine: str, pattern: str
) -> None:
    make(tmp_path, {"a": "x\n"})

    if engine == "python" and pattern == "[a-":
        pytest.skip("reported as an unterminated set at another position")
    with pytest.raises(PatternError, match="invalid pattern at character") as caught:
        search(tmp_path, pattern, engine=engine)

    assert caught.value.position is not None
    assert "literal=true" in (caught.value.hint or "")


@pytest.mark.parametrize("pattern", ["a\nb", "\ud800"])
def test_a_pattern_that_no_line_can_match_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        read_pattern(pattern)


def test_an_empty_pattern_is_refused() -> None:
    with pytest.raises(ToolError, match="empty"):
        read_pattern("")


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("x{a}", "x{a}"),
        ("]}", "]}"),
        (r"[\w.-]+@", "a.b-c@"),
        ("(?i)straße", "STRAßE"),
        ("a(?i:B)c", "abc"),
        (r"(\w)\1", "hello"),
        (r"foo(?!bar)", "foobaz"),
        (r"(?<=\$)\d+", "$12"),
        ("(?>a+)b", "aab"),
        ("a++b", "aab"),
        ("words$", "some words\r"),
    ],
)
def test_both_engines_know_common_syntax(
    tmp_path: Path, engine: str, pattern: str, text: str
) -> None:
    make(tmp_path, {"a": f"other\n{text}\n"})

    assert search(tmp_path, pattern, engine=engine).counts == {"a": 1}


@pytest.mark.parametrize(("pattern", "text"), [("[[:upper:]]+x", "ABx"), (r"\p{Lu}\P{L}", "Ä1")])
def test_ripgrep_knows_more(tmp_path: Path, pattern: str, text: str) -> None:
    make(tmp_path, {"a": f"{text}\n"})

    assert search(tmp_path, pattern, engine="ripgrep").counts == {"a": 1}


def test_a_file_that_exceeds_the_match_limit_is_skipped_and_counted(tmp_path: Path) -> None:
    make(tmp_path, {"slow": "a" * 40 + "!\n", "b": "aa\n"})

    found = search(tmp_path, "(?=a)(a+)+$", engine="ripgrep")

    assert found.counts == {"b": 1}
    assert found.skipped.unreadable == 1


def test_no_pattern_matches_across_lines(tmp_path: Path, engine: str) -> None:
    make(tmp_path, {"a": "one\ntwo\n"})

    assert not search(tmp_path, r"one\s+two", engine=engine).counts
    assert not search(tmp_path, r"one[^x]two", engine=engine).counts


@pytest.mark.parametrize("ignore_case", [False, True])
def test_a_literal_pattern_means_itself(tmp_path: Path, engine: str, ignore_case: bool) -> None:
    text = "a.b*(c)[d]{e}\\f|g^$é😀\t"
    make(tmp_path, {"a": f"x{text}y\n", "b": "aXb\n"})

    found = search(tmp_path, text, engine=engine, literal=True, ignore_case=ignore_case)

    assert found.counts == {"a": 1}


@given(st.text(max_size=12))
def test_any_text_is_a_pattern_or_an_error(text: str) -> None:
    try:
        read_pattern(text).python()
    except ToolError:
        return
