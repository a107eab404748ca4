"""The process tool: start, watch, answer, end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.tools.conftest import processes

from hermes.core.entry import ToolCall, ToolOutcome
from hermes.core.registry import ToolRegistry
from hermes.runtime.app import App
from hermes.runtime.pipeline import Runtime

SERVER = (
    "import socket,time; s=socket.socket(); s.bind(('127.0.0.1',0)); s.listen(); "
    "print('ready', s.getsockname()[1], flush=True); time.sleep(600)"
)


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runtime]:
    monkeypatch.chdir(tmp_path)
    app = App(ToolRegistry())
    app.approver = lambda request: True
    yield app.runtime
    app.close()


def outcome(runtime: Runtime, action: str, **arguments: Any) -> ToolOutcome:
    return runtime.call_sync(ToolCall("process", {"action": action, **arguments}))


def ask(runtime: Runtime, action: str, **arguments: Any) -> dict[str, Any]:
    found = outcome(runtime, action, **arguments)
    assert found.ok, found.content
    value: dict[str, Any] = found.value
    return value


def test_nothing_is_listed_before_anything_ran(runtime: Runtime) -> None:
    assert ask(runtime, "list") == {"processes": []}


def test_a_started_command_is_listed_watched_and_ended(runtime: Runtime) -> None:
    ask(runtime, "start", name="web", command="echo up; sleep 600")

    assert [one["name"] for one in ask(runtime, "list")["processes"]] == ["web"]
    status = ask(runtime, "status", name="web")
    assert (status["state"], status["last_line"]) == ("running", "up")
    ended = ask(runtime, "kill", name="web")
    assert (ended["state"], ended["killed_by"]) == ("killed", "process kill")


def test_what_terminal_started_and_left_is_listed_too(runtime: Runtime) -> None:
    for arguments in (
        {"command": "sleep 600", "background": True},
        {"command": "sleep 600 &"},
    ):
        assert runtime.call_sync(ToolCall("terminal", arguments)).ok

    listed = ask(runtime, "list")["processes"]

    assert [one.get("left_behind", False) for one in listed] == [False, True]
    assert ask(runtime, "status", name=str(listed[1]["pid"]))["name"] == listed[1]["name"]


def test_a_name_is_taken_only_while_its_process_runs(runtime: Runtime) -> None:
    ask(runtime, "start", name="one", command="sleep 600")
    assert outcome(runtime, "start", name="one", command="true").status == "error"

    ask(runtime, "kill", name="one")
    ask(runtime, "start", name="one", command="echo again")

    assert ask(runtime, "wait", name="one", timeout=10)["state"] == "exited"
    assert "again" in ask(runtime, "log", name="one")["text"]


def test_waiting_ends_when_a_pattern_shows(runtime: Runtime) -> None:
    ask(runtime, "start", name="slow", command="sleep 0.5; echo listening on 80; sleep 600")

    waited = ask(runtime, "wait", name="slow", pattern="listening on [0-9]+", timeout=20)

    assert waited["matched"] == "listening on 80"
    assert waited["state"] == "running"


def test_what_python_prints_is_seen_while_it_runs(runtime: Runtime) -> None:
    ask(runtime, "start", name="one", command="python3 -c \"print('up', 1); input()\"")

    said = ask(runtime, "wait", name="one", pattern="^up", timeout=30)

    assert said["matched"] == "up 1"
    assert said["state"] == "running"


def test_waiting_in_vain_says_so(runtime: Runtime) -> None:
    ask(runtime, "start", name="quick", command="echo bye")

    assert "did not show" in ask(runtime, "wait", name="quick", pattern="never", timeout=10)["note"]
    ask(runtime, "start", name="long", command="sleep 600")
    assert ask(runtime, "wait", name="long", timeout=0.2)["note"] == "it still runs"


def test_the_exit_code_is_kept(runtime: Runtime) -> None:
    ask(runtime, "start", name="x", command="exit 9")

    assert ask(runtime, "wait", name="x", timeout=10)["exit_code"] == 9


def test_a_log_is_paged_searched_and_cut_to_its_end(runtime: Runtime) -> None:
    ask(runtime, "start", name="many", command="seq 1 100000")
    ask(runtime, "wait", name="many", timeout=20)

    first = ask(runtime, "log", name="many", offset=0)
    second = ask(runtime, "log", name="many", offset=first["next_offset"])
    assert first["text"].startswith("1\n2\n")
    assert int(second["text"].split("\n")[1]) > 3000
    assert ask(runtime, "log", name="many", tail=2)["text"] == "99999\n100000"
    assert ask(runtime, "log", name="many", grep="^7777$")["lines"] == ["7777"]
    nothing = ask(runtime, "log", name="many", grep="zebra")
    assert nothing["lines"] == []
    assert nothing["scanned_chars"] > 500_000


def test_a_pattern_that_is_none_is_refused(runtime: Runtime) -> None:
    ask(runtime, "start", name="x", command="true")

    assert "regular expression" in outcome(runtime, "log", name="x", grep="(").value["error"]


@pytest.mark.parametrize("arguments", [{"grep": "(a+)+$"}, {"pattern": "(a+)+$"}])
def test_a_pattern_that_would_take_for_ever_is_stopped(
    runtime: Runtime, arguments: dict[str, str]
) -> None:
    ask(runtime, "start", name="a", command=f"echo {'a' * 60}b; sleep 600")
    ask(runtime, "wait", name="a", pattern="b", timeout=20)

    action = "log" if "grep" in arguments else "wait"
    found = outcome(runtime, action, name="a", **arguments)

    assert "was stopped after" in found.value["error"]


def test_a_pattern_that_repeats_is_found(runtime: Runtime) -> None:
    ask(runtime, "start", name="a", command="for i in 1 22 333; do echo n=$i; done; sleep 600")

    matched = ask(runtime, "wait", name="a", pattern=r"n=\d{3}$", timeout=20)["matched"]
    lines = ask(runtime, "log", name="a", grep=r"=(1|2+)$")["lines"]

    assert (matched, lines) == ("n=333", ["n=1", "n=22"])


def test_what_is_typed_is_read(runtime: Runtime) -> None:
    ask(runtime, "start", name="cat", command="cat")

    assert ask(runtime, "submit", name="cat", data="hello")["output"] == "hello\n"
    ask(runtime, "write", name="cat", data="no newline")
    ask(runtime, "close", name="cat")
    assert ask(runtime, "wait", name="cat", timeout=10)["exit_code"] == 0
    assert ask(runtime, "log", name="cat")["text"] == "hello\nno newline"


def test_a_terminal_program_can_be_talked_to(runtime: Runtime) -> None:
    ask(runtime, "start", name="py", command="python3 -q", pty=True)
    ask(runtime, "wait", name="py", pattern=">>>", timeout=20)

    ask(runtime, "submit", name="py", data="print(6 * 7)")

    assert ask(runtime, "wait", name="py", pattern="^42", timeout=20)["matched"].startswith("42")


def test_one_that_waits_for_input_is_known(runtime: Runtime) -> None:
    ask(runtime, "start", name="ask", command="printf 'Go on? [y/n] '; read x")

    assert ask(runtime, "status", name="ask")["needs_input"] == "Go on? [y/n]"


@pytest.mark.parametrize(
    ("command", "pty"),
    [
        ("stty -echo; printf 'Answer: '; read x; stty echo; echo \"got ${#x}\"", True),
        ("printf 'Password for joe: '; read x; echo \"got ${#x}\"", False),
    ],
)
def test_what_is_typed_unseen_is_in_no_log(
    runtime: Runtime, home: Path, command: str, pty: bool
) -> None:
    ask(runtime, "start", name="ask", command=command, pty=pty)
    ask(runtime, "wait", name="ask", pattern=": $", timeout=20)

    ask(runtime, "submit", name="ask", data="hunter2-secret")

    said = ask(runtime, "wait", name="ask", pattern="got 14", timeout=20)
    assert "hunter2" not in str(said)
    assert runtime.audit is not None
    assert runtime.tracer is not None
    runtime.audit.flush()
    runtime.tracer.flush()
    kept = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert b"submit" in kept
    assert b"hunter2" not in kept


def test_only_the_hidden_line_is_a_secret_of_what_is_typed_at_once(runtime: Runtime) -> None:
    question = "read -s -p 'Password: ' p; echo; read v; echo got $p $v; sleep 600"
    ask(runtime, "start", name="ask", command=question, pty=True)
    ask(runtime, "wait", name="ask", pattern="Password: ", timeout=30)

    ask(runtime, "write", name="ask", data="s3cr3t-multi\nyes-indeed\n")
    ask(runtime, "wait", name="ask", pattern="got ", timeout=30)
    shown = str(ask(runtime, "log", name="ask"))

    assert "s3cr3t-multi" not in shown
    assert "yes-indeed" in shown


def test_what_is_typed_for_all_to_see_is_no_secret(runtime: Runtime) -> None:
    ask(runtime, "start", name="cat", command="cat", pty=True)

    ask(runtime, "submit", name="cat", data="hunter2-plain")

    said = ask(runtime, "wait", name="cat", pattern="^hunter2-plain$", timeout=20)
    assert said["matched"] == "hunter2-plain"


def test_dangerous_text_is_not_typed(runtime: Runtime) -> None:
    ask(runtime, "start", name="sh", command="bash")

    assert outcome(runtime, "submit", name="sh", data="rm -rf ~").status == "refused"


def test_a_signal_reaches_the_process(runtime: Runtime) -> None:
    ask(
        runtime,
        "start",
        name="x",
        command="trap 'echo got it; exit 5' USR1; while :; do sleep 0.05; done",
    )
    ask(runtime, "signal", name="x", signal="CONT")

    ask(runtime, "signal", name="x", signal="USR1")

    assert outcome(runtime, "signal", name="x", signal="NOPE").status == "error"
    assert ask(runtime, "wait", name="x", timeout=10)["state"] != "running"


def test_killing_ends_the_whole_tree(runtime: Runtime) -> None:
    ask(runtime, "start", name="tree", command="sleep 700 & (setsid sleep 701 &) ; sleep 702")
    pids = ask(runtime, "status", name="tree")["pids"]
    before = processes("sleep 70")

    ask(runtime, "kill", name="tree")

    assert len(pids) >= 3
    assert len(before) >= 3
    assert not [pid for pid in before if Path(f"/proc/{pid}").exists()]


def test_ports_are_found(runtime: Runtime) -> None:
    ask(runtime, "start", name="server", command=f'python3 -c "{SERVER}"')
    port = ask(runtime, "wait", name="server", pattern="ready", timeout=20)["matched"].split()[1]

    assert ask(runtime, "ports") == {"ports": {"server": [f"127.0.0.1:{port}"]}}
    assert ask(runtime, "status", name="server")["ports"] == [f"127.0.0.1:{port}"]


@pytest.mark.parametrize("action", ["status", "log", "wait", "write", "kill", "detach", "signal"])
def test_a_process_that_is_not_there_is_said_to_be_none(runtime: Runtime, action: str) -> None:
    found = outcome(runtime, action, name="nobody", data="x")

    assert "nobody" in found.value["error"]
    assert outcome(runtime, action, data="x").status == "error"


def test_one_that_fails_is_started_again_when_asked_to(runtime: Runtime) -> None:
    command = "echo try >> tries; [ $(wc -l < tries) -ge 2 ] && exec sleep 600"
    first = ask(runtime, "start", name="web", command=command, restart="on-failure")

    for _ in range(100):
        status = ask(runtime, "status", name="web")
        if status["state"] == "running" and status["restarts"]:
            break
        time.sleep(0.1)
    ended = ask(runtime, "kill", name="web")

    assert "restart" not in first
    assert (status["restart"], status["restarts"]) == ("on failure", 1)
    assert (ended["state"], ended["restart"]) == ("killed", "switched off")
    assert [one["state"] for one in ask(runtime, "list")["processes"]] == ["exited", "killed"]


def test_starting_needs_a_command(runtime: Runtime) -> None:
    assert outcome(runtime, "start", name="x").status == "error"


def test_one_that_was_ended_from_outside_says_who_did_it(runtime: Runtime, home: Path) -> None:
    ask(runtime, "start", name="victim", command="sleep 600.5")
    from hermes.environments.host.process_listing import list_processes, terminate

    assert terminate([one for one in list_processes() if one.pid in processes("sleep 600.5")]) == []

    ended = ask(runtime, "wait", name="victim", timeout=10)
    assert ended["state"] == "killed"
    assert "hermes ps" in ended["killed_by"]


def test_pieces_of_a_line_are_judged_as_the_line(tmp_path: Path) -> None:
    from hermes.runtime.app import App

    (tmp_path / "sub").mkdir()
    app = App(project=str(tmp_path))
    context = app.runtime.context("pieces")
    context.task.workspace = str(tmp_path)

    def call(**arguments: object) -> str:
        return app.runtime.call_sync(ToolCall("process", arguments), context).status

    assert call(action="start", command="bash", name="b") == "ok"
    assert call(action="write", name="b", data="echo a; rm -r") == "ok"
    assert call(action="write", name="b", data="f ./sub\n") == "refused"
    assert call(action="start", command="python3 -i", name="p") == "ok"
    assert call(action="submit", name="p", data="print(1)") == "ok"
    assert call(action="submit", name="p", data="import shutil; shutil.rmtree('sub')") == "refused"
    app.close()
    assert (tmp_path / "sub").is_dir()
