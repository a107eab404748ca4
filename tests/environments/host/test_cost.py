"""What a quiet command costs, in things that can be counted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.environments.host.host_environment import LocalEnvironment
from hermes.environments.host.process import Poller

_COUNT = """
import json, os, sys
from hermes.core import ToolCall
from hermes.runtime.app import App

app = App()
context = app.runtime.context()

def call(number):
    outcome = app.runtime.call_sync(ToolCall("terminal", {"command": "true"}, id=number), context)
    assert json.loads(outcome.content)["exit_code"] == 0

for number in "abc":
    call(number)
seen = []
heard = ("open", "import", "subprocess.Popen", "os.posix_spawn", "os.fork", "os.system", "os.exec")

def hear(event, arguments):
    # Folders are opened to look for changed git settings without following links.
    if event in heard and not (event == "open" and arguments[2] & os.O_DIRECTORY):
        seen.append(event)

sys.addaudithook(hear)
call("d")
print(json.dumps(seen))
"""


def test_through_the_whole_pipeline_no_file_is_opened_and_nothing_imported(tmp_path: Path) -> None:
    env = {"HERMES_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    said = subprocess.run(
        [sys.executable, "-c", _COUNT], cwd=tmp_path, env=env, capture_output=True, text=True
    )

    assert said.returncode == 0, said.stderr
    assert json.loads(said.stdout.splitlines()[-1]) == []


def test_hermes_is_woken_once_and_not_by_the_end_of_each_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = LocalEnvironment(str(tmp_path))
    local.execute("true")
    waits = []
    wait = Poller.wait

    def counted(self: Poller, *arguments: object) -> list[int]:
        waits.append(arguments)
        return wait(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Poller, "wait", counted)
    quiet = local.execute("true")
    calls = len(waits)
    loud = local.execute("echo out; echo err >&2")
    local.cleanup()

    assert (quiet.exit_code, calls) == (0, 1)
    assert (loud.stdout, loud.stderr) == ("out\n", "err\n")
