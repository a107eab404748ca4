"""How the benchmark judges: by what came of a case, and it reads every set there is."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import pytest
from benchmarks.embedded import TASKS, Case, cases, judge


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("a\n")
    return tmp_path


def wrong(work: Path, text: str, **wanted: Any) -> str:
    return judge(Case("x", "do it", {"a.txt": "a\n"}, wanted), work, text, ())


def test_every_set_can_be_read_and_no_two_cases_share_a_folder() -> None:
    everyday = list(cases(TASKS / "everyday"))
    names = [case.name for case in everyday]

    assert sum(not case.chat for case in everyday) == 60
    assert len(set(names)) == len(names)
    assert sum(not case.chat for case in cases(TASKS)) == 20


def test_what_must_not_be_said_is_wrong(work: Path) -> None:
    assert wrong(work, "It is 4711.", never=["4711"])
    assert not wrong(work, "It is 47.", never=["4711"])


def test_a_folder_must_be_there(work: Path) -> None:
    assert wrong(work, "Done.", folders=["new"])
    (work / "new").mkdir()
    assert not wrong(work, "Done.", folders=["new"])


def test_archives_of_both_kinds_are_looked_into(work: Path) -> None:
    wanted = {"archive": {"a.tar.gz": ["a.txt"]}, "changed": ["a.tar.gz"]}

    (work / "a.tar.gz").write_text("no archive")
    assert wrong(work, "Done.", **wanted)
    with tarfile.open(work / "a.tar.gz", "w:gz") as packed:
        packed.add(work / "a.txt", "a.txt")
    assert not wrong(work, "Done.", **wanted)
