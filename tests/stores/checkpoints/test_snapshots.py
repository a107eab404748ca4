"""Commands: whatever they made, changed or removed below the folder can be undone."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

import pytest
from tests.stores.checkpoints.conftest import Agent, picture

import hermes.stores.checkpoints.snapshots as snapshots
from hermes.stores.checkpoints import CheckpointError, Checkpoints
from hermes.stores.checkpoints.snapshots import Limits


def fill(root: Path) -> None:
    """A small project, with what is often forgotten."""
    (root / "src").mkdir()
    (root / ".git" / "refs").mkdir(parents=True)
    (root / "build").mkdir()
    (root / ".gitignore").write_text("build\n")
    (root / ".git" / "refs" / "main").write_text("abc")
    (root / "build" / "out").write_bytes(os.urandom(300_000))
    (root / "src" / "a.py").write_text("print(1)\n")
    (root / "src" / "link").symlink_to("a.py")
    (root / "empty").mkdir(mode=0o750)
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf build src .git",
        "rm -rf ./* ./.g*",
        'rm -rf "$PWD"',
        "mv src lib && mv build/out .",
        "chmod 600 run.sh && chmod 700 empty",
        "rm src/link && mkdir src/link && touch src/link/x",
        "rm -r empty && echo file > empty",
        "ln -sf run.sh src/link && echo more >> src/a.py",
        "mkdir -p a/b/c && mkfifo a/b/c/pipe && rm .gitignore",
        "printf 'print(2)\\n' > src/a.py",
        "touch src/a.py; true",
    ],
)
def test_undo_brings_back_what_a_command_did(agent: Agent, root: Path, command: str) -> None:
    fill(root)
    before = picture(root)

    changes = agent.run(command)
    if changes:
        assert agent.store.undo(turn="one").left == []

    assert picture(root) == before


def test_a_change_of_the_same_size_in_the_same_instant_is_seen(agent: Agent, root: Path) -> None:
    file = root / "a"
    for number in range(20):
        file.write_text(f"{number:06}")
        before = agent.store.snapshot(str(root), agent.author(f"t{number}", "terminal"))
        status = file.stat()
        file.write_text(f"{number + 500:06}")
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))

        assert len(agent.store.after_command(before)) == 1


def test_another_process_finds_what_the_last_one_saw(agent: Agent, root: Path) -> None:
    fill(root)
    agent.run("true")
    agent.store.close()

    with Checkpoints() as other:
        snapshot = other.snapshot(str(root), agent.author("two", "terminal"))
        other.after_command(snapshot)

    assert snapshot.stored == 0
    assert snapshot.files >= 8


def test_a_file_that_a_command_made_is_kept_before_the_next(agent: Agent, root: Path) -> None:
    agent.run("echo precious > made", "one")
    agent.run("rm made", "two")

    agent.store.undo(turn="two")

    assert (root / "made").read_text() == "precious\n"


def test_what_a_tool_wrote_meanwhile_stays_the_tools(agent: Agent, root: Path) -> None:
    before = agent.store.snapshot(str(root), agent.author("one", "terminal"))
    agent.write("by-tool", b"x", "two")
    (root / "by-command").write_text("y")

    changes = agent.store.after_command(before)

    assert [os.path.basename(change.place) for change in changes] == ["by-command"]


def test_limits_are_said(home: Path, root: Path) -> None:
    limits = Limits(file_bytes=10)
    with Checkpoints(limits=limits) as store:
        (root / "large").write_text("x" * 100)
        agent = Agent(store, root)
        before = store.snapshot(str(root), agent.author("one", "terminal"))
        (root / "large").unlink()
        store.after_command(before)

        report = store.undo(turn="one")

    assert "large" in before.notes[0]
    assert "not kept" in report.left[0].reason


def test_a_tree_that_is_too_large_is_said_and_nothing_is_made_up(home: Path, root: Path) -> None:
    for folder in range(10):
        (root / f"d{folder}").mkdir()
        for name in range(10):
            (root / f"d{folder}" / f"f{name}").write_text("x")
    with Checkpoints(limits=Limits(files=30)) as store:
        agent = Agent(store, root)
        before = store.snapshot(str(root), agent.author("one", "terminal"))
        changes = store.after_command(before)

    assert any("30 files" in note for note in before.notes)
    assert changes == []


def test_the_home_folder_is_left_out(agent: Agent, root: Path, home: Path) -> None:
    inside = root / ".hermes"
    inside.mkdir()
    (inside / "config.yaml").write_text("x")
    os.environ["HERMES_HOME"] = str(inside)

    before = agent.store.snapshot(str(root), agent.author("one", "terminal"))
    agent.store.after_command(before)

    assert all(b"config.yaml" not in listing for listing in before.folders.values())


def test_a_command_that_was_cut_off_is_undone_all_the_same(agent: Agent, root: Path) -> None:
    fill(root)
    script = """
import os, shutil, signal, sys
from hermes.stores.checkpoints import Author, Checkpoints
Checkpoints().snapshot(sys.argv[1], Author("s", "cut", "c", "terminal"))
shutil.rmtree(sys.argv[1] + "/build")
os.kill(os.getpid(), signal.SIGKILL)
"""
    before = picture(root)
    subprocess.run([sys.executable, "-c", script, str(root)], check=False)
    (root / "mine").write_text("made afterwards by the user")

    report = agent.store.undo(below=str(root))

    after = picture(root)
    assert after.pop("mine")
    assert after == before
    assert [os.path.basename(one.place) for one in report.left] == ["mine"]
    assert agent.store.undo(below=str(root)).resumed is False


def test_where_the_state_before_cannot_be_read_nothing_counts_as_made(
    agent: Agent, root: Path, home: Path
) -> None:
    fill(root)
    script = """
import os, signal, sys
from hermes.stores.checkpoints import Author, Checkpoints
Checkpoints().snapshot(sys.argv[1], Author("s", "cut", "c", "terminal"))
os.kill(os.getpid(), signal.SIGKILL)
"""
    before = picture(root)
    subprocess.run([sys.executable, "-c", script, str(root)], check=False)
    with closing(sqlite3.connect(home / "checkpoints" / "index.db")) as database:
        database.execute("UPDATE folders SET data = x'00'")
        database.commit()

    with suppress(CheckpointError):
        Checkpoints().undo(below=str(root), force=True)

    assert picture(root) == before


def test_progress_is_told(agent: Agent, root: Path) -> None:
    for name in range(1200):
        (root / str(name)).write_text("x")
    told: list[float] = []

    agent.store.snapshot(
        str(root),
        agent.author("one", "terminal"),
        progress=lambda text, *, fraction: told.append(fraction),
    )

    assert told == sorted(told)
    assert len(told) >= 2


def test_a_file_that_is_parted_from_names_elsewhere_is_said(agent: Agent, root: Path) -> None:
    (root / "a").write_text("one\n")
    os.link(root / "a", root.parent / "b")
    agent.run("echo two >> a")

    report = agent.store.undo(below=str(root))

    assert (root / "a").read_text() == "one\n"
    assert any("had other names" in note for note in report.notes)


def test_a_large_file_is_kept_in_chunks_that_are_kept_once(agent: Agent, root: Path) -> None:
    large = root / "large"
    with open(large, "wb") as file:
        for number in range(17):
            file.write(number.to_bytes(1, "big") * (4 << 20))
    status = large.stat()
    digest = hashlib.sha256(large.read_bytes()).hexdigest()

    agent.run("printf changed | dd of=large bs=1 seek=9000000 conv=notrunc status=none", "one")
    again = agent.store.snapshot(str(root), agent.author("two", "terminal"))
    large.unlink()
    agent.store.after_command(again)
    before = agent.store.usage().contents
    agent.store.prune()
    agent.store.undo(turn="two")
    agent.store.undo(turn="one")

    assert again.notes == []
    # 17 chunks, one of them in two versions, and the two lists of them.
    assert agent.store.usage().contents == before == 20
    assert hashlib.sha256(large.read_bytes()).hexdigest() == digest
    assert large.stat().st_mtime_ns == status.st_mtime_ns


def test_a_large_file_past_the_room_is_named(home: Path, root: Path) -> None:
    (root / "large").write_bytes(os.urandom(66 << 20))
    with Checkpoints(max_bytes=20 << 20) as store:
        snapshot = store.snapshot(str(root), Agent(store, root).author("one", "terminal"))
        store.after_command(snapshot)

    assert "large" in snapshot.notes[0]
    assert "room" in snapshot.notes[0]


def test_undo_looks_at_everything_for_what_the_watch_cannot_see(agent: Agent, root: Path) -> None:
    (root / "a").write_text("one\n")
    (root / "b").write_text("one\n")

    agent.run("echo more >> b; ln a ../other; echo more >> ../other; rm ../other; sleep 0.1")
    report = agent.store.undo(turn="one", below=str(root), force=True)

    assert report.complete
    assert [(root / name).read_text() for name in "ab"] == ["one\n", "one\n"]


def test_a_snapshot_without_patience_reads_what_is_named_and_the_rest_later(
    agent: Agent, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "AT_LEAST_FILES", 0)
    fill(root)
    before = picture(root)

    snapshot = agent.store.snapshot(
        str(root), agent.author("one", "terminal"), patience=0, first=[str(root / "src")]
    )
    named = set(os.listdir(root / "src"))
    (root / "src" / "a.py").unlink()
    (root / "run.sh").unlink()
    left = agent.store.keep(str(root), seconds=10)
    shutil.rmtree(root / ".git")
    agent.store.after_command(snapshot)
    report = agent.store.undo(turn="one", below=str(root))

    assert named == {"a.py", "link"}
    assert (snapshot.later, left) == (4, 0)
    assert "still to be read" in snapshot.notes[0]
    # Deleted before it was read: said, and all others are back.
    assert [os.path.basename(one.place) for one in report.left] == ["run.sh"]
    del before["run.sh"]
    assert picture(root) == before
