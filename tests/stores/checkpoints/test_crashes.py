"""Killed at any instant, a restore is completed by running it again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.stores.checkpoints.conftest import Agent, picture, times

from hermes.stores.checkpoints import CheckpointError, Checkpoints

UNDO = """
import sys
from hermes.stores.checkpoints import Checkpoints
with Checkpoints() as store:
    print("ready", flush=True)
    store.undo(below=sys.argv[1])
"""

# Ends itself at the n-th change that it makes to the disk: before it, or after.
STEPWISE = """
import os, signal, sys
from hermes.stores.checkpoints import Checkpoints

left = int(sys.argv[2])

def counted(function):
    def call(*arguments, **options):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **options)
    return call

for name in (
    "replace", "unlink", "rmdir", "mkdir", "symlink", "fchmod", "link", "fsync", "utime", "setxattr"
):
    setattr(os, name, counted(getattr(os, name)))
with Checkpoints() as store:
    store.undo(below=sys.argv[1])
"""


def whole(root: Path) -> tuple[object, object]:
    """Everything that undo gives back."""
    return picture(root), times(root)


def damage(agent: Agent, root: Path) -> tuple[object, object]:
    """A turn that does a bit of everything; how it was before and is after."""
    for number in range(12):
        (root / f"d{number % 3}").mkdir(exist_ok=True)
        (root / f"d{number % 3}" / f"f{number}").write_text(f"{number}\n" * 2000)
        os.utime(root / f"d{number % 3}" / f"f{number}", (number, number))
    os.setxattr(root / "d1" / "f1", "user.note", b"mine")
    (root / "link").symlink_to("d1")
    (root / "closed").mkdir(mode=0o555)
    before = whole(root)
    agent.write("d0/f0", b"new", "one")
    agent.write("made/by/tool", b"new", "one")
    agent.run(
        "rm -rf d1; ln -sfn d2 link; echo x > d1; chmod 700 closed; chmod 600 d2/*;"
        " mkdir -p new/deep; touch new/deep/file",
        "one",
    )
    return before, whole(root)


def test_a_kill_at_any_step_of_a_restore_can_be_made_up_for(agent: Agent, root: Path) -> None:
    before, after = damage(agent, root)
    steps = 0
    while True:
        steps += 5
        done = subprocess.run([sys.executable, "-c", STEPWISE, str(root), str(steps)], check=False)
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL
        report = agent.store.undo(below=str(root))
        assert report.left == []
        if whole(root) == after:
            # Killed before anything was recorded: that was the undo of an undo.
            agent.store.undo(below=str(root))
        assert whole(root) == before
        agent.store.undo(below=str(root))
        assert whole(root) == after

    assert steps > 30
    assert whole(root) == before


def test_a_kill_at_random_times_leaves_nothing_behind(agent: Agent, root: Path) -> None:
    before, after = damage(agent, root)
    chance = random.Random(4)
    for _ in range(8):
        process = subprocess.Popen(
            [sys.executable, "-c", UNDO, str(root)], stdout=subprocess.PIPE, text=True
        )
        with process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(chance.random() * 0.06)
            process.kill()
        agent.store.undo(below=str(root))

        # Whatever was begun, completed or undone, it is one picture or the other, no mixture.
        assert whole(root) in (before, after)


def test_a_damaged_content_restores_nothing_at_all(agent: Agent, root: Path, home: Path) -> None:
    (root / "a").write_bytes(b"old a")
    (root / "b").write_bytes(b"old b" * 100_000)
    agent.run("echo new > a; echo new > b")
    agent.store.close()
    (pack,) = (home / "checkpoints" / "packs").iterdir()
    data = bytearray(pack.read_bytes())
    data[len(data) // 2] ^= 0xFF
    pack.write_bytes(data)
    before = picture(root)

    with pytest.raises(CheckpointError, match="nothing was restored"):
        agent.store.undo(below=str(root))

    assert picture(root) == before


def test_a_missing_pack_restores_nothing_at_all(agent: Agent, root: Path, home: Path) -> None:
    (root / "a").write_bytes(b"old a")
    (root / "b").write_bytes(b"old b" * 100_000)
    agent.run("echo new > a; echo new > b")
    for pack in (home / "checkpoints" / "packs").iterdir():
        pack.unlink()
    before = picture(root)

    with pytest.raises(CheckpointError, match=r"b can't be given back"):
        agent.store.undo(below=str(root))

    assert picture(root) == before


def test_a_damaged_index_is_one_clear_error(agent: Agent, root: Path, home: Path) -> None:
    agent.write("a", b"one")
    agent.store.close()
    (home / "checkpoints" / "index.db").write_bytes(b"not a database at all" * 1000)
    with Checkpoints() as store:
        with pytest.raises(CheckpointError, match="damaged") as caught:
            store.undo(below=str(root))

    assert caught.value.hint
