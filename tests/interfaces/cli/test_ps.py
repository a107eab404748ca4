"""`hermes ps`: a person sees what runs, and ends it."""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest

from hermes.core.errors import HermesError
from hermes.environments.environment import SharedSettings
from hermes.environments.host.host_environment import LocalEnvironment
from hermes.interfaces.cli import environments
from hermes.interfaces.cli.main import CliApp


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalEnvironment]:
    made = LocalEnvironment(str(tmp_path), shared=SharedSettings(task="errand"))
    yield made
    made.cleanup()


def command(*words: str) -> tuple[int, str]:
    parser = ArgumentParser()
    environments.ps_arguments(parser)
    options = parser.parse_args(words)
    app = CliApp()
    app.stdout = StringIO()
    code = options.run(app, options)
    return code, app.stdout.getvalue()


def test_what_runs_is_shown_with_its_task(local: LocalEnvironment) -> None:
    started = local.start("echo begun; sleep 811")
    assert started.wait(10, until=lambda: "begun" in started.recent())

    code, shown = command("--json")

    mine = [one for one in json.loads(shown) if one["pid"] == started.pid]
    assert code == 0
    assert mine[0]["task"] == "errand"
    assert mine[0]["command"].endswith("sleep 811")
    assert "sleep 811" in command()[1]


def test_one_that_hides_its_origin_is_shown_too(local: LocalEnvironment) -> None:
    local.execute("(setsid env -i /bin/sleep 812 >/dev/null 2>&1 &)", timeout=10)

    assert "/bin/sleep 812" in command()[1]


def test_one_is_ended_by_its_number(local: LocalEnvironment) -> None:
    started = local.start("sleep 813")

    code, shown = command("kill", str(started.pid))

    assert code == 0
    assert "ended" in shown
    assert started.wait(10)
    assert started.killed_by == "a person, with hermes ps kill"


def test_one_is_ended_by_a_word_of_its_command(local: LocalEnvironment) -> None:
    started = local.start("trap '' TERM; sleep 814 & wait; sleep 814")

    assert command("kill", "814", "--json")[0] == 0
    assert started.pid


def test_one_is_shown_and_ended_by_the_name_that_the_process_tool_has_for_it(
    local: LocalEnvironment,
) -> None:
    started = local.start("sleep 815; echo", name="web server")
    assert started.wait(10, until=lambda: len(started.pids()) > 1)

    mine = [one for one in json.loads(command("--json")[1]) if one["called"] == "web server"]
    assert {one["pid"] for one in mine} == set(started.pids())
    assert command("kill", "web server")[0] == 0

    assert started.wait(10)
    assert started.killed_by == "a person, with hermes ps kill"
    assert not any(one["called"] for one in json.loads(command("--json")[1]))


def test_what_a_command_left_running_says_who_ended_it(local: LocalEnvironment) -> None:
    left = local.execute("sleep 816 & echo", timeout=10).background
    assert left is not None

    command("kill", left.name)

    assert left.wait(10)
    assert (left.state, left.killed_by) == ("killed", "a person, with hermes ps kill")


def test_notices_of_a_program_that_is_gone_are_taken_down(home: Path) -> None:
    script = (
        "import os, signal\n"
        "from hermes.environments.host.host_environment import LocalEnvironment\n"
        "LocalEnvironment('/').start('sleep 817', name='orphan'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", script], check=False)
    assert list((home / "run").glob("background.*"))

    command("--json")

    assert not list((home / "run").glob("background.*"))


def test_what_is_not_there_is_said_to_be_none(local: LocalEnvironment) -> None:
    with pytest.raises(HermesError, match="no process"):
        command("kill", "nosuchthing")


def test_an_empty_name_ends_nothing(local: LocalEnvironment) -> None:
    started = local.start("sleep 817")

    for nothing in ("", " "):
        with pytest.raises(HermesError, match="no process was named"):
            command("kill", nothing)

    assert started.state == "running"
