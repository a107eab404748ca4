"""The terminal tool, through the gate and the whole pipeline."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.tools.conftest import processes

from hermes.core.entry import ToolCall, ToolOutcome
from hermes.core.registry import ToolRegistry
from hermes.runtime.app import App
from hermes.runtime.hooks import Event
from hermes.runtime.pipeline import Runtime


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runtime]:
    monkeypatch.chdir(tmp_path)
    app = App(ToolRegistry())
    yield app.runtime
    app.close()


def outcome(runtime: Runtime, command: str, **arguments: Any) -> ToolOutcome:
    return runtime.call_sync(ToolCall("terminal", {"command": command, **arguments}))


def run(runtime: Runtime, command: str, **arguments: Any) -> dict[str, Any]:
    found = outcome(runtime, command, **arguments)
    assert found.ok, found.content
    value: dict[str, Any] = found.value
    return value


def test_a_command_says_what_it_printed_and_how_it_ended(runtime: Runtime, tmp_path: Path) -> None:
    said = run(runtime, "echo hi")

    assert said["exit_code"] == 0
    assert said["stdout"] == "hi\n"
    assert said["cwd"] == str(tmp_path)
    assert "stderr" not in said


def test_a_failing_command_is_an_answer_and_not_an_error(runtime: Runtime) -> None:
    said = run(runtime, "echo no >&2; exit 7")

    assert (said["exit_code"], said["stderr"]) == (7, "no\n")


def test_what_an_exit_code_means_is_said(runtime: Runtime) -> None:
    assert run(runtime, "grep nothing /dev/null")["meaning"] == "no match"
    assert run(runtime, "nosuchcommand")["meaning"] == "command not found"


def test_folder_and_variables_stay_and_the_task_knows(runtime: Runtime) -> None:
    run(runtime, "mkdir sub; cd sub; export A=1")

    assert run(runtime, "echo $A; pwd")["stdout"].startswith("1\n")
    assert str(runtime.task("main").cwd).endswith("/sub")
    assert runtime.task("main").env["A"] == "1"


def test_a_new_task_starts_in_the_workspace(runtime: Runtime, tmp_path: Path) -> None:
    run(runtime, "cd /usr")

    other = runtime.call_sync(ToolCall("terminal", {"command": "pwd"}), runtime.context("other"))

    assert other.value["stdout"] == f"{tmp_path}\n"


def test_the_task_s_variables_reach_a_command(runtime: Runtime) -> None:
    runtime.task("main").env["FROM_TASK"] = "yes"

    assert run(runtime, "echo $FROM_TASK")["stdout"] == "yes\n"


def test_a_timeout_is_an_error_that_keeps_the_output(runtime: Runtime) -> None:
    found = outcome(runtime, "echo begun; sleep 60", timeout=0.4)

    assert not found.ok
    assert "timed out" in found.value["error"]
    assert found.value["data"]["stdout"] == "begun\n"


def test_a_cancelled_command_tells_what_it_had_done(runtime: Runtime) -> None:
    run(runtime, "true")
    context = runtime.context()
    threading.Timer(0.4, context.cancellation.cancel).start()

    found = runtime.call_sync(ToolCall("terminal", {"command": "echo begun; sleep 60"}), context)

    assert "cancelled" in found.value["error"]
    assert found.value["data"]["stdout"] == "begun\n"
    assert run(runtime, "echo on")["stdout"] == "on\n"


def test_what_is_left_running_is_named(runtime: Runtime) -> None:
    said = run(runtime, "sleep 500 & echo ok")

    assert said["stdout"] == "ok\n"
    assert len(said["background_pids"]) == 1
    assert said["process"] in " ".join(said["notes"])


def test_everything_ends_with_the_task(runtime: Runtime) -> None:
    assert run(runtime, "sleep 501.25 &")["background_pids"]
    before = processes("sleep 501.25")
    runtime.close_task("main")

    assert before
    assert not processes("sleep 501.25")


def test_a_flood_is_cut_and_the_rest_can_be_read(runtime: Runtime) -> None:
    said = run(runtime, "seq 1 50000")
    page = runtime.call_sync(
        ToolCall("read_artifact", {"handle": said["artifact"], "pattern": "^25000$"})
    )

    assert len(said["stdout"]) < 31_000
    assert said["stdout"].startswith("1\n2\n")
    assert said["stdout"].endswith("49999\n50000\n")
    assert "25000" in page.content


def test_a_great_flood_is_kept_in_a_file_too(runtime: Runtime, home: Path) -> None:
    said = run(runtime, "seq 1 500000; printf 'caf\\351 end\\n'")
    page = runtime.call_sync(
        ToolCall("read_artifact", {"handle": said["artifact"], "pattern": "^250000$"})
    )

    assert said["output_bytes"] > 3_000_000
    assert "250000" in page.content
    assert [path.name for path in (home / "artifacts").iterdir() if path.suffix == ".new"] == []


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("rm -rf ~", {}),
        ("bash", {"stdin": "rm -rf ~\n"}),
        ("cat | sh", {"stdin": "rm -rf ~\n"}),
        ('rm -rf "$TARGET"', {"env": {"TARGET": os.path.expanduser("~")}}),
        ("rm -rf ~", {"background": True}),
        ("rm -rf ~", {"pty": True}),
        ("rm -rf *", {"workdir": "/"}),
    ],
)
def test_danger_is_seen_however_it_is_brought(
    runtime: Runtime, command: str, arguments: dict[str, Any]
) -> None:
    assert outcome(runtime, command, **arguments).status == "refused"


def test_danger_is_seen_through_what_an_earlier_command_left(runtime: Runtime) -> None:
    run(runtime, "export WHERE=~")
    assert outcome(runtime, 'rm -rf "$WHERE"').status == "refused"

    run(runtime, "cd /")
    assert outcome(runtime, "rm -rf *").status == "refused"


@pytest.mark.parametrize("command", ["read x", "python3", "read -p 'Name? ' x"])
def test_a_command_that_wanted_input_says_so(runtime: Runtime, command: str) -> None:
    assert any("needs input" in note for note in run(runtime, command)["notes"])


def test_a_question_in_a_terminal_is_answered_with_process(runtime: Runtime) -> None:
    found = outcome(runtime, "read -p 'Name? ' x; echo hello $x", pty=True)
    name = found.value["data"]["process"]

    answer = runtime.call_sync(
        ToolCall("process", {"action": "submit", "name": name, "data": "joe"})
    )

    assert found.value["error"] == "needs input: Name?"
    assert "hello joe" in answer.value["output"]


def test_output_is_reported_while_the_command_runs(runtime: Runtime) -> None:
    seen: list[Event] = []
    runtime.events.subscribe(seen.append)

    run(runtime, "echo one; sleep 0.3; echo two")

    assert "".join(e.data["text"] for e in seen if e.kind == "output") == "one\ntwo\n"


def test_the_order_of_the_streams_is_told(runtime: Runtime) -> None:
    # Each line waits until the one before it was read.
    script = """
import fcntl, os, termios, time
for number in range(6):
    stream = 1 + number % 2
    os.write(stream, b"line\\n")
    while any(fcntl.ioctl(stream, termios.FIONREAD, b"\\0\\0\\0\\0")):
        time.sleep(0.001)
"""

    said = run(runtime, "python3 -", stdin=script)

    assert said["order"] == "out 1, err 1, out 1, err 1, out 1, err 1"


def test_an_order_that_nobody_knows_is_not_told(runtime: Runtime) -> None:
    turns = "echo a; echo b >&2; echo c; echo d >&2; echo e"

    seen = {run(runtime, turns).get("order") for _ in range(20)}

    assert seen <= {None, "out 1, err 1, out 1, err 1, out 1"}


@pytest.mark.parametrize(
    "command",
    [
        'touch made; echo "unfinished',
        "touch made; if true; then",
        "touch made\necho )",
        "touch made; echo $(date",
        "touch made; for x in a b; do echo $x",
        "touch made; echo ${x",
        "touch made; case a in a) echo;",
        "touch made; echo 'it's'",
    ],
)
def test_a_command_that_no_shell_can_read_does_nothing_and_says_what_is_wrong(
    runtime: Runtime, tmp_path: Path, command: str
) -> None:
    found = outcome(runtime, command)

    assert not found.ok
    assert found.status == "error"
    assert "the shell can't read this" in found.content
    assert "line " in found.content
    assert not (tmp_path / "made").exists()


def test_a_command_that_a_secret_would_complete_is_judged_as_it_stands(
    runtime: Runtime, tmp_path: Path
) -> None:
    found = outcome(runtime, "rm -rf made\necho '[secret:github-token:k3v9qj2mxa]")

    assert not found.ok
    assert found.status == "refused"


@pytest.mark.parametrize(
    "command",
    [
        "shopt -s extglob\nls !(x) >/dev/null; echo ok",
        "echo ok # it's fine",
        "cat <<'E' >/dev/null\nit's (\nE\necho ok",
    ],
)
def test_what_a_shell_can_read_is_left_to_it(runtime: Runtime, command: str) -> None:
    assert run(runtime, command)["stdout"] == "ok\n"


@pytest.mark.parametrize("command", ["", "  \n"])
def test_no_command_is_an_error(runtime: Runtime, command: str) -> None:
    assert outcome(runtime, command).status == "error"


def test_a_secret_that_a_command_prints_is_masked(runtime: Runtime) -> None:
    said = run(runtime, "echo AKIA''IOSFODNN7EXAMPLF ghp_''0123456789abcdefghijABCDEFGHIJ012345")

    assert "ghp_0123456789" not in said["stdout"]
