"""Times, owners and extended attributes come back with the bytes."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest
from tests.stores.checkpoints.conftest import Agent, attributes, picture

from hermes.stores.checkpoints import Checkpoints
from hermes.stores.checkpoints.path_state import Traits, read_traits

LONG_AGO = 1_000_000_000_123_456_789
needs_attributes = pytest.mark.skipif(not hasattr(os, "setxattr"), reason="none on this system")
needs_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only the superuser gives files away"
)


@pytest.fixture
def file(root: Path) -> Path:
    """A file with a past."""
    found = root / "a"
    found.write_bytes(b"old")
    if hasattr(os, "setxattr"):
        os.setxattr(found, "user.origin", b"\0 somewhere = else")
    os.utime(found, ns=(LONG_AGO, LONG_AGO))
    return found


def removed(agent: Agent) -> None:
    agent.remove("a")


def written(agent: Agent) -> None:
    agent.write("a", b"new")


def removed_by_a_command(agent: Agent) -> None:
    agent.run("rm a")


def changed_by_a_command(agent: Agent) -> None:
    agent.run("echo more >> a")


def replaced_by_a_command(agent: Agent) -> None:
    agent.run("echo new > b; mv b a")


@needs_attributes
@pytest.mark.parametrize(
    "act",
    [removed, written, removed_by_a_command, changed_by_a_command, replaced_by_a_command],
    ids=lambda act: act.__name__,
)
def test_time_and_attributes_come_back(agent: Agent, file: Path, act: object) -> None:
    before = attributes(file)

    act(agent)  # type: ignore[operator]
    report = agent.store.undo(turn="one")

    assert report.complete
    assert report.notes == []
    assert file.read_bytes() == b"old"
    assert file.stat().st_mtime_ns == LONG_AGO
    assert attributes(file) == before


def test_undoing_an_undo_brings_the_later_time_back(agent: Agent, file: Path) -> None:
    agent.write("a", b"new")
    later = file.stat().st_mtime_ns

    undone = agent.store.undo(turn="one")
    agent.store.undo(turn=undone.undo_turn)

    assert file.read_bytes() == b"new"
    assert file.stat().st_mtime_ns == later


@needs_attributes
def test_an_attribute_that_a_command_set_goes_and_one_of_the_user_stays(
    agent: Agent, file: Path
) -> None:
    before = attributes(file)
    agent.run('python3 -c \'import os; os.setxattr("a", "user.agent", b"x")\'')
    os.setxattr(file, "user.mine", b"set since")

    report = agent.store.undo(turn="one")

    assert report.complete
    assert attributes(file) == before | {"user.mine": b"set since"}


@needs_root
@pytest.mark.parametrize("command", ["chown 1234:1235 a", "rm a", "echo new > b; mv b a"])
def test_the_owner_comes_back(agent: Agent, file: Path, command: str) -> None:
    os.chown(file, 4321, 5432)
    os.chmod(file, 0o4711)
    before = picture(agent.root)

    agent.run(command)
    report = agent.store.undo(turn="one")

    assert report.complete
    assert (file.stat().st_uid, file.stat().st_gid) == (4321, 5432)
    assert picture(agent.root) == before


def test_a_touch_alone_is_no_change(agent: Agent, file: Path) -> None:
    assert agent.run("touch a") == []


@needs_attributes
def test_what_could_not_be_given_back_is_said(
    agent: Agent, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent.run("rm a")

    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "setxattr", refuse)
    report = agent.store.undo(turn="one")

    assert file.read_bytes() == b"old"
    assert report.notes == [f"{file}: not given back: user.origin"]


def test_traits_are_read_as_they_were_kept() -> None:
    odd = Traits(-1, 0, 65_534, (("user.\udcff =", b""), ("user.x", bytes(range(256)))))

    assert read_traits(odd.text) == odd
    assert read_traits("") is None


def test_a_store_of_the_first_version_is_brought_up_to_date(
    agent: Agent, root: Path, home: Path
) -> None:
    (root / "a").write_bytes(b"old")
    agent.write("a", b"new")
    agent.store.close()
    index = sqlite3.connect(home / "checkpoints" / "index.db")
    for statement in (
        "ALTER TABLE changes DROP COLUMN old_traits",
        "ALTER TABLE changes DROP COLUMN new_traits",
        "ALTER TABLE changes DROP COLUMN quiet",
        "ALTER TABLE snapshots DROP COLUMN background",
        "ALTER TABLE roots DROP COLUMN author",
        "DROP INDEX contents_fresh",
        "PRAGMA user_version = 1",
    ):
        index.execute(statement)
    index.close()

    with Checkpoints() as store:
        Agent(store, root).write("b", b"more", "two")

        assert store.undo(turn="one").complete
        assert store.undo(turn="two").complete
    assert picture(root).keys() == {"a"}
    assert (root / "a").read_bytes() == b"old"
