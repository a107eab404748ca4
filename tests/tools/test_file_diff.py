"""file_diff, called as a model calls it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.tools.bench import Bench


def git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.example"]
    subprocess.run(["git", "-C", str(folder), *identity, *words], check=True, capture_output=True)


def test_two_files_are_compared(bench: Bench) -> None:
    (bench.work / "a").write_text("one\ntwo\n")
    (bench.work / "b").write_text("one\nthree\n")

    found = bench("file_diff", path="a", other="b")

    assert found["diff"] == "--- a\n+++ b\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n"
    assert (found["added"], found["removed"]) == (1, 1)


def test_a_file_is_compared_with_a_text(bench: Bench) -> None:
    (bench.work / "a").write_text("one\n")

    assert bench("file_diff", path="a", text="one\n")["identical"]
    assert "+two" in bench("file_diff", path="a", text="two\n")["diff"]
    assert "-one" in bench("file_diff", path="a", text="")["diff"]


def test_a_file_is_compared_with_the_last_commit(bench: Bench) -> None:
    (bench.work / "a").write_text("one\n")
    (bench.work / "gone").write_text("gone\n")
    git(bench.work, "init", "-q")
    git(bench.work, "add", ".")
    git(bench.work, "commit", "-q", "-m", "First")
    (bench.work / "a").write_text("two\n")
    (bench.work / "gone").unlink()
    (bench.work / "new").write_text("new\n")

    assert "-one\n+two\n" in bench("file_diff", path="a", against="head")["diff"]
    assert "-gone" in bench("file_diff", path="gone", against="head")["diff"]
    assert "+new" in bench("file_diff", path="new", against="head")["diff"]


def test_a_file_is_compared_with_what_it_was_before_the_turn(bench: Bench) -> None:
    (bench.work / "a").write_text("one\n")
    bench("read_file", path="a")
    bench("write_file", path="a", content="two\n")

    found = bench("file_diff", path="a", against="checkpoint")

    assert "-one\n+two\n" in found["diff"]


def test_a_file_without_a_checkpoint_is_said(bench: Bench) -> None:
    (bench.work / "a").write_text("one\n")

    assert "no change" in bench("file_diff", path="a", against="checkpoint")["error"]


def test_two_folders_are_compared(bench: Bench) -> None:
    for name in ("a", "b"):
        (bench.work / name).mkdir()
        (bench.work / name / "x").write_text(name)

    assert bench("file_diff", path="a", other="b")["changed"] == {"x": "content, 1 bytes both"}


def test_one_thing_to_compare_with_is_needed(bench: Bench) -> None:
    (bench.work / "a").write_text("")

    assert "one thing" in bench("file_diff", path="a")["error"]
    assert "one thing" in bench("file_diff", path="a", other="a", text="")["error"]


def test_what_can_not_be_compared_is_said(bench: Bench) -> None:
    (bench.work / "a").write_text("")
    (bench.work / "folder").mkdir()
    os.mkfifo(bench.work / "pipe")

    assert "not there" in bench("file_diff", path="a", other="none")["error"]
    assert "folder" in bench("file_diff", path="a", other="folder")["error"]
    assert "pipe" in bench("file_diff", path="a", other="pipe")["error"]
    assert "folder" in bench("file_diff", path="folder", text="x")["error"]


def test_a_guarded_file_is_not_shown(bench: Bench) -> None:
    (bench.work / "a").write_text("")

    found = bench("file_diff", path="a", other="~/.ssh/id_rsa")

    assert bench.status in ("refused", "error")
    assert "diff" not in found
