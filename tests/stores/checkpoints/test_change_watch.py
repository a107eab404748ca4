"""The kernel names what changed, so that nothing else is looked at; where it can't, all is."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from tests.stores.checkpoints.conftest import Agent

from hermes.stores.checkpoints.change_watch import ChangeWatch

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="fanotify is of Linux")


def test_changed_names_are_reported_with_the_file_behind_them(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "a").write_text("x")
    inode = (inner / "a").stat().st_ino
    watch = ChangeWatch()
    for folder in (tmp_path, inner):
        watch.add(os.fsencode(folder))
    assert watch.reason == ""

    os.link(inner / "a", tmp_path / "other")
    (tmp_path / "other").write_text("y")
    (tmp_path / "other").unlink()

    assert watch.changes() == {os.fsencode(tmp_path): {b"other": {inode}}}
    assert watch.changes() == {}
    watch.close()


def test_too_many_changes_are_told_as_such(tmp_path: Path) -> None:
    limit = int(Path("/proc/sys/fs/fanotify/max_queued_events").read_text())
    watch = ChangeWatch()
    watch.add(os.fsencode(tmp_path))

    for number in range(limit + 10):
        os.mknod(tmp_path / str(number))

    assert watch.changes() is None
    assert watch.changes() == {}
    watch.close()


def test_a_fork_does_not_watch(tmp_path: Path) -> None:
    watch = ChangeWatch()
    watch.add(os.fsencode(tmp_path))
    (tmp_path / "a").touch()

    child = os.fork()
    if child == 0:
        os._exit(0 if watch.inherited and watch.changes() is None else 1)
    _, status = os.waitpid(child, 0)

    assert status == 0
    assert watch.changes() == {os.fsencode(tmp_path): {b"a": {(tmp_path / "a").stat().st_ino}}}
    watch.close()


def test_many_roots_are_covered_although_few_are_watched(agent: Agent, root: Path) -> None:
    roots = [root / str(number) for number in range(7)]
    for one in roots:
        one.mkdir()
        (one / "file").write_text("old")
    for text in ("new", "newer"):
        taken = [agent.store.snapshot(str(one), agent.author(text)) for one in roots]
        for one in roots:
            (one / "file").write_text(text)
        assert [len(agent.store.after_command(one)) for one in taken] == [1] * 7


def test_only_what_changed_is_looked_at(
    agent: Agent, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        (root / f"d{number}").mkdir()
        (root / f"d{number}" / "file").write_text("x")
    agent.run("true", "first")
    looked: list[object] = []
    scandir, lstat = os.scandir, os.lstat
    monkeypatch.setattr(os, "scandir", lambda path: looked.append(path) or scandir(path))
    monkeypatch.setattr(
        os, "lstat", lambda path, **more: looked.append(path) or lstat(path, **more)
    )

    changes = agent.run("echo more >> d3/file; mkdir new; touch new/file", "second")

    assert len(changes) == 3
    # The new folder, what is named in the others, the root: before and after.
    assert len([path for path in looked if isinstance(path, bytes)]) < 20


def test_a_folder_that_cannot_be_watched_is_looked_at_as_a_whole(
    agent: Agent, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(watch: ChangeWatch, _: bytes) -> None:
        watch.reason = "no more marks"

    monkeypatch.setattr(ChangeWatch, "add", refuse)
    (root / "a").write_text("one\n")
    agent.run("echo more >> a", "one")
    agent.run("echo more >> a", "two")

    agent.store.undo(turn="two", below=str(root))
    agent.store.undo(turn="one", below=str(root))

    assert (root / "a").read_text() == "one\n"
