"""Undo: what the agent changed, nothing else, and what it can't do is said."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.stores.checkpoints.conftest import Agent, picture

from hermes.environments.disk.local_disk import LocalDisk
from hermes.stores.checkpoints import (
    ABSENT,
    Author,
    CheckpointError,
    Checkpoints,
    Planned,
    file_state,
)


def test_a_file_changed_several_times_goes_back_to_before_the_turn(
    agent: Agent, root: Path
) -> None:
    agent.write("a", b"first", "one")
    agent.write("a", b"second", "two")
    agent.write("a", b"third", "two")

    report = agent.store.undo(below=str(root))

    assert report.turn == "two"
    assert report.complete
    assert (root / "a").read_bytes() == b"first"


def test_undo_again_takes_the_undo_back(agent: Agent, root: Path) -> None:
    agent.write("a", b"first", "one")
    agent.write("a", b"second", "two")

    agent.store.undo(below=str(root))
    agent.store.undo(below=str(root))

    assert (root / "a").read_bytes() == b"second"


def test_earlier_turns_can_be_undone_by_name(agent: Agent, root: Path) -> None:
    agent.write("a", b"first", "one")
    agent.write("a", b"second", "two")
    agent.write("a", b"third", "three")

    agent.store.undo(turn="three")
    agent.store.undo(turn="two")
    agent.store.undo(turn="session/one")

    assert picture(root) == {}


def test_one_call_of_a_turn_can_be_undone(agent: Agent, root: Path) -> None:
    agent.write("a", b"one")
    agent.write("b", b"two")

    report = agent.store.undo(call="call-1")

    assert [one.place for one in report.restored] == [str(root / "a")]
    assert picture(root).keys() == {"b"}


def test_the_newest_turn_below_the_folder_is_meant(agent: Agent, root: Path) -> None:
    agent.write("here/a", b"one", "one")
    agent.write("there/a", b"two", "two")
    agent.write("here-too/a", b"three", "three")

    report = agent.store.undo(below=str(root / "here"))

    assert report.turn == "one"
    assert set(picture(root)) == {"there", "there/a", "here-too", "here-too/a"}


def test_folders_that_the_agent_made_go_when_they_are_empty(agent: Agent, root: Path) -> None:
    agent.write("new/deep/a", b"one")
    agent.write("other/deep/a", b"one")
    (root / "other" / "mine").write_text("the user's")

    report = agent.store.undo(below=str(root))

    assert set(picture(root)) == {"other", "other/mine"}
    assert report.complete
    assert any("other" in note for note in report.notes)


def test_a_file_edited_since_is_left_alone_and_shown(agent: Agent, root: Path) -> None:
    (root / "a").write_text("old\nlines\n")
    agent.write("a", b"the agent's\n")
    agent.write("b", b"new")
    (root / "a").write_text("the user's\n")

    report = agent.store.undo(below=str(root))

    assert [one.place for one in report.left] == [str(root / "a")]
    assert "-the user's" in report.left[0].difference
    assert "+old" in report.left[0].difference
    assert (root / "a").read_text() == "the user's\n"
    assert not (root / "b").exists()


def test_force_restores_an_edited_file_and_can_be_undone(agent: Agent, root: Path) -> None:
    (root / "a").write_text("old")
    agent.write("a", b"the agent's")
    (root / "a").write_text("the user's")

    report = agent.store.undo(below=str(root), force=True)
    restored = (root / "a").read_text()
    agent.store.undo(turn=report.undo_turn)

    assert restored == "old"
    assert (root / "a").read_text() == "the user's"


def test_what_another_turn_changed_since_is_said_by_name(agent: Agent, root: Path) -> None:
    agent.write("a", b"one", "one")
    agent.write("a", b"two", "two")

    report = agent.store.undo(turn="one")

    assert "call-2" in report.left[0].reason
    assert (root / "a").read_bytes() == b"two"


def test_an_edit_between_two_changes_of_a_turn_is_kept(agent: Agent, root: Path) -> None:
    agent.write("a", b"one")
    (root / "a").write_bytes(b"the user's")
    agent.write("a", b"two")

    report = agent.store.undo(below=str(root))

    assert (root / "a").read_bytes() == b"the user's"
    assert not report.complete


def test_a_recorded_change_that_was_never_made_is_no_trouble(agent: Agent, root: Path) -> None:
    (root / "a").write_bytes(b"old")
    agent.record("one", [Planned(str(root / "a"), file_state(b"new"))])

    report = agent.store.undo(below=str(root))

    assert report.complete
    assert report.already == 1
    assert (root / "a").read_bytes() == b"old"


def test_a_record_can_be_taken_back(agent: Agent, root: Path) -> None:
    ids = agent.record("one", [Planned(str(root / "a"), file_state(b"new"))])

    agent.store.forget(ids)

    assert agent.store.turns() == []


def test_a_mode_that_the_user_set_stays(agent: Agent, root: Path) -> None:
    (root / "a").write_bytes(b"old")
    agent.write("a", b"new")
    os.chmod(root / "a", 0o755)

    report = agent.store.undo(below=str(root))

    assert report.complete
    assert picture(root)["a"][:3] == ("file", 0o755, b"old")


def test_removing_a_folder_by_a_tool_keeps_everything_in_it(agent: Agent, root: Path) -> None:
    (root / "d" / "e").mkdir(parents=True)
    (root / "d" / "e" / "f").write_bytes(b"deep")
    (root / "d" / "link").symlink_to("nowhere")
    before = picture(root)
    agent.record("one", [Planned(str(root / "d"), ABSENT)])
    for name in ("d/e/f", "d/e", "d/link", "d"):
        agent.disk.remove(str(root / name))

    agent.store.undo(below=str(root))

    assert picture(root) == before


def test_a_folder_removed_since_is_made_again(agent: Agent, root: Path) -> None:
    (root / "d").mkdir()
    (root / "d" / "a").write_bytes(b"old")
    agent.remove("d/a")
    (root / "d").rmdir()

    report = agent.store.undo(below=str(root))

    assert report.complete
    assert (root / "d" / "a").read_bytes() == b"old"


def test_a_file_in_the_place_of_a_folder_is_not_removed(agent: Agent, root: Path) -> None:
    (root / "d").mkdir()
    (root / "d" / "a").write_bytes(b"old")
    agent.remove("d/a")
    (root / "d").rmdir()
    (root / "d").write_text("the user's")

    report = agent.store.undo(below=str(root))

    assert [one.place for one in report.left] == [str(root / "d" / "a")]
    assert (root / "d").read_text() == "the user's"


def test_a_dry_run_changes_nothing(agent: Agent, root: Path) -> None:
    agent.write("a", b"one")
    before = picture(root)

    report = agent.store.undo(below=str(root), dry_run=True)

    assert [one.place for one in report.restored] == [str(root / "a")]
    assert picture(root) == before
    assert len(agent.store.turns()) == 1


def test_nothing_to_undo_is_an_error_with_a_hint(store: Checkpoints, root: Path) -> None:
    for arguments in ({"below": str(root)}, {"turn": "x"}, {"call": "x"}):
        with pytest.raises(CheckpointError) as caught:
            store.undo(**arguments)  # type: ignore[arg-type]
        assert caught.value.hint


def test_a_turn_of_that_name_in_two_sessions_must_be_said(store: Checkpoints, root: Path) -> None:
    for session in ("s1", "s2"):
        author = Author(session, "1", "c", "write_file")
        store.before(author, LocalDisk(), [Planned(str(root / session), file_state(b""))])

    with pytest.raises(CheckpointError) as caught:
        store.undo(turn="1")

    assert "s1/1" in str(caught.value.hint)
    assert store.undo(turn="s1/1").session == "s1"


def test_a_file_on_a_disk_that_is_away_is_left_and_said(agent: Agent, root: Path) -> None:
    class Elsewhere(LocalDisk):
        label = "ssh:far"

    place = Planned(str(root / "a"), file_state(b"new"))
    agent.store.before(agent.author("one"), Elsewhere(), [place])

    report = agent.store.undo(turn="one")

    assert "ssh:far" in report.left[0].reason


def test_names_that_are_no_utf8_are_restored(agent: Agent, root: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    agent.write(name, b"one", "one")
    agent.run(f"rm -f {name}; ln -s {name} link", "two")

    agent.store.undo(turn="two")

    assert (root / name).read_bytes() == b"one"
    assert set(picture(root)) == {name}


def test_one_path_can_be_restored_to_before_any_change(agent: Agent, root: Path) -> None:
    agent.write("a", b"one", "one")
    agent.write("a", b"two", "two")
    agent.write("a", b"three", "three")
    second = agent.store.history(str(root / "a"))[1]

    agent.store.restore(str(root / "a"), second.id)
    once = (root / "a").read_bytes()
    agent.store.undo(below=str(root))

    assert once == b"one"
    assert (root / "a").read_bytes() == b"three"
    assert agent.store.previous(str(root / "a")) == b"one"
