"""Tasks handed to fresh agents, against a scripted model over real HTTP."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.agent.delegation.script import Answer, hand, lets_delegate, report

from hermes.agent.delegation.child import BLOCKED
from hermes.core import ToolCall, ToolContext, ToolRegistry, tool
from hermes.runtime import waits
from hermes.runtime.app import App
from hermes.stores.checkpoints.checkpoint_store import checkpoints
from hermes.stores.sessions import Sessions
from hermes.testing import Call, Turn


def test_a_task_is_carried_out_by_a_fresh_agent(work: Path, ask: Any) -> None:
    (work / "a.txt").write_text("blue\n")
    agent, model = ask(
        hand("find the colour", context="it is in a.txt"),
        "it is blue",
        children={"find the colour": [Turn(calls=[Call("read_file", {"path": "a.txt"})]), "blue"]},
    )

    assert agent.run("a secret of the person: which colour?") == "it is blue"

    said = report(model)
    assert (said["agent"], said["status"], said["text"]) == ("root/1", "completed", "blue")
    assert said["steps"] == 2
    assert said["files_changed"] == []
    sent = json.dumps(model.requests[1]["messages"])
    assert "it is in a.txt" in sent
    assert "secret of the person" not in sent


def test_several_tasks_run_side_by_side_and_are_reported_in_order(work: Path, ask: Any) -> None:
    together = threading.Barrier(3, timeout=10)

    def met(text: str) -> Answer:
        return lambda _: (together.wait(), text)[1]

    goals = ("one", "two", "three")
    agent, model = ask(hand(*goals), "done", children={goal: [met(goal * 2)] for goal in goals})

    agent.run("do three things")

    results = report(model)["results"]
    assert [one["text"] for one in results] == ["oneone", "twotwo", "threethree"]
    assert [one["agent"] for one in results] == ["root/1", "root/2", "root/3"]


def test_no_more_than_three_are_at_work_at_once(work: Path, ask: Any) -> None:
    lock, now, most = threading.Lock(), 0, 0

    def count(request: dict[str, Any]) -> str:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        threading.Event().wait(0.05)
        with lock:
            now -= 1
        return "ok"

    goals = [f"goal {n}" for n in range(8)]
    agent, model = ask(hand(*goals), "done", children={goal: [count] for goal in goals})

    agent.run("do eight things")

    assert most <= 3
    assert [one["status"] for one in report(model)["results"]] == ["completed"] * 8


def test_a_child_has_its_parents_tools_at_most_and_none_of_the_blocked(
    work: Path, ask: Any
) -> None:
    agent, model = ask(
        hand("look", toolsets=["file", "system"]),
        "done",
        children={
            "look": [
                Turn(
                    calls=[
                        Call("terminal", {"command": "touch ran"}),
                        Call("delegate_task", {"goal": "again"}),
                    ]
                ),
                "could not",
            ]
        },
        toolsets=["file", "delegation"],
    )

    agent.run("go")

    offered = {one["function"]["name"] for one in model.requests[1]["tools"]}
    assert "read_file" in offered
    assert not offered & {"terminal", *BLOCKED}
    assert not (work / "ran").exists()
    assert report(model)["text"] == "could not"


def test_toolsets_that_the_parent_has_not_are_said_at_once(work: Path, ask: Any) -> None:
    agent, model = ask(
        Turn(
            calls=[
                Call("delegate_task", {"goal": "x", "toolsets": ["web"]}),
                Call("delegate_task", {"goal": "x", "toolsets": ["nosuchthing"]}),
                Call("delegate_task", {}),
            ]
        ),
        "done",
        toolsets=["file", "delegation"],
    )

    agent.run("go")

    said = [m["content"] for m in model.requests[1]["messages"] if m["role"] == "tool"]
    assert "no tools of web" in said[0]
    assert "nosuchthing" in said[1]
    assert "goal or tasks" in said[2]


def test_what_a_child_changed_is_reported_and_undone_with_the_turn(work: Path, ask: Any) -> None:
    agent, model = ask(
        Turn(calls=[Call("write_file", {"path": "mine.txt", "content": "1"})]),
        hand("write"),
        "done",
        children={
            "write": [
                Turn(calls=[Call("write_file", {"path": "theirs.txt", "content": "2"})]),
                "written",
            ]
        },
    )

    agent.run("write two files")

    assert report(model)["files_changed"] == [str(work / "theirs.txt")]
    turn = checkpoints().turns(limit=1)[0]
    checkpoints().undo(turn=f"{turn.session}/{turn.name}")
    assert list(work.glob("*.txt")) == []


def test_a_child_past_its_time_is_stopped_and_says_how_far_it_got(work: Path, ask: Any) -> None:
    agent, model = ask(
        hand("wait", timeout_seconds=2),
        "too slow",
        children={
            "wait": [
                Turn("I begin.", calls=[Call("write_file", {"path": "a.txt", "content": "1"})]),
                Turn("Half of the ans" + "wer" * 50, stall_after=3),
            ]
        },
    )

    assert agent.run("go") == "too slow"

    said = report(model)
    assert said["status"] == "timeout"
    assert said["reason"] == "stopped: timeout_seconds 2"
    assert said["text"].startswith(("Half of the ans", "I begin."))
    assert said["files_changed"] == [str(work / "a.txt")]
    assert said["tokens"]["input"] > 0
    assert agent.app.runtime.running() == []


def test_a_child_without_a_sign_of_life_is_stopped(work: Path, ask: Any) -> None:
    agent, model = ask(
        hand("wait", idle_timeout_seconds=0.4),
        "silent",
        children={"wait": [Turn("x", stall_after=0)]},
    )

    agent.run("go")

    assert report(model)["status"] == "idle_timeout"


def test_one_that_fails_leaves_the_others_alone(work: Path, ask: Any) -> None:
    agent, model = ask(
        hand("bad", "good"),
        "done",
        children={"bad": [Turn(status=401, error="no such key")], "good": ["fine"]},
    )

    agent.run("go")

    bad, good = report(model)["results"]
    assert (bad["status"], good["status"], good["text"]) == ("failed", "completed", "fine")
    assert bad["reason"]


def test_the_purse_is_one(work: Path, ask: Any) -> None:
    looks = [Turn(calls=[Call("terminal", {"command": f"echo {n}"})]) for n in range(9)]
    agent, model = ask(hand("look"), children={"look": looks}, max_steps=4)

    result = agent.turn("go")

    assert result.ended == "spent"
    assert len(model.requests) == 4
    roots = agent.conversation.messages
    assert '"status": "spent"' in roots[2].text or '"status":"spent"' in roots[2].text
    assert agent.conversation.budget.usage.input == sum(len(body) // 4 for body in model.bodies)


def test_what_children_cost_is_in_the_session(work: Path, ask: Any) -> None:
    with Sessions() as sessions:
        session = sessions.begin(workspace=str(work), model="gpt-4o", front_door="test")
        agent, model = ask(
            hand("a", "b"), "done", children={"a": ["1"], "b": ["2"]}, journal=session
        )
        agent.run("go")

        assert session.totals().usage.input == sum(len(body) // 4 for body in model.bodies)
        assert {note.data["agent"] for note in session.notes("delegated")} == {"root/1", "root/2"}


def test_the_person_is_asked_with_the_path_of_who_wants_it(work: Path, ask: Any) -> None:
    (work / "build").mkdir()
    asked: list[tuple[str, str]] = []

    def no(request: Any) -> str:
        asked.append((request.agent_path, request.tool))
        return lets_delegate(request) or "no"

    agent, model = ask(
        hand("clean up"),
        "done",
        children={
            "clean up": [Turn(calls=[Call("terminal", {"command": "rm -rf build"})]), "refused"]
        },
        approver=no,
    )

    result = agent.turn("go")

    assert asked == [("root/1", "terminal")]
    assert (work / "build").exists()
    assert len(report(model)["refused"]) == 1
    # The exit code of the run depends on it.
    assert result.refused == tuple(report(model)["refused"])


def test_with_the_parent_its_children_end(work: Path, ask: Any) -> None:
    reached = threading.Event()
    call = Call("terminal", {"command": "sleep 30; touch late"})
    agent, _ = ask(hand("wait"), children={"wait": [Turn(calls=[call])]})
    agent.app.runtime.events.subscribe(
        lambda event: reached.set() if (event.kind, event.tool) == ("started", "terminal") else None
    )

    async def cancelled() -> None:
        turn = asyncio.ensure_future(agent.conversation.turn("go"))
        await asyncio.to_thread(reached.wait, 10)
        turn.cancel()
        await asyncio.wait([turn], timeout=15)
        assert turn.cancelled()

    # In the loop in which the agent's connections are closed, too.
    waits.run(cancelled())

    assert agent.app.runtime.running() == []


def test_a_stopped_call_stops_its_children_and_the_parent_goes_on(work: Path, ask: Any) -> None:
    def stop(_: dict[str, Any]) -> Turn:
        agent.conversation.cancel_calls()
        return Turn("never read", delay=0.2)

    agent, model = ask(hand("wait"), "stopped, then", children={"wait": [stop]})

    assert agent.run("go") == "stopped, then"
    assert "stopped" in str(report(model))


def test_of_two_that_write_one_file_the_second_hears_of_the_first(work: Path, ask: Any) -> None:
    (work / "a.txt").write_text("old\n")
    both_read, written = threading.Barrier(2, timeout=10), threading.Event()

    def write(text: str) -> Turn:
        return Turn(calls=[Call("write_file", {"path": "a.txt", "content": text})])

    def first(_: Any) -> Turn:
        both_read.wait()
        return write("one\n")

    def second(_: Any) -> Turn:
        both_read.wait()
        written.wait(10)
        return write("two\n")

    look = Turn(calls=[Call("read_file", {"path": "a.txt"})])
    seen: list[Any] = []
    agent, _ = ask(
        hand("one", "two"),
        "done",
        children={
            "one": [look, first, lambda _: (written.set(), "wrote it")[1]],
            "two": [look, second, lambda r: (seen.append(r["messages"][-1]), "could not")[1]],
        },
    )

    agent.run("go")

    assert (work / "a.txt").read_text() == "one\n"
    assert "was changed by" in seen[0]["content"]
    assert "root/1" in seen[0]["content"]


def test_state_of_a_child_is_its_own(work: Path, ask: Any) -> None:
    registry = ToolRegistry()
    seen: list[tuple[str, str, bool]] = []

    @tool(registry=registry, toolset="t", effect="read")
    def who(ctx: ToolContext) -> str:
        """Say who asks."""
        seen.append((ctx.task_id, ctx.agent_path, ctx.services.delegate is not None))
        return f"{ctx.agent_path or 'root'}"

    from hermes.core.registry import registry as shared

    App().registry  # noqa: B018 - the shared tools are registered by being asked for
    found = shared.get("delegate_task")
    assert found is not None
    registry.add(found)
    agent, _ = ask(
        Turn(calls=[Call("who", {})]),
        hand("a"),
        "done",
        children={"a": [Turn(calls=[Call("who", {})]), "ok"]},
        app=App(registry),
    )

    agent.run("go")

    root, child = seen
    assert root[0] != child[0]
    assert (root[1:], child[1:]) == (("", True), ("root/1", False))
    with pytest.raises(KeyError):
        agent.app.runtime._tasks[child[0]]


def test_where_there_is_no_agent_it_says_so(work: Path) -> None:
    app = App()

    around = app.runtime.context(approver=lets_delegate)
    outcome = app.runtime.call_sync(ToolCall("delegate_task", {"goal": "x"}), around)

    assert "does not offer" in outcome.content
    assert outcome.status != "ok"
    app.close()
