"""The confinement policy: which paths are writable, protected, hidden and masked."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hermes.core.config import Config, set_value
from hermes.core.errors import ConfigError
from hermes.environments.confinement.policy import Settings, git_folders, plan


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "person"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("HERMES_HOME", str(home / ".hermes"))
    return home


def git(folder: Path, *words: str) -> None:
    command = [
        "git",
        "-c",
        "user.name=n",
        "-c",
        "user.email=e@x",
        "-c",
        "protocol.file.allow=always",
    ]
    subprocess.run([*command, "-C", str(folder), *words], check=True, capture_output=True)


def repository(folder: Path) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


def test_workspace_is_writable_and_hooks_are_not(home: Path, tmp_path: Path) -> None:
    work = repository(home / "work")
    (home / ".ssh").mkdir()

    found = plan(str(work), str(tmp_path / "t"), Settings())

    assert str(work) in found.write
    assert str(work / ".git" / "hooks") in found.protected
    assert str(home / ".ssh") in found.hidden
    assert not [path for path in found.write if path in (str(home), "/", "/etc")]


def test_of_a_home_that_is_the_workspace_settings_stay_closed(home: Path, tmp_path: Path) -> None:
    (home / "notes").mkdir()
    (home / ".bashrc").write_text("x")

    found = plan(str(home), str(tmp_path / "t"), Settings())

    assert str(home / "notes") in found.write
    assert str(home) not in found.write
    assert not [path for path in found.write if path.endswith(".bashrc")]


def test_a_linked_worktree_may_write_to_its_repository(home: Path) -> None:
    main = repository(home / "main")
    git(main, "worktree", "add", "-q", str(home / "linked"))

    assert git_folders(str(home / "linked")) == [str(main / ".git")]


def test_a_submodule_may_write_to_its_own_git_folder(home: Path) -> None:
    library = repository(home / "library")
    main = repository(home / "main")
    git(main, "submodule", "--quiet", "add", str(library), "lib")

    assert git_folders(str(main / "lib")) == [str(main / ".git" / "modules" / "lib")]


def test_a_git_file_that_a_command_wrote_opens_no_other_repository(home: Path) -> None:
    victim = repository(home / "victim")
    work = home / "work"
    work.mkdir()
    (work / ".git").write_text(f"gitdir: {victim}/.git\n")

    assert git_folders(str(work)) == []


def test_settings_with_tokens_are_shown_masked(home: Path, tmp_path: Path) -> None:
    token = "npm_" + "a1B2" * 9
    (home / ".npmrc").write_text(f"registry=https://r.example/\n//r.example/:_authToken={token}\n")

    found = plan(str(tmp_path), str(tmp_path / "t"), Settings())

    copies = {path: Path(copy).read_text() for path, copy in found.masked}
    assert "registry=https://r.example/" in copies[str(home / ".npmrc")]
    assert token not in copies[str(home / ".npmrc")]


def test_an_allowance_shows_what_it_names_and_no_more(home: Path, tmp_path: Path) -> None:
    (home / ".ssh").mkdir()
    (home / ".ssh" / "known_hosts").write_text("x")
    (home / ".ssh" / "id_rsa").write_text("x")

    found = plan(str(tmp_path), str(tmp_path / "t"), Settings(allow=("ssh-agent",)))

    assert str(home / ".ssh" / "known_hosts") in found.visible
    assert str(home / ".ssh" / "id_rsa") not in found.visible
    assert str(home / ".ssh") in found.hidden


@pytest.mark.parametrize(
    "settings", [Settings(mode="maybe"), Settings(network="some"), Settings(allow=("sudo",))]
)
def test_unknown_values_are_refused_with_those_there_are(settings: Settings) -> None:
    with pytest.raises(ConfigError) as error:
        settings.checked()

    assert error.value.hint.startswith("Use ")


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("terminal: {confine: off}", "off"),
        ("terminal: {confine: on}", "on"),
        ("terminal: {confine: auto}", "auto"),
        ("terminal: {confine: {mode: off}}", "off"),
        ("terminal: {confine: {allow: [docker]}}", "auto"),
        ("", "auto"),
    ],
)
def test_the_mode_can_be_given_in_short(tmp_path: Path, text: str, mode: str) -> None:
    (tmp_path / "config.yaml").write_text(text)

    assert Config.load(str(tmp_path / "config.yaml")).get("terminal.confine.mode") == mode


def test_the_mode_is_set_by_its_short_name(tmp_path: Path) -> None:
    path = str(tmp_path / "config.yaml")

    set_value("terminal.confine", "off", path)

    assert Config.load(path).get("terminal.confine.mode") == "off"
