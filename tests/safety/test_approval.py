"""A grant covers what it was given for, and nothing more."""

from __future__ import annotations

from pathlib import Path

from hermes.safety.approval import Approvals, Grant, call_grant, command_grant


def test_a_grant_survives_being_written_and_read() -> None:
    grant = command_grant("deletes.recursive", "rm -rf build | x", cwd="/w")

    assert Grant.from_line(grant.line()) == grant
    assert Grant.from_line("anything else") is None


def test_a_session_grant_covers_that_session_only(tmp_path: Path) -> None:
    approvals = Approvals()
    grant = command_grant("deletes.recursive", "rm -rf build", cwd=str(tmp_path))

    approvals.give([grant], "one", always=False)

    assert approvals.cover([grant], "one")
    assert not approvals.cover([grant], "two")
    approvals.end_session("one")
    assert not approvals.cover([grant], "one")


def test_every_reason_must_be_covered(tmp_path: Path) -> None:
    approvals = Approvals()
    first = command_grant("git.force-push", "git push --force", cwd=str(tmp_path))
    second = command_grant("deletes.recursive", "rm -rf x", cwd=str(tmp_path))

    approvals.give([first], "s", always=False)

    assert approvals.cover([first], "s")
    assert not approvals.cover([first, second], "s")
    assert not approvals.cover([], "s")


def test_a_grant_is_bound_to_folder_environment_and_scripts(tmp_path: Path) -> None:
    script = tmp_path / "deploy.sh"
    script.write_text("echo one")

    def grant(**changes: object) -> Grant:
        words = ["sh", "deploy.sh"]
        given = {"cwd": str(tmp_path), "env": {"A": "1"}, "words": words, **changes}
        return command_grant("remote.run", "sh deploy.sh", **given)  # type: ignore[arg-type]

    first = grant()
    same = grant()
    elsewhere = grant(cwd=str(tmp_path.parent))
    other = grant(env={"A": "2"})
    script.write_text("echo two")
    changed = grant()

    assert first == same
    assert len({first, elsewhere, other, changed}) == 4


def test_always_is_kept_through_the_callback() -> None:
    kept: list[list[str]] = []
    approvals = Approvals(keep=kept.append)
    grant = call_grant("effect:message", "tell", '{"to":"a"}')

    approvals.give([grant], "s", always=True)
    again = Approvals(kept[-1])

    assert again.cover([grant], "another session")
    assert not again.cover([call_grant("effect:message", "tell", '{"to":"b"}')], "s")
    assert [how for how, _ in again.all()] == ["always"]
