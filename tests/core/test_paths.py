"""Is a path inside a directory?"""

from __future__ import annotations

import pytest

from hermes.core.paths import is_below


@pytest.mark.parametrize(
    ("path", "directory", "below"),
    [
        ("/a/b", "/a", True),
        ("/a", "/a", True),
        ("/a/", "/a", True),
        ("/a", "/a/", True),
        ("/ab", "/a", False),
        ("/", "/a", False),
        ("/a", "/", True),
        ("/", "/", True),
        ("/a", "", False),
        ("a/b", "a", True),
    ],
)
def test_a_path_is_below_its_directories_and_itself(path: str, directory: str, below: bool) -> None:
    assert is_below(path, directory) is below
