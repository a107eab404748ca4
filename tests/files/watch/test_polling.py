"""A folder on another disk is watched by looking at it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.files.remote_disk import far_disk

from hermes.core.errors import ToolError
from hermes.files.watch.watcher import FarWatcher, Stop


def changes(watcher: FarWatcher) -> set[tuple[str, str]]:
    return {tuple(change) for change in watcher.next(10, 0, Stop(lambda: False))}


def test_what_came_changed_and_went_is_told(tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_text("1")
    (tmp_path / "gone.txt").write_text("1")
    watcher = FarWatcher(far_disk(), str(tmp_path))
    (tmp_path / "old.txt").write_text("22")
    (tmp_path / "gone.txt").unlink()
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "new.txt").write_text("1")
    assert changes(watcher) == {
        ("modified", "old.txt"),
        ("deleted", "gone.txt"),
        ("added", "sub/"),
        ("added", "sub/new.txt"),
    }
    assert "far" in watcher.remark


def test_only_what_fits_is_told(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    watcher = FarWatcher(far_disk(), str(tmp_path), globs=["*.py"])
    for name in ("a.py", "b.txt", ".git/c.py"):
        (tmp_path / name).write_text("x")
    assert changes(watcher) == {("added", "a.py")}


def test_a_file_that_is_not_there_yet_is_seen_to_appear(tmp_path: Path) -> None:
    watcher = FarWatcher(far_disk(), str(tmp_path / "later.txt"))
    assert watcher.exists is False
    (tmp_path / "later.txt").write_text("now")
    (tmp_path / "other.txt").write_text("now")
    assert changes(watcher) == {("added", "later.txt")}
    assert watcher.exists is True


def test_no_change_in_time_is_no_change(tmp_path: Path) -> None:
    assert FarWatcher(far_disk(), str(tmp_path)).next(0.1, 0, Stop(lambda: False)) == []


def test_a_folder_that_was_moved_ends_the_watch(tmp_path: Path) -> None:
    (tmp_path / "it").mkdir()
    watcher = FarWatcher(far_disk(), str(tmp_path / "it"))
    (tmp_path / "it").rename(tmp_path / "elsewhere")
    assert changes(watcher) == set()
    assert watcher.gone


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="not there"):
        FarWatcher(far_disk(), str(tmp_path / "no" / "file"))
