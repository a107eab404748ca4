"""`hermes mcp`, as a person uses it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from tests.conftest import CommandLine

PEER = Path(__file__).parents[2] / "mcp" / "servers" / "peer.py"


def script(place: Path, *names: str, **more: Any) -> str:
    """A server's script in a file, so that it can be changed; the file's path."""
    tools = [
        {
            "name": name,
            "description": f"Does {name}.",
            "inputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": True},
            **more,
        }
        for name in names
    ]
    place.write_text(json.dumps({"tools": tools}))
    return str(place)


def configured(hermes: CommandLine) -> None:
    """A server that is never started."""
    hermes.home.mkdir(parents=True)
    (hermes.home / "config.yaml").write_text("mcp_servers: {box: {command: no-such-program}}\n")


def test_a_server_is_added_shown_called_and_removed(hermes: CommandLine, tmp_path: Path) -> None:
    said = script(tmp_path / "s.json", "echo")

    added = hermes("mcp", "add", "--yes", "--env", "A=${HOME}", "box", sys.executable, PEER, said)
    listed = json.loads(hermes("mcp", "list", "--json").stdout)
    tools = hermes("mcp", "tools", "box")
    called = hermes("call", "mcp-box:echo")
    searched = hermes("tools", "list", "--toolset", "mcp-box")
    config = yaml.safe_load((hermes.home / "config.yaml").read_text())
    removed = hermes("mcp", "remove", "box")

    assert added.returncode == 0, added.stderr
    assert "Does echo." in added.stdout
    assert listed[0]["tools"] == 1
    assert "mcp-box:echo" in tools.stdout
    assert '"tool": "echo"' in called.stdout
    assert "mcp-box:echo" in searched.stdout
    assert config["mcp_servers"]["box"]["env"] == {"A": "${HOME}"}
    assert removed.returncode == 0
    assert json.loads(hermes("mcp", "list", "--json").stdout) == []


def test_what_nobody_agreed_to_cant_be_called(hermes: CommandLine, tmp_path: Path) -> None:
    hermes("mcp", "add", "box", sys.executable, PEER, script(tmp_path / "s.json", "echo"))

    called = hermes("call", "mcp-box:echo")
    approved = hermes("mcp", "approve", "box", "--yes")
    again = hermes("call", "mcp-box:echo")

    assert called.returncode == 1
    assert "approve box" in called.stderr
    assert "Approved 1 tools" in approved.stdout
    assert again.returncode == 0


def test_a_change_is_shown_and_approved(hermes: CommandLine, tmp_path: Path) -> None:
    place = tmp_path / "s.json"
    hermes("mcp", "add", "--yes", "box", sys.executable, PEER, script(place, "echo"))
    script(place, "echo", description="Does echo, and sends you a copy\u200b.")

    tested = hermes("mcp", "test", "box", "--json")
    changed = hermes("mcp", "diff", "box")
    refused = hermes("call", "mcp-box:echo")
    hermes("mcp", "approve", "box", "--yes")
    same = hermes("mcp", "diff", "box")

    assert "echo" in json.loads(tested.stdout)["suspended"]
    assert "-" in changed.stdout
    assert "sends you a copy\\u200b" in changed.stdout
    assert refused.returncode == 1
    assert same.stdout == ""


def test_a_missing_program_is_told_with_where_it_was_looked_for(hermes: CommandLine) -> None:
    hermes("mcp", "add", "box", "no-such-program")

    done = hermes("mcp", "test", "box", env={"PATH": "/one:/two"})
    said = json.loads(hermes("mcp", "test", "box", "--json", env={"PATH": "/one:/two"}).stdout)

    assert done.returncode == 1
    assert "/one:/two" in done.stdout
    assert said["looked in"] == ["/one", "/two"]
    assert said["command"] == "no-such-program"


def test_what_a_server_said_beside_its_answers_is_in_its_log(
    hermes: CommandLine, tmp_path: Path
) -> None:
    hermes("mcp", "add", "--yes", "box", sys.executable, PEER, script(tmp_path / "s.json", "die"))

    hermes("call", "mcp-box:die")

    assert "about to die" in hermes("mcp", "logs", "box").stdout


def test_a_name_that_is_none_is_answered_with_the_nearest(hermes: CommandLine) -> None:
    configured(hermes)

    wrong = hermes("mcp", "test", "bux")
    bad = hermes("mcp", "add", "a b", "x")
    empty = hermes("mcp", "add", "other")

    assert "Did you mean box?" in wrong.stderr
    assert (bad.returncode, empty.returncode) == (2, 2)
    assert bad.stderr.count("\n") == 1


def test_a_program_of_this_machine_needs_no_login(hermes: CommandLine) -> None:
    configured(hermes)

    assert "needs no login" in hermes("mcp", "login", "box").stderr
    assert "nobody is logged in" in hermes("mcp", "logout", "box").stderr


def test_other_settings_stay_as_they_were(hermes: CommandLine) -> None:
    hermes.home.mkdir(parents=True)
    (hermes.home / "config.yaml").write_text("# mine\ntools:\n  parallel: 3  # few\n")

    hermes("mcp", "add", "box", "no-such-program", "--flag")

    text = (hermes.home / "config.yaml").read_text()
    assert text.startswith("# mine\ntools:\n  parallel: 3  # few\n")
    assert yaml.safe_load(text)["mcp_servers"]["box"]["args"] == ["--flag"]


@pytest.mark.parametrize("action", ["test", "tools", "approve", "diff"])
def test_a_disabled_server_is_said_to_be_so(hermes: CommandLine, action: str) -> None:
    hermes.home.mkdir(parents=True)
    said = "mcp_servers: {box: {command: cat, enabled: false}}\n"
    (hermes.home / "config.yaml").write_text(said)

    done = hermes("mcp", action, "box")

    assert done.returncode == 1
    assert "disabled" in done.stdout + done.stderr
    assert "unexpected" not in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("--oauth", "box", "cat"),
        ("box", "--header", "A=b", "cat"),
        ("box", "--env", "A=b", "http://127.0.0.1:9/mcp"),
        ("box", "ftp://127.0.0.1/mcp"),
        ("box", "--env", "A=b"),
    ],
)
def test_what_does_not_go_together_is_not_added(hermes: CommandLine, words: tuple[str]) -> None:
    done = hermes("mcp", "add", *words)

    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert not (hermes.home / "config.yaml").exists()


def test_options_may_stand_behind_the_name_and_belong_to_the_command_behind_that(
    hermes: CommandLine,
) -> None:
    first = hermes("mcp", "add", "box", "--env", "A=b", "--", "no-such-program", "--env", "-x")
    second = hermes("mcp", "add", "--lazy", "box", "no-such-program")

    box = {"command": "no-such-program", "args": ["--env", "-x"], "env": {"A": "b"}}
    assert "Added box" in first.stdout
    assert "Replaced box" in second.stdout
    again = hermes("mcp", "add", "box", "--env", "A=b", "no-such-program", "--env", "-x")
    assert "Replaced box" in again.stdout
    assert yaml.safe_load((hermes.home / "config.yaml").read_text())["mcp_servers"] == {"box": box}
