"""Both engines give the same answers, whatever they are asked."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.files.search.conftest import ENGINES, make, search, seen

from hermes.core.errors import ToolError
from hermes.files.search.query import Choice
from hermes.files.search.ripgrep import find_ripgrep
from hermes.text.globs import chooser

TREE = {
    "a.txt": "needle one\nnothing\nneedle two\n",
    "sub/b.py": "x = 'needle'\r\ny = 1\r\n",
    "sub/.hidden/c.txt": "needle\n",
    ".env": "needle=1\n",
    "build/out.txt": "needle\n",
    "log.log": "needle\n",
    "keep.log": "needle\n",
    ".gitignore": "build/\n*.log\n!keep.log\n",
    ".git/config": "needle\n",
    "bin.dat": b"needle\0\1\2",
    "wide.txt": "needle wide\n".encode("utf-16"),
    "latin.txt": b"needle caf\xe9\n",
    "deep/er/est/d.txt": "a needle\n",
    "empty.txt": "",
}
CASES: dict[str, dict[str, object]] = {
    "plain": {},
    "with lines around": {"context": 2},
    "a page": {"offset": 2, "limit": 2},
    "a page past the end": {"offset": 99},
    "no lines": {"limit": 0},
    "hidden": {"choice": Choice(hidden=True)},
    "ignored": {"choice": Choice(ignored=True)},
    "all": {"choice": Choice(hidden=True, ignored=True, binary=True)},
    "by name": {"chosen": chooser("*.txt")},
    "by path": {"chosen": chooser("sub/**/*.py")},
    "less some": {"chosen": chooser("!*.txt,!sub")},
    "by a name that nothing has": {"chosen": chooser("*.zig")},
    "any case": {"ignore_case": True},
    "closed files": {"readable": lambda place: not place.endswith("a.txt")},
}


@pytest.mark.parametrize("case", CASES)
def test_both_answer_alike(tmp_path: Path, case: str) -> None:
    make(tmp_path, TREE)

    one, other = (seen(search(tmp_path, "needle", engine=e, **CASES[case])) for e in ENGINES)

    assert one == other


@pytest.mark.parametrize(
    "root", ["", ".git", "build", "sub/.hidden", "deep", "sub/b.py", ".env", "log.log", "bin.dat"]
)
def test_a_root_that_was_named_is_searched_by_both(tmp_path: Path, root: str) -> None:
    make(tmp_path, TREE)

    one, other = (seen(search(tmp_path / root, "needle", engine=e)) for e in ENGINES)

    assert one == other
    assert one["counts"] or root == "bin.dat"


def test_a_root_that_is_ignored_by_a_pattern_for_its_contents_is_searched(
    tmp_path: Path, engine: str
) -> None:
    make(tmp_path, {".gitignore": "/out/**\n*\n", "out/a.txt": "needle\n"})

    assert search(tmp_path / "out", "needle", engine=engine).counts == {"a.txt": 1}


def test_rules_above_the_root_hold_below_it(tmp_path: Path, engine: str) -> None:
    make(tmp_path, {".gitignore": "cache/\n", "src/cache/a": "needle\n", "src/b": "needle\n"})

    found = search(tmp_path / "src", "needle", engine=engine)

    assert (found.counts, found.skipped.ignored) == ({"b": 1}, 1)


def test_what_was_left_out_is_counted(tmp_path: Path, engine: str) -> None:
    make(tmp_path, TREE)
    (tmp_path / "link").symlink_to(tmp_path / "build")

    found = search(tmp_path, "absent", engine=engine)

    assert not found.counts
    assert found.scanned == 7
    skipped = found.skipped
    assert (skipped.hidden, skipped.ignored, skipped.binary) == (3, 2, 1)
    assert skipped.links == 1


def test_links_that_lead_in_circles_are_not_followed(tmp_path: Path, engine: str) -> None:
    make(tmp_path, {"a/b/c.txt": "needle\n"})
    (tmp_path / "a/b/up").symlink_to(tmp_path)
    (tmp_path / "a/self").symlink_to("self")

    assert search(tmp_path, "needle", engine=engine).counts == {"a/b/c.txt": 1}


def test_no_line_shows_a_carriage_return(tmp_path: Path, engine: str) -> None:
    make(tmp_path, {"a": "one\r\nneedle\r\nthree\r\n"})

    found = search(tmp_path, "needle$", engine=engine, context=1)

    assert found.lines == {"a": [(1, False, "one"), (2, True, "needle"), (3, False, "three")]}


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ("größe needle\n".encode("utf-16-le"), "größe needle"),
        ("größe needle\n".encode("utf-16"), "größe needle"),
        ("größe needle\n".encode("utf-16-be"), "größe needle"),
        (b"\xfe\xff" + "größe needle\n".encode("utf-16-be"), "größe needle"),
        ("größe needle\n".encode("utf-8-sig"), "größe needle"),
        ("größe needle\n".encode("latin-1"), "größe needle"),
        ("größe needle\n".encode(), "größe needle"),
    ],
)
def test_a_line_is_shown_in_its_encoding(
    tmp_path: Path, engine: str, data: bytes, line: str
) -> None:
    make(tmp_path, {"a": data})

    found = search(tmp_path, "needle", engine=engine)

    assert found.lines == {"a": [(1, True, line)]}


def test_a_long_line_is_cut_around_its_match(tmp_path: Path) -> None:
    wide = "é" * 100_000
    make(tmp_path, {"a": "x" * 100_000 + "needle" + "y" * 100_000, "b": f"{wide}needle{wide}\n"})

    one, other = (search(tmp_path, "needle", engine=engine).lines for engine in ENGINES)

    assert one == other
    for path in ("a", "b"):
        ((number, _, text),) = one[path]
        assert number == 1
        assert "needle" in text
        assert text[0] == text[-1] == "…"
        assert len(text) < 400


def test_paths_come_in_order_and_pages_fit_together(tmp_path: Path, engine: str) -> None:
    make(tmp_path, {f"{n % 7}/f{n}.txt": "needle\n" * (n % 5) for n in range(40)})
    whole = search(tmp_path, "needle", engine=engine, limit=1000)

    pages = [
        [(path, *line) for path, lines in page.lines.items() for line in lines]
        for offset in range(0, whole.total, 9)
        for page in [search(tmp_path, "needle", engine=engine, offset=offset, limit=9)]
    ]

    assert [line for page in pages for line in page] == [
        (path, *line) for path, lines in whole.lines.items() for line in lines
    ]
    assert all(len(page) == 9 for page in pages[:-1])
    assert list(whole.counts) == sorted(whole.counts, key=lambda path: path.split("/"))


def test_files_behind_the_page_are_not_all_judged(
    tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes.files.search.content._MOST_JUDGED", 10)
    make(tmp_path, {f"{n:02}": "needle\n" * 3 for n in range(40)})
    judged: list[str] = []

    def readable(place: str) -> bool:
        judged.append(place)
        return not place.endswith("1")

    found = search(tmp_path, "needle", engine=engine, limit=50, readable=readable)

    assert len(judged) == 19
    assert (found.total, found.withheld, found.unjudged) == (51, 2, 21)
    assert sum(map(len, found.lines.values())) == 50


def test_odd_names_are_found(tmp_path: Path, engine: str) -> None:
    names = [b"new\nline", b"in\xffvalid", b"star*[a]{b}!", b" space ", b"back\\slash", b"-dash"]
    for name in names:
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_text("needle\n")

    for chosen in (None, chooser("*")):
        found = search(tmp_path, "needle", engine=engine, chosen=chosen)

        assert set(found.counts) == {os.fsdecode(name) for name in names}
        assert len(found.lines) == len(names)


def test_few_files_of_many_are_searched_by_their_names(tmp_path: Path) -> None:
    make(tmp_path, {f"d/f{n}.txt": "needle\n" for n in range(60)})
    make(
        tmp_path, {"d/x[1]{a}*.py": "needle\n", "d/b.py": b"needle\0", "d/new\nline.py": "needle\n"}
    )
    make(tmp_path, {".ignore": "ignored.py\n", "ignored.py": "needle", ".h.py": "needle"})

    one, other = (
        seen(search(tmp_path, "needle", engine=e, chosen=chooser("*.py"))) for e in ENGINES
    )

    assert one == other
    assert [path for path, _ in one["counts"]] == ["d/new\nline.py", "d/x[1]{a}*.py"]
    assert one["skipped"]["binary"] == 1


def test_a_large_file_is_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hermes.files.search.python_engine._BLOCK", 100)
    lines = [f"line {n} {'needle' if n % 7 == 0 else ''} é\n" for n in range(200)]
    make(
        tmp_path,
        {"a": "\ufeff" + "".join(lines), "b": "no end needle " * 100, "c": b"x\n" * 500 + b"\0"},
    )

    one, other = (seen(search(tmp_path, "needle", engine=e, context=1)) for e in ENGINES)

    assert one == other
    assert one["skipped"]["binary"] == 1


def test_a_line_without_end_is_left_out_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes.files.search.python_engine._BLOCK", 100)
    monkeypatch.setattr("hermes.files.search.python_engine._LONGEST", 1000)
    make(tmp_path, {"a": "needle" * 1000, "b": "needle\n" * 1000})

    found = search(tmp_path, "needle", engine="python")

    assert (found.counts, found.skipped.large) == ({"b": 1000}, 1)


def test_a_ripgrep_that_does_not_start_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, {"tree/a": "needle\n", "rg": "no program"})
    (tmp_path / "rg").chmod(0o755)
    monkeypatch.setattr("hermes.files.search.ripgrep.find_ripgrep", lambda: str(tmp_path / "rg"))

    for chosen in (None, chooser("*")):
        found = search(tmp_path / "tree", "needle", engine="ripgrep", chosen=chosen)
        assert seen(found) == seen(search(tmp_path / "tree", "needle", engine="python"))


@pytest.mark.parametrize(
    ("program", "used"),
    [("echo ripgrep 15.2.0", True), ("echo ripgrep 13.0.0", False), ("exit 1", False)],
)
def test_a_ripgrep_on_the_path_is_used_when_it_is_one_that_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, used: bool
) -> None:
    make(tmp_path, {"rg": f"#!/bin/sh\n{program}\n"})
    (tmp_path / "rg").chmod(0o755)
    monkeypatch.setattr("sys.executable", str(tmp_path / "elsewhere/python"))
    monkeypatch.setenv("PATH", str(tmp_path))

    assert find_ripgrep() == (str(tmp_path / "rg") if used else None)


def test_what_is_missing_is_an_error_for_both(tmp_path: Path, engine: str) -> None:
    with pytest.raises(ToolError, match="no such file"):
        search(tmp_path / "nowhere", "needle", engine=engine)


# -- made by chance ------------------------------------------------------------------------------

ATOMS = st.sampled_from(
    [*"abAé1 ._|", "ß", r"\w", r"\d", r"\s", "^", "$", "[ab]", "[a-z]", r"\.", "(a|b)", "(?:ab)",
     "(?i:a)", r"\t", "[é-ü]", r"\x41", r"[\d.]"]
)  # fmt: skip
REPEATS = st.sampled_from(["", "", "", "*", "+", "?", "{2}", "{1,2}", "*?"])
PATTERNS = st.lists(st.tuples(ATOMS, REPEATS).map("".join), min_size=1, max_size=4).map("".join)
TEXTS = st.lists(
    st.sampled_from([*"abAéÉß1 \t_.\n{}Ж日😀", "\r\n", "\n", "ab"]),
    max_size=20,
).map("".join)
FILES = TEXTS.flatmap(
    lambda text: st.sampled_from(
        [text.encode(), text.encode(), text.encode("utf-16"), text.encode("utf-8-sig"), text.encode() + b"\0"]
    )
)  # fmt: skip


@settings(max_examples=25)
@given(
    st.lists(FILES, min_size=1, max_size=8),
    st.lists(PATTERNS, min_size=1, max_size=3),
    st.booleans(),
)
def test_ordinary_patterns_find_the_same_lines(
    files: list[bytes], patterns: list[str], ignore_case: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder), {f"f{n}": data for n, data in enumerate(files)})
        for pattern in patterns:
            try:
                one, other = (
                    seen(search(folder, pattern, engine=e, ignore_case=ignore_case, context=1))
                    for e in ENGINES
                )
            except ToolError:
                # `a**` and the like.
                continue
            assert one == other


NAMES = [
    "a",
    "b",
    "ab",
    "a.py",
    "b.log",
    ".h",
    "build",
    "src",
    "é",
    "x y",
    "x[1]",
    "#c",
    "!n",
    "c ",
]
PIECES = st.sampled_from(
    [
        *NAMES,
        "*",
        "**",
        "/",
        "?",
        "[ab]",
        "[!a]",
        "{a,b}",
        "*.py",
        ".*",
        "\\",
        "!",
        "#",
        " ",
        "[",
        "}",
    ]
)
RULES = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "", "!"]),
    st.sampled_from(["", "", "/"]),
    st.lists(PIECES, min_size=1, max_size=4).map("".join),
    st.sampled_from(["", "", "/"]),
)
PATHS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map("/".join)
IGNORES = st.tuples(
    st.one_of(st.just(""), PATHS),
    st.sampled_from([".gitignore", ".ignore", ".rgignore"]),
    st.lists(RULES, min_size=1, max_size=4).map("\n".join),
)


@settings(max_examples=40)
@given(st.lists(PATHS, max_size=10), st.lists(IGNORES, max_size=4), st.booleans())
def test_ignore_files_mean_the_same(
    paths: list[str], ignores: list[tuple[str, str, str]], hidden: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for path in paths:
            place = Path(folder, path)
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text("needle\n")
            except OSError:
                # One of the names is that of a file and of a folder.
                continue
        for path, name, text in ignores:
            if Path(folder, path).is_dir():
                Path(folder, path, name).write_text(text)

        one, other = (
            seen(search(folder, "needle", engine=e, choice=Choice(hidden=hidden))) for e in ENGINES
        )

        assert one == other
