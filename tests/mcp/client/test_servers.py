"""Servers as tools: connected in the background, kept, lost, found again, and ended."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.mcp.client.conftest import ANYTHING, Desk, eventually, marked_processes, tool

from hermes.mcp.client.tool_list import fetch_listing


def test_a_servers_tools_are_called_by_either_name(desk: Desk) -> None:
    desk.open(box=desk.peer(tool("echo")))

    plain = desk.call("mcp-box:echo", word="hi")
    wired = desk.call("mcp-box__echo", word="hi")

    assert plain == wired == '{"tool": "echo", "arguments": {"word": "hi"}}'


def test_a_second_start_knows_the_tools_without_server_or_sdk(desk: Desk) -> None:
    desk.open(box=desk.peer(tool("echo"), tool("pid")))
    desk.close()

    code = (
        "import sys; from hermes.runtime.app import App; from hermes.mcp.client import attach; "
        "app = App(); attach(app, connect=False); "
        "print([n for n in app.registry.names() if n.startswith('mcp-')], 'mcp' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=desk.project
    )

    assert done.stdout.strip() == "['mcp-box:echo', 'mcp-box:pid'] False"


def test_a_slow_and_a_dead_server_do_not_keep_a_fast_one_waiting(desk: Desk) -> None:
    servers = desk.open(
        wait=False,
        fast=desk.peer(tool("echo")),
        slow=desk.peer(tool("later"), delay=2),
        dead={"command": "no-such-program"},
    )

    servers.wait(20, ["fast"])
    early = desk.app.registry.names() if desk.app else []
    missing = servers.wait(20)

    assert "mcp-fast:echo" in early
    assert "mcp-slow:later" not in early
    assert "mcp-slow:later" in (desk.app.registry.names() if desk.app else [])
    assert len(missing) == 1
    assert missing[0].startswith("dead: the program 'no-such-program' was not found; looked in")


def test_a_one_shot_wait_ends_at_its_limit_and_names_what_is_missing(desk: Desk) -> None:
    servers = desk.open(wait=False, slow=desk.peer(tool("later"), delay=30))

    missing = servers.wait(0.3)

    assert missing == ["slow: still connecting"]


def test_a_lazy_server_is_started_by_the_first_call_only(desk: Desk) -> None:
    definition = {**desk.peer(tool("pid")), "lazy": True}
    servers = desk.open(box=definition)
    servers.wait(20, ["box"])
    desk.close()
    servers = desk.open(box=definition)
    time.sleep(0.2)

    before = marked_processes(os.getpid())
    desk.call("mcp-box:pid")

    assert not before
    assert servers.states["box"].state == "connected"


def test_twenty_kills_leave_one_process_each_time(desk: Desk) -> None:
    servers = desk.open(box=desk.peer(tool("pid"), child=True, deaf=True))
    seen = set()

    for _ in range(20):
        pid = int(desk.call("mcp-box:pid"))
        seen.add(pid)
        leaders = {p.pid for p in marked_processes(os.getpid()) if "peer.py" in " ".join(_words(p))}
        assert leaders == {pid}
        os.kill(pid, signal.SIGKILL)
        eventually(lambda gone=pid: servers.states["box"].connection.pid != gone)  # type: ignore[misc, union-attr]

    assert len(seen) == 20


def test_forced_reconnects_end_the_old_process_first(desk: Desk) -> None:
    servers = desk.open(box=desk.peer(tool("pid"), deaf=True))
    link = servers.states["box"].connection
    assert link is not None

    for count in range(2, 5):
        servers.reconnect("box")
        eventually(lambda wanted=count: link.connects >= wanted and link.state == "connected")
        assert len(marked_processes(os.getpid())) == 1


def test_closing_while_connecting_leaves_nothing(desk: Desk) -> None:
    servers = desk.open(wait=False, box=desk.peer(mute=True, deaf=True, child=True))
    servers.connect(now=True)
    eventually(lambda: marked_processes(os.getpid()))

    servers.close()

    assert not marked_processes(os.getpid())


def test_closing_ends_a_connection_that_overhears_it(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = threading.Event()

    async def deaf(*words: Any) -> Any:
        listing = await fetch_listing(*words)
        begun.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return listing

    monkeypatch.setattr("hermes.mcp.client.connection.fetch_listing", deaf)
    servers = desk.open(wait=False, box=desk.peer(tool("echo")))
    servers.connect(now=True)
    assert begun.wait(30)

    servers.close()

    assert "hermes-mcp" not in [thread.name for thread in threading.enumerate()]


def test_servers_are_ended_when_hermes_is_killed(desk: Desk) -> None:
    desk.configure(box=desk.peer(tool("pid"), deaf=True, child=True))
    code = (
        "import time; from hermes.runtime.app import App; from hermes.mcp.client import attach; "
        "print(attach(App()).wait(20), flush=True); time.sleep(60)"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=desk.project)
    assert child.stdout is not None
    assert child.stdout.readline() == b"[]\n"
    running = marked_processes(child.pid)

    child.kill()
    child.wait()
    child.stdout.close()

    assert len(running) == 2
    eventually(lambda: not marked_processes(child.pid))


def test_a_server_that_hangs_is_given_up_on_with_the_reason(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes.mcp.client.connection.PAUSE_SECONDS", 0.05)
    servers = desk.open(
        wait=False, box={**desk.peer(mute=True), "connect_timeout": 0.3, "timeout": 1}
    )
    missing = servers.wait(15)

    assert missing == ["box: it did not answer within 0.3 s"]
    assert servers.states["box"].state == "failed"


def test_a_server_that_dies_of_the_newer_protocol_is_asked_by_the_older(desk: Desk) -> None:
    servers = desk.open(box=desk.peer(tool("echo"), dies_of_discover=True))

    assert servers.states["box"].state == "connected"


def test_a_death_during_a_call_is_told_with_exit_code_and_last_words(desk: Desk) -> None:
    desk.open(box=desk.peer(tool("die"), tool("echo")))

    outcome = desk.outcome("mcp-box:die")
    after = desk.call("mcp-box:echo")

    assert outcome.status == "error"
    for word in ("box", "die", "exit code 3", "about to die", " s"):
        assert word in (outcome.error or "")
    assert after.startswith('{"tool"')


def test_a_call_over_its_limit_is_cancelled_at_the_server_which_stays(desk: Desk) -> None:
    definition = {
        **desk.peer(tool("sleep"), tool("cancelled"), tool("stderr"), tool("pid")),
        "timeout": 0.3,
    }
    desk.open(box=definition)
    pid = desk.call("mcp-box:pid")
    desk.call("mcp-box:stderr", text="working on it")

    outcome = desk.outcome("mcp-box:sleep", seconds=20)

    assert outcome.status == "timeout"
    for word in ("box", "sleep", "0.3 s", "working on it"):
        assert word in (outcome.error or "")
    assert len(eval(desk.call("mcp-box:cancelled"))) == 1
    assert desk.call("mcp-box:pid") == pid


def test_a_call_that_the_person_stops_is_cancelled_at_the_server(desk: Desk) -> None:
    desk.open(box=desk.peer(tool("sleep"), tool("cancelled")))
    assert desk.app is not None
    from hermes.core import ToolCall

    context = desk.app.runtime.context()
    threading.Timer(0.3, lambda: context.cancellation.cancel("enough")).start()
    outcome = desk.app.runtime.call_sync(ToolCall("mcp-box:sleep", {"seconds": 20}), context)

    assert outcome.status == "cancelled"
    eventually(lambda: len(eval(desk.call("mcp-box:cancelled"))) == 1)


def test_what_is_no_message_on_stdout_goes_to_the_log(desk: Desk) -> None:
    servers = desk.open(box=desk.peer(tool("echo"), noise=True))

    assert desk.call("mcp-box:echo")
    link = servers.states["box"].connection
    assert link is not None
    assert any("Server listening" in line for line in link.log.lines)


def test_a_server_sees_its_own_variables_and_no_others(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANARY_TOKEN", "c4n4ry")
    monkeypatch.setenv("GIVEN", "a$b")
    definition = {
        **desk.peer(tool("env")),
        "env": {"MINE": "${GIVEN}", "OTHER": "${UNSET:-x}", "PATH": "/opt/x:$PATH"},
    }
    desk.open(box=definition)

    import json

    seen = json.loads(desk.call("mcp-box:env"))

    assert "CANARY_TOKEN" not in seen
    assert "GIVEN" not in seen
    assert (seen["MINE"], seen["OTHER"]) == ("a$b", "x")
    assert seen["PATH"] == f"/opt/x:{os.environ['PATH']}"


def test_a_variable_that_is_not_set_is_named(desk: Desk) -> None:
    servers = desk.open(box={**desk.peer(tool("env")), "env": {"A": "${NOT_SET_ANYWHERE}"}})

    assert servers.states["box"].reason == "the variable NOT_SET_ANYWHERE is not set"


def test_changes_are_taken_in_while_it_runs(desk: Desk, tmp_path: Path) -> None:
    import json

    script = tmp_path / "script.json"
    script.write_text(json.dumps({"tools": [tool("changed"), tool("old"), tool("sleep")]}))
    box = {"command": sys.executable, "args": [desk.peer()["args"][0], str(script)]}
    link = desk.open(box=box).states["box"].connection
    assert desk.app is not None
    assert link is not None
    slow: list[Any] = []
    worker = threading.Thread(target=lambda: slow.append(desk.call("mcp-box:sleep", seconds=1)))
    worker.start()
    eventually(lambda: link._pipes is not None and link._pipes.dispatcher._requests)

    script.write_text(json.dumps({"tools": [tool("changed"), tool("new")]}))
    desk.call("mcp-box:changed")

    eventually(lambda: desk.app and "mcp-box:old" not in desk.app.registry)
    worker.join()
    assert slow == ["slept"]
    # It is new since the server was approved.
    assert "mcp-box:new" in desk.app.registry
    assert "approve box" in (desk.outcome("mcp-box:new").error or "")


def test_three_hundred_tools_on_pages_come_whole(desk: Desk) -> None:
    desk.open(box=desk.peer(*(tool(f"t{n}") for n in range(300)), page=70))

    assert desk.app is not None
    assert sum(name.startswith("mcp-box:") for name in desk.app.registry.names()) == 300


def test_results_keep_whatever_came_with_them(desk: Desk) -> None:
    out = {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "additionalProperties": False,
    }
    desk.open(box=desk.peer(tool("answer", outputSchema=out), tool("fail")))

    def answer(**result: Any) -> Any:
        return desk.call("mcp-box:answer", result=result)

    extra = answer(content=[{"type": "text", "text": "x"}], structuredContent={"a": 1, "b": 2})
    failed = answer(
        content=[{"type": "text", "text": "bad"}], structuredContent={"why": 7}, isError=True
    )
    odd = answer(
        content=[{"type": "novel", "x": 1}, "plain", {"type": "text", "text": "y"}],
        structuredContent={"a": 1},
    )
    bare = answer(structuredContent=[1, 2])

    assert (extra["a"], extra["b"], extra["text"]) == (1, 2, "x")
    assert "output schema" in extra["notes"][0]
    assert failed == {"error": "bad", "data": {"why": 7}}
    assert odd["a"] == 1
    assert "novel" in odd["text"]
    assert "plain" in odd["text"]
    assert bare["result"] == [1, 2]
    assert "no such thing" in desk.call("mcp-box:fail")["error"]


def test_a_picture_that_cant_be_kept_costs_nothing_beside_it(desk: Desk) -> None:
    desk.open(box=desk.peer(tool("answer")))
    (desk.home / "cache" / "mcp" / "files").write_text("in the way")
    picture = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    result = {"content": [{"type": "text", "text": "see"}, picture]}

    said = desk.call("mcp-box:answer", result=result)

    assert said["result"] == "see"
    assert said["content"][0]["bytes"] == 2
    assert "not kept" in said["content"][0]["trouble"]


def test_large_results_are_cut_and_kept(desk: Desk) -> None:
    desk.open(box=desk.peer(tool("answer")))

    outcome = desk.outcome(
        "mcp-box:answer", result={"content": [{"type": "text", "text": "word " * 60_000}]}
    )

    assert len(outcome.content) < 60_000
    assert outcome.artifact


def test_progress_is_passed_on(desk: Desk) -> None:
    desk.open(box=desk.peer(tool("progress")))
    assert desk.app is not None
    seen: list[Any] = []
    desk.app.runtime.events.subscribe(
        lambda event: seen.append(event) if event.kind == "progress" else None
    )

    desk.call("mcp-box:progress")

    eventually(lambda: len(seen) == 3)
    assert {event.data["message"] for event in seen} == {"step 1", "step 2", "step 3"}


def test_a_tool_without_annotations_is_asked_about(desk: Desk) -> None:
    desk.open(box=desk.peer(tool("echo", reads=False), tool("look")))
    desk.answer = "no"

    silent = desk.outcome("mcp-box:echo")
    reading = desk.outcome("mcp-box:look")

    assert silent.status == "refused"
    assert reading.ok
    assert [request.tool for request in desk.asked] == ["mcp-box:echo"]


def test_a_path_or_command_among_the_arguments_is_judged_as_everywhere(desk: Desk) -> None:
    path = {"type": "object", "properties": {"path": {"type": "string"}}}
    command = {"type": "object", "properties": {"command": {"type": "string"}}}
    desk.open(
        box=desk.peer(tool("read", inputSchema=path), tool("run", reads=False, inputSchema=command))
    )

    reading = desk.outcome("mcp-box:read", path=os.path.expanduser("~/.ssh/id_ed25519"))
    running = desk.outcome("mcp-box:run", command='rm -rf "$HOME"')

    assert reading.status == "refused"
    assert running.status == "refused"
    assert not desk.asked
    assert desk.outcome("mcp-box:run", command="ls").ok
    assert [request.tool for request in desk.asked] == ["mcp-box:run"]


def test_a_definition_that_cant_be_used_costs_nobody_else(desk: Desk) -> None:
    servers = desk.open(
        good=desk.peer(tool("echo")),
        **{
            "both": {"command": "x", "url": "https://x"},
            "a b": {"command": "x"},
            "odd": 7,
            "typo": {"comand": "x"},
            "ftp": {"url": "ftp://x"},
            "off": {"command": "x", "enabled": False},
        },
    )

    states = {name: known.state for name, known in servers.states.items()}

    assert states.pop("good") == "connected"
    assert states.pop("off") == "disabled"
    assert set(states.values()) == {"unusable"}
    assert "comand" in servers.states["typo"].reason


def test_servers_close_in_any_order_from_any_thread(desk: Desk) -> None:
    made = [desk.open(**{f"s{n}": desk.peer(tool("echo"))}) for n in range(3)]

    workers = [threading.Thread(target=servers.close) for servers in (made[1], made[0], made[2])]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert not marked_processes(os.getpid())


def test_a_missing_sdk_is_said_with_what_to_install(desk: Desk) -> None:
    desk.configure(box=desk.peer(tool("echo")))
    code = (
        "import sys; sys.modules['mcp'] = None\n"
        "from hermes.runtime.app import App; from hermes.mcp.client import attach\n"
        "from hermes.core.errors import HermesError\n"
        "try: attach(App()).wait(10)\n"
        "except HermesError as error: print(error.hint)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=desk.project
    )

    assert done.stdout.strip() == "pip install 'hermes-tools[mcp]'"


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def test_a_schema_may_allow_anything(desk: Desk) -> None:
    desk.open(box=desk.peer(tool("echo", inputSchema=ANYTHING)))

    assert "deep" in desk.call("mcp-box:echo", a={"deep": [1]})


def test_late_tools_are_appended_to_what_a_model_is_sent(desk: Desk) -> None:
    from hermes.core.wire_names import wire_definitions
    from hermes.mcp.client import follow
    from hermes.runtime.tool_offer import Offer

    servers = desk.open(
        wait=False, fast=desk.peer(tool("echo")), slow=desk.peer(tool("later"), delay=1)
    )
    assert desk.app is not None
    app = desk.app
    servers.wait(20, ["fast"])
    offer = Offer(app.registry, app.registry.available(), defer_above=1000)
    before = wire_definitions(offer.definitions())

    app.runtime  # noqa: B018 - what tells of changes
    follow(app, offer, app.registry.entries)
    servers.wait(20)
    eventually(lambda: len(offer.definitions()) > len(before))

    after = wire_definitions(offer.definitions())
    assert after[: len(before)] == before
    assert [one["function"]["name"] for one in after[len(before) :]] == ["mcp-slow__later"]


def test_a_flood_of_messages_and_a_huge_answer_are_survived(desk: Desk) -> None:
    servers = desk.open(box=desk.peer(tool("flood"), tool("huge"), tool("echo")))

    flooded = desk.call("mcp-box:flood", count=5000)
    huge = desk.outcome("mcp-box:huge", size=8_000_000)

    assert flooded == "flooded"
    assert huge.ok
    assert huge.artifact
    assert desk.outcome("mcp-box:echo").ok
    link = servers.states["box"].connection
    assert link is not None
    assert len(link.log.lines) <= 40


def test_a_message_without_end_ends_the_connection_alone(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes.mcp.client.stdio_client.MAX_BYTES", 1 << 20)
    desk.open(box=desk.peer(tool("huge"), tool("echo")))

    lost = desk.outcome("mcp-box:huge", size=4_000_000)

    assert lost.status == "error"
    assert desk.outcome("mcp-box:echo").ok


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="files are counted on Linux")
def test_files_and_threads_are_let_go(desk: Desk) -> None:
    def round_() -> None:
        servers = desk.open(box=desk.peer(tool("echo")))
        desk.call("mcp-box:echo")
        servers.reconnect("box")
        desk.call("mcp-box:echo")
        desk.close()

    round_()
    before = len(os.listdir("/proc/self/fd")), threading.active_count()

    for _ in range(3):
        round_()

    after = len(os.listdir("/proc/self/fd")), threading.active_count()
    assert after <= (before[0] + 1, before[1] + 1)


def test_a_killed_guardian_costs_one_connection_and_leaves_no_process(desk: Desk) -> None:
    from hermes.environments.host.guardian_client import guardian

    servers = desk.open(box=desk.peer(tool("pid"), child=True))
    before = int(desk.call("mcp-box:pid"))

    os.kill(guardian.pid, signal.SIGKILL)

    eventually(lambda: not psutil.pid_exists(before))
    eventually(lambda: desk.outcome("mcp-box:pid").ok)
    leaders = [p for p in marked_processes(os.getpid()) if "peer.py" in " ".join(_words(p))]
    assert len(leaders) == 1
    assert servers.states["box"].state == "connected"
