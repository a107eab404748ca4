"""Shell patterns for paths: what they fit, what is wrong with them, and that none takes long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.corpus import each

from hermes.text.globs import GlobError, chooser, split


@each(
    ("glob", "path", "fits"),
    [
        ("*.py", "a.py", True),
        ("*.py", "deep/a.py", True),
        ("*.py", "a.pyc", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/x/a.py", False),
        ("src/*.py", "y/src/a.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/x/y/a.py", True),
        ("**/test/*.py", "test/a.py", True),
        ("src/**", "src/x/y", True),
        ("src/**", "src", False),
        ("src", "src/x/y", True),
        ("src/", "src/x/y", True),
        ("/src", "x/src/y", False),
        ("./src/*", "src/y", True),
        ("*.{js,ts{,x}}", "a.tsx", True),
        ("*.{js,ts}", "a.tsx", False),
        ("[!a-c].txt", "d.txt", True),
        ("[!a-c].txt", "b.txt", False),
        ("?.txt", "é.txt", True),
        ("a[!x]b", "a/b", False),
        (r"\*.txt", "*.txt", True),
        (r"\*.txt", "a.txt", False),
        ("*.py,*.pyi", "a.pyi", True),
        ("*.py, !test_*", "test_a.py", False),
        ("!*.min.js", "a.js", True),
        ("!node_modules", "x/node_modules/y.js", False),
        ("*a*b*c", "xaybzc", True),
        ("*a*b*c", "xbyazc", False),
        ("**/a/**/b", "x/a/y/b", True),
        ("**/a/**/b", "x/b/y/a", False),
        ("**/a*b", "a/x/ab", True),
    ],
)
def test_what_a_pattern_fits(glob: str, path: str, fits: bool) -> None:
    assert chooser(glob)(path) is fits


@pytest.mark.parametrize(
    ("glob", "position"),
    [("a[b", 1), ("a{b", 1), ("a}b", 1), ("a\\", 1), ("[z-a]", 1), ("{a,b}" * 9, 44)],
)
def test_what_is_wrong_is_said_with_its_place(glob: str, position: int) -> None:
    with pytest.raises(GlobError) as caught:
        chooser(glob)

    assert caught.value.position == position
    assert f"at character {position + 1}" in str(caught.value)


def test_commas_in_braces_and_brackets_part_nothing() -> None:
    assert split("*.{a,b}, [,] ,x\\,y,,") == ["*.{a,b}", "[,]", "x\\,y"]


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("*a" * 60 + "b", "a" * 255),
        ("**/a/" * 30 + "b", "a/" * 2000 + "c"),
        ("**/*a*a*a/" * 10 + "b", ("a" * 50 + "/") * 80 + "c"),
        ("*" * 500 + "b", "a" * 4000),
    ],
)
def test_no_pattern_takes_long(glob: str, path: str) -> None:
    assert not chooser(glob)(path)


@given(st.text(alphabet="ab*?/[]{}!,\\-.", max_size=12), st.text(alphabet="ab/.", max_size=12))
def test_any_text_is_a_pattern_or_an_error(glob: str, path: str) -> None:
    position = 0
    try:
        chooser(glob)(path)
    except GlobError as error:
        position = error.position
    assert 0 <= position <= len(glob)
