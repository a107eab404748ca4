"""Every file in `examples/` works as its first lines say."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hermes.safety.permissions import load_policy

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_embedding_carries_out_what_is_right_and_says_what_is_not() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / "embed.py"], capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line[0] in "1234"]
    assert [line.split(":")[0] for line in lines] == ["1 ok", "2 ok", "3 refused", "4 error"]
    assert "arguments incomplete" in lines[3]


def test_the_plugin_brings_its_tool_and_its_command(hermes: Any, home: Path) -> None:
    (home / "plugins").mkdir(mode=0o700, parents=True)
    shutil.copy(EXAMPLES / "plugins" / "dice.py", home / "plugins")

    refused = hermes("call", "roll", "sides=20")
    approved = hermes("plugins", "approve")
    rolled = hermes("call", "roll", "sides=20")
    lucky = hermes("lucky")
    listed = hermes("plugins", "list", "--json")

    assert "`hermes plugins approve dice`" in refused.stderr
    assert str(home / "plugins" / "dice.py") in approved.stdout
    assert 1 <= json.loads(rolled.stdout)["rolled"] <= 20
    assert lucky.stdout == "7\n"
    assert json.loads(listed.stdout)[0]["visible"] == ["roll"]


def test_the_yaml_tools_register_and_run(hermes: Any) -> None:
    registered = hermes("tool", "register", "--config", EXAMPLES / "tools.yaml")
    subprocess.run(["git", "init", "-q", hermes.folder], check=True)
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.example"]
    commit = ["commit", "-q", "--allow-empty", "-m", "First"]
    subprocess.run(["git", "-C", hermes.folder, *identity, *commit], check=True)

    log = hermes("call", "git_log", "count=1")

    assert registered.returncode == 0, registered.stderr
    assert log.returncode == 0, log.stderr
    assert json.loads(log.stdout)["stdout"].endswith(" First\n")


def test_the_permissions_are_understood(hermes: Any, home: Path) -> None:
    home.mkdir(mode=0o700, parents=True)
    shutil.copy(EXAMPLES / "hermes_permissions.yaml", home)

    policy = load_policy(str(home / "hermes_permissions.yaml"))
    allowed = hermes("approvals", "test", "pytest -q")
    denied = hermes("approvals", "test", "npm test")

    assert policy is not None
    assert policy.default == "reviewer"
    assert allowed.returncode == 0
    assert denied.returncode == 3
