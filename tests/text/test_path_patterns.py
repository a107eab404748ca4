"""Patterns choose the same files wherever a tool takes them."""

from __future__ import annotations

from tests.corpus import each

from hermes.text.globs import Patterns


@each(
    ("pattern", "path", "fits"),
    [
        ("*.py", "a.py", True),
        ("*.py", "deep/down/a.py", True),
        ("*.py", "a.pyc", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/deep/a.py", False),
        ("src/*.py", "other/src/a.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/x/y/a.py", True),
        ("build", "build/x/y", True),
        ("build/", "sub/build/x", True),
        ("/build", "sub/build/x", False),
        ("/build", "build/x", True),
        ("./build/x", "build/x", True),
        ("*.{js,ts}", "a/b.ts", True),
        ("*.{js,ts}", "a/b.tsx", False),
        ("[!a].txt", "b.txt", True),
        ("[!a].txt", "a.txt", False),
        ("node_modules", "node_modules_2", False),
    ],
)
def test_a_pattern_fits_by_name_or_from_the_top(pattern: str, path: str, fits: bool) -> None:
    assert Patterns([pattern]).fit(path) is fits


def test_no_pattern_fits_nothing() -> None:
    assert not Patterns(None)
    assert not Patterns(["", "/", "."])
    assert not Patterns([]).fit("a")


def test_a_pattern_of_many_stars_takes_no_time() -> None:
    assert not Patterns(["*a" * 60 + "b"]).fit("a" * 5_000)
