"""`hermes tool`, from the command line to the registry."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import TYPE_CHECKING, Any

import pytest

from hermes.core.errors import HermesError
from hermes.core.registry import ToolRegistry
from hermes.interfaces.cli import tools as tool
from hermes.runtime.yaml_tools.store import YamlTools

if TYPE_CHECKING:
    from pathlib import Path

FILE = """
tools:
  - name: greet
    description: Say hello.
    type: command
    command: [echo, hello, "{who}"]
    parameters: [{name: who, required: true, description: Whom to greet.}]
  - name: remote
    type: http_wrapper
    endpoint: https://api.example/x
    auth: {type: bearer, token_env: HERMES_TEST_UNSET_TOKEN}
"""


class Program:
    """What the commands need of the program, with everything they say written down."""

    def __init__(self, home: str) -> None:
        self.registry = ToolRegistry()
        self.yaml_tools = YamlTools(self.registry, home=home)
        self.yaml_tools.load()
        self.answers: list[str] = []
        self.remarks: list[str] = []
        self.values: list[Any] = []
        self.out = self.answers.append
        self.note = self.remarks.append
        self.emit = self.values.append


@pytest.fixture
def home(tmp_path: Path) -> str:
    return str(tmp_path / "home")


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = tmp_path / "tools.yaml"
    file.write_text(FILE)
    return str(file)


def run(home: str, *words: str) -> Program:
    parser = ArgumentParser()
    tool.tool_arguments(parser)
    options = parser.parse_args(words)
    program = Program(home)
    assert options.run(program, options) in (None, 0)
    return program


@pytest.mark.parametrize("option", [[], ["--config"]])
def test_a_file_is_registered_and_listed_by_the_next_run(
    home: str, path: str, option: list[str]
) -> None:
    registered = run(home, "register", *option, path)
    listed = run(home, "list")

    assert registered.answers == ["Registered `greet` (execute)", "Registered `remote` (network)"]
    assert "HERMES_TEST_UNSET_TOKEN" in registered.remarks[0]
    assert listed.answers[0] == path
    assert listed.answers[1] == "  greet   Say hello."
    assert "hidden: missing environment variable" in listed.answers[2]


def test_a_listing_as_json_has_everything(home: str, path: str) -> None:
    run(home, "register", path)

    (files,) = run(home, "list", "--json").values

    assert files[0]["file"] == path
    assert files[0]["problem"] is None
    assert [one["name"] for one in files[0]["tools"]] == ["greet", "remote"]
    assert files[0]["tools"][1]["type"] == "http_wrapper"


def test_a_broken_file_is_one_error_with_every_line(home: str, path: str, tmp_path: Path) -> None:
    (tmp_path / "tools.yaml").write_text("name: x\ntype: command\ncommand: ls\nefect: read\n")

    with pytest.raises(HermesError, match=r"line 3: .*line 4: .*`effect`"):
        run(home, "register", path)
    with pytest.raises(HermesError, match="name one file"):
        run(home, "register")


def test_a_problem_is_a_remark_beside_the_list(home: str, path: str, tmp_path: Path) -> None:
    run(home, "register", path)
    (tmp_path / "tools.yaml").write_text("tools: 3")

    listed = run(home, "list")

    assert "last good version" in listed.remarks[0]
    assert len(listed.answers) == 3


def test_one_tool_is_shown_with_its_parameters(home: str, path: str) -> None:
    run(home, "register", path)

    shown = run(home, "show", "greet")

    assert "name: greet" in shown.answers
    assert f"file: {path}" in shown.answers
    assert "  who (string, required) Whom to greet." in shown.answers
    assert run(home, "show", "greet", "--json").values[0]["effect"] == "execute"
    with pytest.raises(HermesError) as caught:
        run(home, "show", "gret")
    assert caught.value.hint == "Did you mean greet?"


def test_a_tool_or_a_file_is_unregistered(home: str, path: str) -> None:
    run(home, "register", path)

    assert run(home, "unregister", "greet").answers == ["Unregistered `greet`"]
    assert run(home, "unregister", path).answers == ["Unregistered `remote`"]
    assert "No YAML tools" in run(home, "list").remarks[0]
    with pytest.raises(HermesError):
        run(home, "unregister", "greet")
