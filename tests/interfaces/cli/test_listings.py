"""`hermes tools`, `toolsets`, `trust` and `doctor`: what there is, and what is missing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.conftest import approve_plugins

if TYPE_CHECKING:
    from tests.conftest import CommandLine

NEEDY = '''
from hermes.tools import needs, tool

@tool(toolset="acme", check_fn=needs("no_such_package", extra="acme"), effect="read")
def needy() -> None:
    """Needs a package."""
'''


@pytest.fixture
def needy(hermes: CommandLine) -> CommandLine:
    (hermes.home / "plugins").mkdir(parents=True, mode=0o700)
    hermes.home.chmod(0o700)
    (hermes.home / "plugins" / "acme.py").write_text(NEEDY)
    approve_plugins(hermes.home)
    return hermes


def test_tools_that_can_t_work_here_are_counted_and_shown_on_demand(needy: CommandLine) -> None:
    listed = needy("tools")
    everything = needy("tools", "list", "--all")
    shown = needy("tools", "show", "needy")

    assert "needy" not in listed.stdout
    assert "1 more can't work here" in listed.stderr
    assert "missing Python package no_such_package" in everything.stdout
    assert "pip install 'hermes-tools[acme]'" in shown.stdout


def test_tools_of_one_toolset(hermes: CommandLine) -> None:
    done = hermes("tools", "list", "--toolset", "discovery", "--json")

    assert [tool["name"] for tool in json.loads(done.stdout)] == ["read_artifact", "tool_search"]


def test_a_tool_is_shown_with_its_parameters(hermes: CommandLine) -> None:
    done = hermes("tools", "show", "env_manager")
    definition = json.loads(hermes("tools", "show", "env_manager", "--json").stdout)

    for word in ("action*", "one of list, get, set, unset", "toolset", "write", "available"):
        assert word in done.stdout
    assert definition["function"]["name"] == "env_manager"


@pytest.mark.parametrize(
    ("need", "tool"),
    [
        ("how much memory is free", "system_info"),
        ("wait a moment", "sleep"),
        ("set an environment variable", "env_manager"),
        ("copy to clipboard", "clipboard"),
        ("--limit 1 pop up", "notification"),
    ],
)
def test_a_need_in_one_s_own_words_finds_the_tool(
    hermes: CommandLine, need: str, tool: str
) -> None:
    done = hermes("tools", "search", *need.split())

    assert done.returncode == 0
    assert done.stdout.startswith(tool)


def test_toolsets_say_how_many_of_their_tools_work_here(hermes: CommandLine) -> None:
    listed = {
        line["name"]: line for line in json.loads(hermes("toolsets", "list", "--json").stdout)
    }
    shown = hermes("toolsets", "show", "safe")

    assert listed["discovery"]["available"] == listed["discovery"]["declared"] == 2
    assert listed["web"]["declared"] > 0
    assert "includes web, file" in shown.stdout
    assert "not installed" in shown.stdout


def test_a_broken_plugin_is_mentioned_where_its_tools_are_missed(hermes: CommandLine) -> None:
    (hermes.home / "plugins").mkdir(parents=True)
    (hermes.home / "plugins" / "broken.py").write_text("1 / 0")
    approve_plugins(hermes.home)

    done = hermes("tools")

    assert done.returncode == 0
    assert done.stderr == "not all of broken could be loaded: `hermes plugins` says why\n"


def test_trust_is_given_listed_lost_and_taken_back(hermes: CommandLine) -> None:
    plugins = hermes.folder / ".hermes" / "plugins"
    plugins.mkdir(parents=True)
    (plugins / "local.py").write_text(NEEDY)

    before = hermes("plugins")
    given = hermes("trust")
    trusted = hermes("plugins", "list", "--json")
    listed = hermes("trust", "list")
    (plugins / "local.py").write_text(NEEDY + "# changed")
    changed = hermes("trust", "list", "--json")
    afterwards = hermes("plugins")
    revoked = hermes("trust", "revoke", plugins)

    assert "not trusted" in before.stdout
    assert before.returncode == 1
    assert str(plugins) in given.stdout
    assert json.loads(trusted.stdout)[0]["registered"] == ["needy"]
    assert "as trusted" in listed.stdout
    assert list(json.loads(changed.stdout).values()) == ["changed since"]
    assert "changed since it was trusted" in afterwards.stdout
    assert revoked.returncode == 0
    assert json.loads(hermes("trust", "list", "--json").stdout) == {}


def test_the_doctor_is_content_with_a_fresh_home(hermes: CommandLine) -> None:
    for _ in range(2):
        done = hermes("doctor")

        assert (done.returncode, done.stderr) == (0, "")
        assert "No problems found." in done.stdout


def test_the_doctor_names_what_is_wrong(needy: CommandLine) -> None:
    (needy.home / "plugins" / "broken.py").write_text("1 / 0")
    approve_plugins(needy.home)
    needy.home.chmod(0o755)

    done = needy("doctor")
    report = json.loads(needy("doctor", "--json").stdout)

    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stdout
    assert "chmod 700" in done.stdout
    assert report["tools"]["needy"].startswith("missing Python package")
    assert len(report["problems"]) == 2


def test_a_plugin_turned_off_on_purpose_is_no_problem_of_the_doctor_s(needy: CommandLine) -> None:
    (needy.home / "plugins" / "broken.py").write_text("1 / 0")
    approve_plugins(needy.home)
    needy("config", "set", "plugins.disabled", "broken")

    assert needy("doctor").returncode == 0


def test_a_deliberate_override_is_a_remark_and_no_problem(needy: CommandLine) -> None:
    (needy.home / "plugins" / "better.py").write_text(
        "from hermes.tools import tool\n"
        "@tool(toolset='better', override=True, effect='read')\n"
        "def sleep() -> None:\n    'Sleep better.'\n"
    )
    approve_plugins(needy.home)

    done = needy("doctor")

    assert done.returncode == 0
    assert "Names that two wanted" in done.stdout
    assert "plugin better" in done.stdout
