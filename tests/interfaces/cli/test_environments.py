"""`hermes environments`: what there is, whether it works, what was left over."""

from __future__ import annotations

import json
import shutil
from argparse import ArgumentParser
from io import StringIO
from pathlib import Path

import pytest

from hermes.core.errors import ConfigError
from hermes.interfaces.cli import doctor, environments
from hermes.interfaces.cli.main import CliApp


def command(*words: str) -> tuple[int, str]:
    parser = ArgumentParser()
    environments.arguments(parser)
    options = parser.parse_args(words)
    app = CliApp()
    app.stdout = StringIO()
    code = options.run(app, options)
    return code, app.stdout.getvalue()


def test_all_kinds_are_listed_and_one_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_TERMINAL_ENV", "sandbox")

    _, shown = command("list", "--json")

    rows = {row["name"]: row for row in json.loads(shown)}
    assert {"local", "sandbox", "docker"} <= set(rows)
    assert [name for name, row in rows.items() if row["chosen"]] == ["sandbox"]
    assert "sandbox" in command()[1]


@pytest.mark.parametrize("name", ["local", "sandbox"])
def test_one_that_works_says_what_is_enforced(name: str) -> None:
    if name == "sandbox" and shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")

    code, shown = command("test", name, "--json")

    report = json.loads(shown)
    assert (code, report["works"]) == (0, True)
    assert report["processes"]
    assert "works: True" in command("test", name)[1]


def test_one_that_does_not_work_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("docker") is None:
        pytest.skip("docker is not installed")
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/d.sock")

    code, shown = command("test", "docker", "--json")

    report = json.loads(shown)
    assert (code, report["works"]) == (1, False)
    assert "docker info" in report["hint"]


def test_a_kind_that_is_not_known_is_refused() -> None:
    with pytest.raises(ConfigError, match="no kind"):
        command("test", "nosuch")


def test_pruning_says_what_was_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/d.sock")

    code, shown = command("prune", "--json")

    assert code == 0
    assert json.loads(shown)["removed"]["docker"] == []


def test_the_doctor_tries_what_can_be_tried(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HERMES_TERMINAL_ENV", "docker")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/d.sock")
    parser = ArgumentParser()
    doctor.arguments(parser)
    options = parser.parse_args(["--json"])
    app = CliApp()
    app.stdout = StringIO()

    code = options.run(app, options)

    report = json.loads(app.stdout.getvalue())
    found = {one["name"]: one for one in report["environments"]}
    assert found["local"]["works"]
    assert "limits hold" in found["local"]["confinement"]
    assert found["local"]["files"] == "kept apart"
    assert "terminal.ssh.host" in found["ssh"]["problem"]
    if shutil.which("docker") is not None:
        # What was chosen and does not work is a problem; what was not is none.
        assert code == 1
        assert any(one.startswith("environment docker") for one in report["problems"])
