"""`hermes undo` and `hermes checkpoints`, through the real command line."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from hermes.environments.disk.local_disk import LocalDisk
from hermes.stores.checkpoints import Author, Checkpoints, Planned, file_state
from hermes.stores.checkpoints.snapshots import Limits


@pytest.fixture
def work(hermes: Any, home: Path) -> Path:
    """A folder in which two turns changed a file and made another."""
    folder = Path(hermes.folder).resolve()
    with Checkpoints() as store:
        for turn, name, data in (
            ("t1", "a.txt", b"one\n"),
            ("t2", "a.txt", b"one\ntwo\n"),
            ("t2", "new/b.txt", b"new\n"),
        ):
            place = str(folder / name)
            author = Author("s", turn, f"call-{turn}", "write_file", "", "cli")
            store.before(author, LocalDisk(), [Planned(place, file_state(data))])
            LocalDisk().make_folder(os.path.dirname(place))
            LocalDisk().write(place, data)
    return folder


def test_undo_takes_back_the_last_turn_and_says_how_to_take_that_back(
    hermes: Any, work: Path
) -> None:
    planned = hermes("undo", "--dry-run")
    untouched = (work / "a.txt").read_text()
    done = hermes("undo")
    undone = (work / "a.txt").read_text()
    name = done.stderr.split("`hermes undo ")[1].split("`")[0]
    back = hermes("undo", name)

    assert "would restore a.txt" in planned.stdout
    assert untouched == "one\ntwo\n"
    assert done.returncode == back.returncode == 0
    assert undone == "one\n"
    assert (work / "new" / "b.txt").exists()
    assert (work / "a.txt").read_text() == "one\ntwo\n"


def test_a_file_edited_since_is_left_with_the_difference_and_code_1(
    hermes: Any, work: Path
) -> None:
    (work / "a.txt").write_text("mine\n")

    done = hermes("undo", "--json")
    forced = hermes("undo", "--force", "t2")

    report = json.loads(done.stdout)
    assert done.returncode == 1
    assert report["complete"] is False
    assert "-mine" in report["left"][0]["difference"]
    assert not (work / "new").exists()
    assert forced.returncode == 0
    assert (work / "a.txt").read_text() == "one\n"


def test_the_way_to_force_that_is_said_works(hermes: Any, work: Path) -> None:
    (work / "a.txt").write_text("mine\n")

    done = hermes("undo")
    words = done.stderr.split("(`hermes ")[1].split("`")[0].split(" ")
    forced = hermes(*words)

    assert done.returncode == 1
    assert forced.returncode == 0
    assert (work / "a.txt").read_text() == "one\n"
    assert not (work / "new").exists()


def test_what_no_force_restores_is_not_promised(hermes: Any, home: Path) -> None:
    folder = Path(hermes.folder).resolve()
    (folder / "large").write_bytes(b"12345")
    with Checkpoints(limits=Limits(file_bytes=4)) as store:
        snapshot = store.snapshot(str(folder), Author("s", "t1", "c1", "terminal"))
        (folder / "large").unlink()
        store.after_command(snapshot)

    done = hermes("undo")

    assert done.returncode == 1
    assert "left alone: large" in done.stdout
    assert "force" not in done.stderr


def test_a_call_can_be_named(hermes: Any, work: Path) -> None:
    done = hermes("undo", "call-t2")

    assert done.returncode == 0
    assert (work / "a.txt").read_text() == "one\n"


@pytest.mark.parametrize(
    "words",
    [
        ("undo", "nothing-like-it"),
        ("undo", "1"),
        ("checkpoints", "show", "nothing-like-it"),
        ("checkpoints", "diff", "99999"),
        ("checkpoints", "restore", "nowhere"),
        ("checkpoints", "list", "-n", "0"),
        ("checkpoints", "prune", "--days", "-1"),
    ],
)
def test_what_can_not_be_done_is_one_line(hermes: Any, work: Path, words: tuple[str, ...]) -> None:
    done = hermes(*words)

    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1


def test_nothing_to_undo_is_one_line(hermes: Any) -> None:
    done = hermes("undo")

    assert done.returncode == 1
    assert done.stderr.count("\n") == 1


def test_checkpoints_are_listed_shown_and_compared(hermes: Any, work: Path) -> None:
    listed = hermes("checkpoints", env={"COLUMNS": "40"})
    plain = json.loads(hermes("checkpoints", "list", "--here", "--json").stdout)
    shown = json.loads(hermes("checkpoints", "show", "t2", "--json").stdout)
    compared = hermes("checkpoints", "diff", "t2")

    assert all(len(line) <= 40 for line in listed.stdout.splitlines())
    assert [turn["name"] for turn in plain["turns"]] == ["t2", "t1"]
    assert {Path(change["path"]).name for change in shown} == {"a.txt", "new", "b.txt"}
    assert "+two" in compared.stdout


def test_one_file_is_restored_to_before_a_change(hermes: Any, work: Path) -> None:
    done = hermes("checkpoints", "restore", "a.txt")

    assert done.returncode == 0
    assert (work / "a.txt").read_text() == "one\n"


def test_pruning_says_what_it_drops_and_keeps_the_last_day(hermes: Any, work: Path) -> None:
    done = hermes("checkpoints", "prune", "--days", "0", "--max-bytes", "0", "--json")

    report = json.loads(done.stdout)
    assert done.returncode == 0
    assert report["turns"] == []
    assert "over its limit" in report["notes"][0]
