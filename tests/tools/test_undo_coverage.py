"""Before a command destroys files: what undo would not restore, and what nobody would miss."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.tools.bench import Bench

from hermes.files.command_undo import coverage
from hermes.stores.checkpoints.checkpoint_store import checkpoints


@pytest.fixture
def repository(bench: Bench) -> Path:
    """A repository with tracked, untracked and ignored files."""
    subprocess.run(["git", "init", "-q", bench.work], check=True)
    for name in ("src/a.py", "build/out.o", "build/deep/b.o", "notes.txt"):
        path = bench.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x\n")
    (bench.work / ".gitignore").write_text("build\n*.log\n")
    subprocess.run(["git", "-C", bench.work, "add", "src", ".gitignore"], check=True)
    return bench.work


def test_ignored_files_are_disposable_and_others_are_not(bench: Bench, repository: Path) -> None:
    (repository / "src" / "x.log").write_text("x")

    found = coverage(
        ["build", "src", "notes.txt", "src/x.log", ".git", "absent", str(repository)], bench.context
    )

    assert found.uncovered == ()
    assert found.disposable == {
        "build": "ignored by git",
        "src/x.log": "ignored by git",
        "absent": "empty",
    }


def test_what_this_session_made_is_disposable(bench: Bench, repository: Path) -> None:
    bench("terminal", command="mkdir out && echo 1 > out/a && echo 2 > out/b.log")
    bench("write_file", path="new.txt", content="x")
    bench("write_file", path="notes.txt", content="changed")

    mine = coverage(["out", "new.txt", "notes.txt"], bench.context)
    other = coverage(["out", "new.txt"], bench.another("s2").context)

    assert mine.disposable == dict.fromkeys(("out", "new.txt"), "made in this session")
    assert other.disposable == {}


def test_what_undo_does_not_restore_is_named_with_size_and_reason(
    bench: Bench, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / "large").write_bytes(b"12345")
    os.mkfifo(repository / "pipe")
    outside = repository.parent / "other.txt"
    outside.write_text("123456")
    monkeypatch.setattr(checkpoints(bench.context), "room", lambda: 4)

    found = coverage(["large", "pipe", str(outside)], bench.context)

    assert [(one.path, one.size) for one in found.uncovered] == [
        (str(outside), 6),
        (str(repository / "large"), 5),
    ]
    assert "outside of" in found.uncovered[0].reason
    assert "room" in found.uncovered[1].reason


def test_without_a_repository_nothing_is_ignored(bench: Bench) -> None:
    (bench.work / "a.log").write_text("x")

    assert coverage(["a.log"], bench.context).disposable == {}
