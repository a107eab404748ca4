"""Two folders are compared without following a link."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from hermes.core import ToolError
from hermes.environments.disk.local_disk import LocalDisk
from hermes.files.compare import folder_diff as folders_module
from hermes.files.compare.folder_diff import compare_folders


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    old, new = tmp_path / "old", tmp_path / "new"
    for top in (old, new):
        (top / "sub").mkdir(parents=True)
        (top / "same").write_text("same")
    return old, new


def compare(two: tuple[Path, Path], **options: Any) -> dict[str, Any]:
    return compare_folders(LocalDisk(), str(two[0]), str(two[1]), **options)


def test_equal_folders_are_identical(two: tuple[Path, Path]) -> None:
    found = compare(two)

    assert found["identical"]
    assert found["compared"] == 2


def test_every_kind_of_difference_is_said(two: tuple[Path, Path]) -> None:
    old, new = two
    (old / "sub/size").write_text("1")
    (new / "sub/size").write_text("22")
    (old / "bytes").write_bytes(b"\0a")
    (new / "bytes").write_bytes(b"\0b")
    (old / "kind").write_text("")
    (new / "kind").mkdir()
    (old / "link").symlink_to("same")
    (new / "link").symlink_to("sub")
    (old / "mode").write_text("")
    (new / "mode").write_text("")
    (old / "mode").chmod(0o600)
    (new / "mode").chmod(0o700)

    found = compare(two)

    assert found["changed"] == {
        "bytes": "content, 2 bytes both",
        "kind": "file became folder",
        "link": "link to same became link to sub",
        "mode": "mode 600 became 700",
        "sub/size": "1 bytes became 2",
    }
    assert not found["identical"]


def test_a_new_folder_stands_for_what_is_in_it(two: tuple[Path, Path]) -> None:
    old, new = two
    (new / "added/deep").mkdir(parents=True)
    (new / "added/deep/file").write_text("")
    (new / "added-not").write_text("")
    (old / "gone").write_text("")

    found = compare(two)

    assert sorted(found["added"]) == ["added-not", "added/"]
    assert found["removed"] == ["gone"]
    assert found["counts"] == {"added": 4, "removed": 1, "changed": 0}


def test_links_are_never_followed(two: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("one")
    for top in two:
        (top / "loop").symlink_to(".")
        (top / "out").symlink_to(tmp_path / "secret")

    assert compare(two)["identical"]


def test_a_file_that_may_not_be_read_is_named(two: tuple[Path, Path]) -> None:
    for top in two:
        (top / "closed").write_text(top.name)

    def permit(place: str) -> None:
        if place.endswith("closed"):
            raise ToolError("not opened: a secret")

    found = compare(two, permit=permit)

    assert found["not_compared"] == {"closed": "not opened: a secret"}
    assert not found["identical"]


def test_pipes_are_not_opened(two: tuple[Path, Path]) -> None:
    for top in two:
        os.mkfifo(top / "pipe")

    assert compare(two)["identical"]


def test_what_is_excluded_is_not_looked_at(two: tuple[Path, Path]) -> None:
    (two[1] / "node_modules/x").mkdir(parents=True)
    (two[1] / "a.log").write_text("")

    assert compare(two, exclude=["node_modules", "*.log"])["identical"]


def test_too_many_entries_are_refused(
    two: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders_module, "MOST_ENTRIES", 1)

    with pytest.raises(ToolError, match="more than 1 entries"):
        compare(two)


def test_long_lists_are_cut_and_counted(
    two: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders_module, "MOST_SHOWN", 3)
    for number in range(9):
        (two[1] / f"new{number}").write_text("")

    found = compare(two)

    assert found["added"] == ["new0", "new1", "new2"]
    assert found["counts"]["added"] == 9
    assert found["notes"]
