"""`hermes config`: the settings as they are, and one changed without harm to the rest."""

from __future__ import annotations

import json
import stat
from typing import TYPE_CHECKING

import pytest
import yaml

if TYPE_CHECKING:
    from tests.conftest import CommandLine

WRITTEN = """\
# My settings, dear to me.
tools:
  # how many schemas
  defer_above: 30   # not too many
  enabled_toolsets:
    - system   # the machine
    - web
# the end of tools

audit:
  enabled: true
"""


def settings(hermes: CommandLine) -> str:
    return (hermes.home / "config.yaml").read_text()


@pytest.fixture
def written(hermes: CommandLine) -> CommandLine:
    hermes.home.mkdir()
    (hermes.home / "config.yaml").write_text(WRITTEN)
    return hermes


def test_every_setting_is_listed_with_its_value(written: CommandLine) -> None:
    done = written("config")
    values = json.loads(written("config", "list", "--json").stdout)

    assert "tools.defer_above" in done.stdout
    assert values["tools.defer_above"] == 30
    assert values["tools.parallel"] == 16


def test_one_setting_or_a_section_is_read(written: CommandLine) -> None:
    assert written("config", "get", "tools.defer_above").stdout == "30\n"
    assert written("config", "get", "audit.enabled").stdout == "true\n"
    assert json.loads(written("config", "get", "tools").stdout)["defer_above"] == 30


@pytest.mark.parametrize(
    ("name", "value", "understood"),
    [
        ("tools.defer_above", "5", 5),
        ("tools.enabled_toolsets", "file,web", ["file", "web"]),
        ("tools.enabled_toolsets", "[]", []),
        ("tools.enabled_toolsets", "", []),
        ("tools.disabled_toolsets", "system", ["system"]),
        ("tools.parallel", "2", 2),
        ("audit.enabled", "false", False),
        ("plugins.enabled", "no", False),
        ("command_allowlist", "ls -l: x, # y", ["ls -l: x", "# y"]),
    ],
)
def test_a_change_keeps_the_rest_and_its_comments(
    written: CommandLine, name: str, value: str, understood: object
) -> None:
    done = written("config", "set", name, value)

    assert (done.returncode, done.stderr) == (0, "")
    after = settings(written)
    for comment in ("# My settings, dear to me.", "# how many schemas", "# the end of tools"):
        assert comment in after
    if name != "tools.defer_above":
        assert "defer_above: 30   # not too many" in after
    wanted = yaml.safe_load(WRITTEN)
    *sections, last = name.split(".")
    place = wanted
    for section in sections:
        place = place.setdefault(section, {})
    place[last] = understood
    assert yaml.safe_load(after) == wanted
    read = json.loads(written("config", "get", name, "--json").stdout)
    assert read == understood


def test_a_first_setting_makes_the_file_for_its_owner_only(hermes: CommandLine) -> None:
    assert hermes("config", "set", "tools.parallel", "2").returncode == 0

    assert settings(hermes) == "tools:\n  parallel: 2\n"
    assert stat.S_IMODE((hermes.home / "config.yaml").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "text", ["", "# only a remark", "{}", "tools: {defer_above: 3}", "tools:\n"]
)
def test_files_of_any_shape_can_be_changed(hermes: CommandLine, text: str) -> None:
    hermes.home.mkdir()
    (hermes.home / "config.yaml").write_text(text)

    done = hermes("config", "set", "tools.parallel", "2")

    assert (done.returncode, done.stderr) == (0, "")
    assert hermes("config", "get", "tools.parallel").stdout == "2\n"
    assert text.startswith("#") == ("# only a remark" in settings(hermes))


def test_a_refused_change_changes_nothing(written: CommandLine) -> None:
    done = written("config", "set", "tools.defer_above", "[1")

    assert done.returncode == 1
    assert settings(written) == WRITTEN


def test_where_the_settings_are(hermes: CommandLine) -> None:
    assert hermes("config", "path").stdout == f"{hermes.home}/config.yaml\n"


def editor(hermes: CommandLine, script: str) -> str:
    path = hermes.folder / "editor"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return f"'{path}' --wait"


def test_editing_starts_with_every_setting_explained(hermes: CommandLine) -> None:
    done = hermes("config", "edit", env={"EDITOR": editor(hermes, 'cat "$2"'), "VISUAL": None})

    assert done.returncode == 0
    assert "# tools.defer_above" in done.stdout


def test_mistakes_made_while_editing_are_said(hermes: CommandLine) -> None:
    script = 'printf "tools: {paralel: 3, defer_above: x}\\n" > "$2"'

    done = hermes("config", "edit", env={"EDITOR": editor(hermes, script), "VISUAL": None})

    assert done.returncode == 1
    assert done.stderr.count("\n") == 2
    assert "tools.paralel" in done.stderr
    assert "tools.defer_above" in done.stderr


@pytest.mark.parametrize("command", ["no-such-editor-anywhere", "'unclosed"])
def test_an_editor_that_can_t_be_started_is_one_line(hermes: CommandLine, command: str) -> None:
    done = hermes("config", "edit", env={"EDITOR": command, "VISUAL": None})

    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "can't be started" in done.stderr
