"""Children that work beside their parent: seen, steered, stopped, waited for, resumed."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.agent.delegation.script import do, ended, goal_of, hand, report, tool_results, until
from tests.tools.conftest import processes

from hermes.core import ToolContext, ToolRegistry, tool
from hermes.core.errors import ToolError
from hermes.runtime.app import App
from hermes.stores.sessions import Sessions
from hermes.testing import Call, Turn


def test_a_handle_comes_at_once_and_the_report_when_asked(work: Path, ask: Any) -> None:
    go = threading.Event()
    agent, model = ask(
        hand("count", background=True),
        do("wait", "root/1"),
        "three",
        children={"count": [lambda _: (go.wait(10), "3 files")[1]]},
    )
    agent.app.runtime.events.subscribe(
        lambda event: go.set() if event.kind == "finished" else None  # the first call is over
    )

    assert agent.run("go") == "three"

    first, second = tool_results(model)
    assert first["handle"] == "root/1"
    assert first["status"] in ("waiting", "running")
    assert (second["status"], second["text"]) == ("completed", "3 files")


def test_the_parent_hears_at_its_next_step_that_one_has_ended(work: Path, ask: Any) -> None:
    def look(_: Any) -> Turn:
        ended(agent, "root/1")
        return Turn(calls=[Call("terminal", {"command": "true"})])

    agent, model = ask(
        hand("count", background=True), look, "I know", children={"count": ["3 files"]}
    )

    agent.run("go")

    roots = [request for request in model.requests if goal_of(request) is None]
    said = [m["content"] for m in roots[-1]["messages"] if m["role"] == "user"]
    assert "root/1 has ended: completed" in said[-1]
    assert "not a request" in said[-1]
    # What was sent before is the beginning of what is sent now.
    before = roots[-2]["messages"]
    assert roots[-1]["messages"][: len(before)] == before


def test_one_that_ends_between_two_turns_is_told_of_in_the_next(work: Path, ask: Any) -> None:
    go = threading.Event()
    agent, model = ask(
        hand("count", background=True),
        "started",
        "so it has",
        children={"count": [lambda _: (go.wait(10), "3")[1]]},
    )
    assert agent.run("go") == "started"
    assert [child.state for child in agent.children()] == ["running"]

    go.set()
    ended(agent, "root/1")
    agent.run("and?")

    assert "root/1 has ended" in json.dumps(model.requests[-1]["messages"][-1])


def test_status_shows_how_far_it_is(work: Path, ask: Any) -> None:
    here, go = threading.Event(), threading.Event()

    def wait(_: Any) -> str:
        here.set()
        go.wait(10)
        return "done"

    agent, model = ask(
        hand("work", background=True),
        lambda _: (here.wait(10), do("status", "1"))[1],
        do("list"),
        lambda _: (go.set(), "ok")[1],
        children={
            "work": [Turn("Looking.", calls=[Call("terminal", {"command": "echo 1"})]), wait]
        },
    )

    agent.run("go")

    _, status, listed = tool_results(model)
    assert status["handle"] == "root/1"
    assert status["state"] == "running"
    assert (status["last_tool"], status["last_line"]) == ("terminal", "Looking.")
    assert status["tokens"] > 0
    assert status["steps"] == 2
    assert [one["goal"] for one in listed["agents"]] == ["work"]


def test_one_that_is_cancelled_says_how_far_it_got(work: Path, ask: Any) -> None:
    here = threading.Event()
    agent, model = ask(
        hand("work", background=True),
        lambda _: (here.wait(10), do("cancel", "root/1"))[1],
        "stopped",
        children={
            "work": [
                Turn("I begin.", calls=[Call("write_file", {"path": "a.txt", "content": "1"})]),
                lambda _: (here.set(), Turn("never", stall_after=0))[1],
            ]
        },
    )

    agent.run("go")

    said = report(model)
    assert (said["status"], said["text"]) == ("cancelled", "I begin.")
    assert said["files_changed"] == [str(work / "a.txt")]
    assert not any(child.running for child in agent.children())


def test_one_that_is_steered_reads_it_at_its_next_step(work: Path, ask: Any) -> None:
    here, go = threading.Event(), threading.Event()

    def first(_: Any) -> Turn:
        here.set()
        go.wait(10)
        return Turn(calls=[Call("terminal", {"command": "true"})])

    heard: list[Any] = []
    agent, _ = ask(
        hand("work", background=True),
        lambda _: (here.wait(10), do("steer", "root/1", message="only the docs"))[1],
        lambda _: (go.set(), do("wait"))[1],
        "ok",
        children={"work": [first, lambda request: (heard.append(request["messages"][-1]), "x")[1]]},
    )

    agent.run("go")

    assert heard[0] == {"role": "user", "content": "only the docs"}


def test_one_past_its_time_can_go_on(work: Path, ask: Any) -> None:
    seen: list[Any] = []
    agent, model = ask(
        hand("work", timeout_seconds=2),
        do("resume", "root/1", timeout_seconds=60),
        "ok",
        children={
            "work": [
                Turn("First part.", calls=[Call("terminal", {"command": "echo one"})]),
                Turn("x", stall_after=0),
                lambda request: (seen.extend(request["messages"]), "all of it")[1],
            ]
        },
    )

    agent.run("go")

    first, second = tool_results(model)
    assert (first["status"], first["text"]) == ("timeout", "First part.")
    assert (second["status"], second["text"]) == ("completed", "all of it")
    assert second["steps"] == 3
    assert [m["role"] for m in seen] == ["system", "user", "assistant", "tool", "user"]
    assert "timeout" in seen[-1]["content"]


def test_more_time_can_be_given_while_it_works(work: Path, ask: Any) -> None:
    agent, model = ask(
        hand("work", background=True, timeout_seconds=2),
        do("extend", "root/1", timeout_seconds=60),
        do("wait"),
        "ok",
        children={"work": [lambda _: (time.sleep(2.3), "done")[1]]},
    )

    agent.run("go")

    assert report(model)["results"][0]["status"] == "completed"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ({"action": "status"}, "needs a handle"),
        ({"action": "status", "handle": "root/7"}, "There are: root/1"),
        ({"action": "steer", "handle": "root/1", "message": "x"}, "has ended"),
        ({"action": "extend", "handle": "root/1", "timeout_seconds": 5}, "has ended"),
        ({"goal": "x", "tasks": [{"goal": "y"}]}, "either a goal or tasks"),
        ({"tasks": [{"goal": "  "}]}, "no goal"),
    ],
)
def test_what_can_not_be_done_is_said(
    work: Path, ask: Any, call: dict[str, Any], said: str
) -> None:
    agent, model = ask(
        hand("a"), Turn(calls=[Call("delegate_task", call)]), "ok", children={"a": ["1"]}
    )

    agent.run("go")

    assert said in json.dumps(report(model))


def test_no_more_wait_for_room_than_may(work: Path, ask: Any) -> None:
    go = threading.Event()
    goals = [f"goal {n}" for n in range(20)]
    agent, model = ask(
        hand(*goals, background=True),
        hand("one more", background=True),
        "ok",
        children={goal: [lambda _: (go.wait(10), "x")[1]] for goal in goals},
    )

    agent.run("go")

    assert "at most 20" in json.dumps(report(model))
    states = [child.state for child in agent.children()]
    assert (states.count("running"), states.count("waiting")) == (3, 17)
    go.set()
    agent.close()
    assert not any(child.running for child in agent.children())


def test_with_the_agent_its_children_end_and_their_commands(work: Path, ask: Any) -> None:
    command = Call("terminal", {"command": "echo $$ > pid; exec sleep 600.125"})
    agent, _ = ask(
        hand("work", background=True), "ok", children={"work": [Turn("On it.", calls=[command])]}
    )
    agent.run("go")
    until(lambda: processes("sleep 600.125"))

    agent.close()

    (child,) = agent.children()
    assert child.state == "cancelled"
    assert "has ended" in agent.report("root/1")["reason"]
    until(lambda: not processes("sleep 600.125"), 5)


def test_one_that_ignores_being_stopped_is_left_behind(work: Path, ask: Any) -> None:
    registry, here, go = ToolRegistry(), threading.Event(), threading.Event()

    @tool(registry=registry, toolset="t", effect="read")
    def deaf(ctx: ToolContext) -> str:
        """Wait, whatever anybody says."""
        here.set()
        go.wait(20)
        return ctx.task_id

    from hermes.core.registry import registry as shared

    App().registry  # noqa: B018 - the shared tools are registered by being asked for
    found = shared.get("delegate_task")
    assert found is not None
    registry.add(found)
    agent, model = ask(
        hand("wait", background=True),
        lambda _: (here.wait(10), do("cancel", "root/1"))[1],
        "ok",
        children={"wait": [Turn("Waiting.", calls=[Call("deaf", {})])]},
        app=App(registry),
    )

    agent.run("go")

    assert (report(model)["status"], report(model)["text"]) == ("cancelled", "Waiting.")
    go.set()


def test_a_person_can_start_watch_steer_and_stop_one(work: Path, ask: Any) -> None:
    here = threading.Event()
    agent, _ = ask(
        children={
            "count the files": [
                lambda _: (here.set(), Turn(calls=[Call("terminal", {"command": "sleep 600"})]))[1]
            ]
        }
    )

    handle = agent.background("count the files")

    assert handle == "root/1"
    here.wait(10)
    (child,) = agent.children()
    assert (child.goal, child.running, child.background) == ("count the files", True, True)
    assert agent.steer(handle, "hurry")
    assert agent.cancel(handle)
    assert ended(agent, handle).state == "cancelled"
    assert not agent.cancel(handle)
    assert not agent.steer(handle, "again")
    with pytest.raises(ToolError, match="no agent has the handle"):
        agent.cancel("root/9")


def test_one_that_is_stopped_before_it_begins_has_ended_all_the_same(work: Path, ask: Any) -> None:
    with Sessions() as sessions:
        session = sessions.begin(workspace=str(work), model="m", front_door="test")
        agent, _ = ask(
            children={f"goal {n}": [Turn("x", stall_after=0)] for n in range(20)}, journal=session
        )

        for number in range(20):
            assert agent.cancel(agent.background(f"goal {number}"))

        until(lambda: not any(child.running for child in agent.children()))
        assert {child.state for child in agent.children()} == {"cancelled"}
        kept = [note.data["status"] for note in session.notes("delegated")]
        assert kept.count("cancelled") == 20


def test_waiting_for_a_person_is_no_silence(work: Path, ask: Any) -> None:
    (work / "build").mkdir()

    def slow(_: Any) -> str:
        time.sleep(2.3)
        return "no"

    agent, model = ask(
        hand("clean", idle_timeout_seconds=2),
        "ok",
        children={"clean": [Turn(calls=[Call("terminal", {"command": "rm -rf build"})]), "no"]},
        approver=slow,
    )

    agent.run("go")

    assert report(model)["status"] == "completed"


def test_one_that_takes_long_may_be_waited_for_again_and_again(work: Path, ask: Any) -> None:
    go = threading.Event()
    agent, model = ask(
        hand("work", background=True),
        *[do("wait", "root/1", timeout_seconds=0.15) for _ in range(7)],
        lambda _: (go.set(), do("wait", "root/1"))[1],
        "ok",
        children={"work": [lambda _: (go.wait(10), "done")[1]]},
    )

    assert agent.run("go") == "ok"

    results = tool_results(model)
    assert {one["state"] for one in results[1:-1]} == {"running"}
    assert results[-1]["status"] == "completed"


def test_what_is_handed_on_and_not_given_is_reported(work: Path, ask: Any) -> None:
    agent, model = ask(
        hand("look", toolsets=["file", "terminal"]),
        "ok",
        children={"look": ["no"]},
        toolsets=["file", "delegation"],
    )

    agent.run("go")

    assert "terminal" in report(model)["tools_not_given"]


def test_three_levels_where_the_settings_say_so(
    work: Path, home: Path, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.mkdir(parents=True)
    (home / "config.yaml").write_text("delegation:\n  max_depth: 3\n")
    (work / "build").mkdir()
    asked: list[str] = []

    def no(request: Any) -> str:
        asked.append(f"{request.agent_path} {request.tool}")
        return "no"

    agent, model = ask(
        hand("outer"),
        "done",
        children={
            "outer": [hand("inner"), "inner says no"],
            "inner": [
                Turn(
                    calls=[
                        Call("terminal", {"command": "rm -rf build"}),
                        Call("delegate_task", {"goal": "deeper"}),
                    ]
                ),
                "refused",
            ],
        },
        approver=no,
    )

    agent.run("go")

    assert asked == ["root/1/1 terminal"]
    assert (work / "build").exists()
    assert [child.handle for child in agent.children()] == ["root/1", "root/1/1"]
    inner = [r for r in model.requests if goal_of(r) == "inner"][-1]
    assert "no tool is called 'delegate_task'" in json.dumps(inner["messages"])


def test_the_limits_of_now_are_in_the_definition(work: Path, home: Path) -> None:
    home.mkdir(parents=True)
    (home / "config.yaml").write_text("delegation:\n  max_children: 7\n")
    app = App()

    (one,) = app.definitions.get(["delegation"])

    assert "7 at work at once" in one["function"]["description"]
    app.close()


def test_a_child_has_a_session_of_its_own_below_its_parents(work: Path, ask: Any) -> None:
    with Sessions() as sessions:
        session = sessions.begin(workspace=str(work), model="gpt-4o", front_door="test")
        agent, _ = ask(hand("count"), "ok", children={"count": ["3"]}, journal=session)

        agent.run("go")

        (child,) = [one for one in sessions.list() if one.parent == session.id]
        assert (child.title, child.relation) == ("count", "child")
        assert [m.text for m in sessions.open(child.id).messages()] == ["count", "3"]
        assert sessions.open("last").id == session.id
