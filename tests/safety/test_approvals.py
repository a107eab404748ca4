"""A grant covers what it was given for, and nothing more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hermes.core import ToolEntry, ToolRegistry
from hermes.safety.approvals import Approvals, Grant, call_grant, command_grant
from hermes.safety.call_effects import CallEffect


def test_a_grant_survives_being_written_and_read() -> None:
    grant = command_grant("deletes.recursive", "rm -rf build | x", [], cwd="/w")

    assert Grant.from_line(grant.line()) == grant
    assert Grant.from_line("anything else") is None


def test_a_session_grant_covers_that_session_only(tmp_path: Path) -> None:
    approvals = Approvals()
    grant = command_grant("deletes.recursive", "rm -rf build", [], cwd=str(tmp_path))

    approvals.give([grant], "one", always=False)

    assert approvals.covered_by([grant], "one")
    assert not approvals.covered_by([grant], "two")
    approvals.end_session("one")
    assert not approvals.covered_by([grant], "one")


def test_every_reason_must_be_covered(tmp_path: Path) -> None:
    approvals = Approvals()
    first = command_grant("git.force-push", "git push --force", [], cwd=str(tmp_path))
    second = command_grant("deletes.recursive", "rm -rf x", [], cwd=str(tmp_path))

    approvals.give([first], "s", always=False)

    assert approvals.covered_by([first], "s")
    assert not approvals.covered_by([first, second], "s")
    assert not approvals.covered_by([], "s")


def test_a_grant_is_bound_to_folder_environment_and_scripts(tmp_path: Path) -> None:
    script = tmp_path / "deploy.sh"
    script.write_text("echo one")

    def grant(**changes: object) -> Grant:
        given = {"cwd": str(tmp_path), "env": {"A": "1"}, **changes}
        words = [["sh", "deploy.sh"]]
        return command_grant("remote.run", "sh deploy.sh", words, **given)  # type: ignore[arg-type]

    first = grant()
    same = grant()
    elsewhere = grant(cwd=str(tmp_path.parent))
    other = grant(env={"A": "2"})
    script.write_text("echo two")
    changed = grant()

    assert first == same
    assert len({first, elsewhere, other, changed}) == 4


def _entry(**fields: Any) -> ToolEntry:
    schema = {"type": "object", "properties": {"to": {"type": "string"}}}
    return ToolRegistry().register("tell", fields.pop("toolset", "t"), schema, print, **fields)


def _grant(entry: ToolEntry, arguments: str, workspace: str = "/w") -> Grant:
    return call_grant("effect:message", entry, arguments, acts=[], workspace=workspace)


def test_always_is_kept_through_the_callback() -> None:
    kept: list[list[str]] = []
    approvals = Approvals(keep=kept.append)
    grant = _grant(_entry(), '{"to":"a"}')

    approvals.give([grant], "s", always=True)
    again = Approvals(kept[-1])

    assert again.covered_by([grant], "another session")
    assert not again.covered_by([_grant(_entry(), '{"to":"b"}')], "s")
    assert [how for how, _ in again.all()] == ["always"]


def test_a_call_grant_is_bound_to_the_tool_its_workspace_and_what_it_does(tmp_path: Path) -> None:
    first = _grant(_entry(), "{}")

    assert first == _grant(_entry(), "{}")
    assert first != _grant(_entry(toolset="another"), "{}")
    assert first != _grant(_entry(origin="plugin", owner="x"), "{}")
    assert first != _grant(_entry(description="other"), "{}")
    assert first != _grant(_entry(), "{}", str(tmp_path))
    assert first != call_grant(
        "effect:message",
        _entry(),
        "{}",
        acts=[CallEffect("fetch", "https://a.example")],
        workspace="/w",
    )


def test_what_can_not_be_kept_holds_for_the_session_only() -> None:
    def full(lines: list[str]) -> None:
        raise OSError("no space left")

    approvals = Approvals(keep=full)
    grant = _grant(_entry(), "{}")

    approvals.give([grant], "s", always=True)

    assert approvals.covered_by([grant], "s")
    assert not approvals.covered_by([grant], "another")


def test_no_secret_is_written_down() -> None:
    token = "ghp_" + "a1B2" * 9

    grant = _grant(_entry(), f'{{"to":"https://u:hunter2pass@h/ {token}"}}')

    assert "hunter2pass" not in grant.line()
    assert token not in grant.line()
