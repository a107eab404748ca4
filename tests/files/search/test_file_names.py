"""Names are found by glob, by part, by their letters, and nearly spelled."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.files.search.conftest import make

from hermes.core.errors import ToolError
from hermes.environments.disk.local_disk import LocalDisk
from hermes.files.search.file_names import NameMatches, search_names
from hermes.files.search.query import Choice
from hermes.text.globs import chooser

TREE = {
    "src/app/UserController.php": "",
    "src/app/user_controller_test.py": "",
    "src/app/models/user.py": "",
    "src/app/models/users_archive.py": "",
    "src/empty/": "",
    "docs/Source.md": "",
    "README.md": "",
    ".github/workflows/ci.yml": "",
    "build/user.py": "",
    ".gitignore": "build/\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return make(tmp_path, TREE)


def names(root: Path, pattern: str, **options: object) -> NameMatches:
    return search_names(LocalDisk(), str(root), pattern, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pattern", "best", "how"),
    [
        ("src", "src/", "part"),
        ("src/", "src/", "part"),
        ("empty", "src/empty/", "part"),
        ("user.py", "src/app/models/user.py", "part"),
        ("USER.PY", "src/app/models/user.py", "part"),
        ("models/user", "src/app/models/user.py", "part"),
        ("user", "src/app/models/user.py", "part"),
        ("./README.md", "README.md", "part"),
        ("app\\models", "src/app/models/", "part"),
        ("*.md", "README.md", "glob"),
        ("src/**/*.py", "src/app/models/user.py", "glob"),
        ("mod*", "src/app/models/", "glob"),
        ("{README,CHANGES}.*", "README.md", "glob"),
        ("usrctl", "src/app/UserController.php", "letters"),
        ("UC", "src/app/UserController.php", "letters"),
        ("app/usrctl", "src/app/UserController.php", "letters"),
        ("raedme.md", "README.md", "spelling"),
        ("UserContoller", "src/app/UserController.php", "letters"),
        ("UserKontroller.php", "src/app/UserController.php", "spelling"),
    ],
)
def test_the_name_that_was_meant_comes_first(tree: Path, pattern: str, best: str, how: str) -> None:
    found = names(tree, pattern)

    assert found.paths[0] == best
    assert found.how == how


def test_what_is_hidden_or_ignored_is_left_out_and_counted(tree: Path) -> None:
    found = names(tree, "ci.yml")
    assert not found.paths
    assert (found.skipped.hidden, found.skipped.ignored) == (2, 1)

    assert names(tree, "ci.yml", choice=Choice(hidden=True)).paths == [".github/workflows/ci.yml"]
    assert "build/user.py" in names(tree, "user.py", choice=Choice(ignored=True)).paths


def test_everything_is_listed_in_order(tree: Path) -> None:
    found = names(tree, "*")

    assert found.paths == sorted(found.paths, key=lambda path: path.split("/"))
    assert found.scanned == len(found.paths) == 11
    assert "src/empty/" in found.paths


def test_a_glob_narrows_the_search(tree: Path) -> None:
    assert names(tree, "user", chosen=chooser("*.php")).paths == ["src/app/UserController.php"]


def test_what_is_closed_is_withheld(tree: Path) -> None:
    found = names(tree, "user.py", readable=lambda place: "models" not in place)

    assert not found.paths
    assert found.withheld == 1


def test_nothing_alike_is_nothing(tree: Path) -> None:
    assert not names(tree, "zzzzqqqq").paths


def test_a_file_has_no_names_in_it(tree: Path) -> None:
    with pytest.raises(ToolError, match="folders"):
        names(tree / "README.md", "x")
    with pytest.raises(ToolError, match="no such"):
        names(tree / "nowhere", "x")
