"""`hermes sessions`, as a person uses it."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes.core.errors import HermesError
from hermes.core.model_protocol import Message, ToolUse, Usage
from hermes.interfaces.cli.main import CliApp
from hermes.interfaces.cli.sessions import arguments
from hermes.stores.sessions import Session, Sessions

Run = Callable[..., str]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command in this process; what it printed."""

    def command(*words: str, code: int = 0) -> str:
        parser = ArgumentParser()
        arguments(parser)
        options = parser.parse_args(words)
        app = CliApp()
        try:
            assert options.run(app, options) == code
        finally:
            app.close()
        return capsys.readouterr().out

    return command


@pytest.fixture
def kept(home: Path) -> Session:
    """A session of this home."""
    with Sessions() as store:
        session = store.begin(workspace="/work", model="small", front_door="test")
        session.append(Message("user", "find the café\x1b[31m"))
        call = ToolUse("1", "terminal", '{"command": "ls"}')
        session.append(Message("assistant", "", (call,)), usage=Usage(100, 10))
        session.intend("t", "1", "terminal", {"command": "ls"}, "execute")
    return session


def test_looking_makes_no_store(run: Run, home: Path) -> None:
    assert run("list") == ""
    assert run("list", "--json").strip() == "[]"
    assert not (home / "state.db").exists()


def test_sessions_are_listed_shown_and_found(run: Run, kept: Session) -> None:
    listed = run("list")
    shown = run("show", "last")
    found = run("search", "cafe")

    assert kept.id in listed
    assert "find the café" in listed
    assert "nobody knows what came of it" in shown
    assert "\x1b" not in shown
    assert kept.id in found
    assert json.loads(run("search", "terminal", "--json"))["hits"][0]["role"] == "assistant"
    assert run("search", "nothing at all") == ""


def test_a_quoted_argument_is_a_phrase(run: Run, kept: Session) -> None:
    assert run("search", "find", "the café")
    assert not run("search", "find", "café the")


def test_a_session_is_renamed_forked_and_deleted(run: Run, kept: Session) -> None:
    run("rename", kept.id, "A", "better", "title")
    made = json.loads(run("fork", kept.id, "--json"))
    deleted = run("delete", kept.id)

    assert made["title"] == "A better title"
    assert made["parent"] == kept.id
    assert "A better title" in deleted
    assert [info["id"] for info in json.loads(run("list", "--json"))] == [made["id"]]
    with pytest.raises(HermesError, match="no session is called"):
        run("show", kept.id)


def test_a_session_is_exported_to_a_file_of_its_owner(
    run: Run, kept: Session, tmp_path: Path
) -> None:
    target = tmp_path / "out.html"

    printed = run("export", "last", "--format", "html", "-o", str(target))

    assert printed == ""
    assert target.read_text().startswith("<!DOCTYPE html>")
    assert target.stat().st_mode & 0o077 == 0
    assert json.loads(run("export", kept.id, "--format", "json"))["session"]["id"] == kept.id


def test_stats_say_what_was_used(run: Run, kept: Session) -> None:
    assert json.loads(run("stats", "--json"))["usage"] == {"input": 100, "output": 10}
    assert "tool terminal" in run("stats", "last")


def test_the_doctor_says_what_is_wrong_by_its_code_too(run: Run, kept: Session, home: Path) -> None:
    sound = run("doctor")
    path = home / "state.db"
    for name in home.glob("state.db-*"):
        name.unlink()
    path.write_bytes(b"no database at all" * 1000)

    broken = run("doctor", code=1)

    assert "1 sessions, 2 messages" in sound
    assert "problem: " in broken


def test_a_backup_is_written(run: Run, kept: Session, tmp_path: Path) -> None:
    run("backup", str(tmp_path / "copy.db"))

    with Sessions(tmp_path / "copy.db") as copy:
        assert copy.open("last").id == kept.id


def test_pruning_deletes_no_session_unasked(run: Run, kept: Session) -> None:
    told = run("prune", "--days", "0")

    assert f"due {kept.id}" in told
    assert kept.id in run("list")
    assert f"deleted {kept.id}" in run("prune", "--days", "0", "--delete")
    assert run("list") == ""


@pytest.mark.parametrize("words", [("list", "-n", "0"), ("prune", "--days", "-1")])
def test_numbers_that_can_not_be_are_refused(run: Run, words: tuple[str, ...]) -> None:
    with pytest.raises(HermesError, match="at least"):
        run(*words)
