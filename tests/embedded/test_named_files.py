"""Which files a request names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.embedded.file_guard import NamedFiles

FILES = ["README.md", "notes.txt", "src/app.py", "src/util.py", "log.md", "Makefile", "my file.txt"]


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("save 3.14 in pi.txt, e.g. now.", ["pi.txt"]),
        ("put it into out/deep/hello.txt!", ["out/deep/hello.txt"]),
        ("tea and/or coffee, 80 km/h, v1.2.3 at 7.30 p.m.", []),
        ("see https://example.com/a.html for more", []),
        ("check .env and /etc/hosts", [".env", "/etc/hosts"]),
        ("make a file called todo", ["todo"]),
        ("write to `my file.txt`", ["my file.txt", "file.txt"]),
        ("pack docs/ please", ["docs/"]),
        ("a poem about the cat named Felix from the U.S. of anna@example.org", []),
        ("Schreib es in übung.txt", ["übung.txt"]),
        ("lies 笔记.md", ["笔记.md"]),
    ],
)
def test_words_that_look_like_paths_are_found(text: str, paths: list[str]) -> None:
    assert NamedFiles(text, []).paths == paths


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("fix the typo in the readme", ["README.md"]),
        ("Fix the typo in readme.md", ["README.md"]),
        ("what does the makefile do?", ["Makefile"]),
        ("look at app.py", ["src/app.py"]),
        ("open 'my file.txt'", ["my file.txt"]),
        ("what is the weather like?", []),
    ],
)
def test_files_are_meant_by_their_names_with_or_without_an_ending(
    text: str, files: list[str]
) -> None:
    assert NamedFiles(text, FILES).files == files


@pytest.mark.parametrize(
    ("text", "path", "whole", "may"),
    [
        ("write milk into todo.md", "todo.md", True, True),
        ("write milk into todo.md", "lists/todo.md", True, True),
        ("write milk into todo.md", "notes.txt", True, False),
        ("summarise the log in summary.txt", "log.md", True, False),
        ("correct the log and mention it in summary.txt", "log.md", False, True),
        ("replace foo by bar in src/app.py", "src/util.py", False, False),
        ("replace foo by bar in the src folder", "src/util.py", False, True),
        ("replace foo by bar in every file", "notes.txt", False, True),
        ("delete notes.txt", "README.md", True, False),
        ("write a note about milk", "notes.txt", True, False),
        ("empty my notes", "notes.txt", True, True),
    ],
)
def test_only_what_is_named_may_be_changed(text: str, path: str, whole: bool, may: bool) -> None:
    assert NamedFiles(text, FILES).may_change(path, exists=path in FILES, whole=whole) is may


def test_a_new_file_may_have_any_name_where_none_was_given() -> None:
    assert NamedFiles("write a short story", FILES).may_change("story.txt", exists=False)
    assert not NamedFiles("write a story into s.txt", FILES).may_change("story.txt", exists=False)


@given(
    st.sampled_from(["write {} to {}", "Save {} as {}.", "please put {} into '{}'", "{} -> {}"]),
    st.text(max_size=40),
    st.from_regex(r"\A[a-z]{3,8}\.(txt|md|py)\Z"),
    st.from_regex(r"\A[A-Z]{9,12}_x\.dat\Z"),
)
def test_a_file_that_is_nowhere_in_the_text_is_never_replaced(
    frame: str, what: str, named: str, other: str
) -> None:
    text = frame.format(what, named)
    if other.split("_")[0].casefold() in text.casefold():
        return

    assert not NamedFiles(text, [named, other]).may_change(other, exists=True, whole=True)


@given(st.text(max_size=300), st.lists(st.text(min_size=1, max_size=20), max_size=5))
def test_no_text_is_too_strange(text: str, files: list[str]) -> None:
    named = NamedFiles(text, files)

    assert isinstance(named.may_change("a.txt", exists=True, whole=True), bool)
    assert isinstance(named.says(text), bool)


def test_a_folder_for_what_is_named_is_known() -> None:
    named = NamedFiles("Put it into out/2026/sum.txt", [])

    assert named.leads_to("out")
    assert named.leads_to("./out/2026/")
    assert not named.leads_to("ou")
    assert not named.leads_to("out/2026/sum.txt")


def test_a_folder_is_no_target() -> None:
    named = NamedFiles("Put a note about archive/ into log.txt", ["archive/a.txt"])

    assert named.targets == ["log.txt"]
