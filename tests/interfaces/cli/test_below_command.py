"""Below a command of Hermes itself the program changes nothing and approves nothing."""

from __future__ import annotations

import shutil
import sys
from argparse import ArgumentParser, _SubParsersAction
from pathlib import Path

import pytest
from tests.conftest import HERMES, CommandLine

from hermes.environments.environment import SharedSettings
from hermes.environments.host.host_environment import LocalEnvironment
from hermes.interfaces.cli.commands import ACTIONS, COMMANDS, REFUSED, add_arguments

CLEAN = "env -i PATH=$PATH HOME=$HOME HERMES_HOME=$HERMES_HOME"
ROADS = {
    "by name": "{hermes} {words}",
    "module": "{python} -m hermes {words}",
    "no variables": f"{CLEAN} {{hermes}} {{words}}",
    "exec without variables": f"exec {CLEAN} {{hermes}} {{words}}",
    "link": "ln -sf {hermes} other && ./other {words}",
    "copy": "cp {hermes} copy && ./copy {words}",
    "Makefile": "printf 'all:\\n\\t{hermes} {words}\\n' > Makefile && make -s",
    "shell function": f"hidden() {{{{ {CLEAN} {{hermes}} {{words}}; }}}}; hidden",
    "python": (
        '{python} -c \'import os, subprocess, sys; sys.exit(subprocess.call("{hermes} {words}", '
        'shell=True, env=dict(HERMES_HOME=os.environ["HERMES_HOME"])))\''
    ),
    "orphan": (
        f"(setsid {CLEAN} sh -c '{{hermes}} {{words}}; echo $? > code' &) ; "
        "while [ ! -s code ]; do sleep 0.05; done; exit $(cat code)"
    ),
}
CHANGES = (
    "config set tools.parallel 3", "config edit", "trust .", "trust revoke .",
    "tool register --config x.yaml", "tool unregister x", "sessions delete 1", "sessions prune",
    "sessions export 1 -o out", "checkpoints prune", "undo --force", "undo", "call sleep seconds=0",
    "call --yes sleep seconds=0", "mcp add x true", "mcp approve x -y", "mcp serve",
    "memory approve 1", "memory restore 1", "plugins approve", "approvals revoke 1", "ps kill 1",
    "run hi", "setup --yes", "model use x", "environments prune",
)  # fmt: skip
READS = (
    "--version", "--help", "config", "config get tools.parallel", "tools list", "trust list",
    "plugins", "sessions list", "undo --dry-run", "approvals list", "permissions list",
    "completion bash", "config set --help",
)  # fmt: skip


@pytest.fixture
def local(hermes: CommandLine, home: Path, monkeypatch: pytest.MonkeyPatch) -> LocalEnvironment:
    home.mkdir(mode=0o700, parents=True)
    (home / "config.yaml").write_text("tools: {parallel: 7}\n")
    environment = LocalEnvironment(
        str(hermes.folder), shared=SharedSettings(pass_env=["HERMES_HOME"])
    )
    yield environment
    environment.cleanup()


def _line(road: str, words: str) -> str:
    return ROADS[road].format(hermes=HERMES, python=sys.executable, words=words)


@pytest.mark.parametrize("road", ROADS)
def test_no_road_leads_to_a_change(road: str, local: LocalEnvironment, home: Path) -> None:
    if road == "Makefile" and shutil.which("make") is None:
        pytest.fail("make is needed")

    done = local.execute(_line(road, "config set tools.parallel 3"))

    expected = 2 if road == "Makefile" else REFUSED
    assert done.exit_code == expected, done.output.merged
    assert "a command of Hermes itself started it" in done.output.merged or road == "orphan"
    assert (home / "config.yaml").read_text() == "tools: {parallel: 7}\n"


def test_every_change_is_refused(local: LocalEnvironment, home: Path) -> None:
    before = sorted(path.name for path in home.iterdir())
    script = "\n".join(f"{HERMES} {words} </dev/null >/dev/null 2>&1; echo $?" for words in CHANGES)

    done = local.execute(script)

    codes = dict(zip(CHANGES, done.output.merged.split(), strict=True))
    assert codes == dict.fromkeys(CHANGES, str(REFUSED))
    assert sorted(path.name for path in home.iterdir()) == before


def test_reading_commands_work(local: LocalEnvironment) -> None:
    script = "\n".join(f"{HERMES} {words} </dev/null >/dev/null 2>&1; echo $?" for words in READS)

    done = local.execute(script)

    codes = dict(zip(READS, done.output.merged.split(), strict=True))
    # Without any change there is nothing to undo.
    assert codes == {**dict.fromkeys(READS, "0"), "undo --dry-run": "1"}


def test_in_a_terminal_of_one_s_own_they_work(hermes: CommandLine) -> None:
    assert hermes("config", "set", "tools.parallel", "3").returncode == 0


def test_every_action_of_every_command_is_classified() -> None:
    assert set(ACTIONS) == set(COMMANDS)
    for name in COMMANDS:
        parser = ArgumentParser()
        add_arguments(name, parser)
        reads, changes = (words.split() for words in ACTIONS[name])
        actions = [
            action
            for group in parser._actions
            if isinstance(group, _SubParsersAction)
            for action in group.choices
        ]

        if actions:
            assert sorted(actions) == sorted([*reads, *changes]), name
        else:
            assert "*" in (*reads, *changes), name
