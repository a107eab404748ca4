"""Children whose program was killed: what is known of them afterwards, and how they go on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.agent.delegation.script import do, goal_of, hand, tool_results, until

from hermes.agent.agent import Agent
from hermes.agent.delegation import child_report
from hermes.runtime.app import App
from hermes.stores.sessions import Sessions
from hermes.testing import Call, ScriptedModel, Turn

_PROGRAM = """
import os
from hermes.agent.agent import Agent
from hermes.stores.sessions import Sessions

sessions = Sessions()
session = sessions.begin(workspace=os.getcwd(), model="gpt-4o", front_door="test")
Agent("openai/gpt-4o", journal=session).run("go")
"""


@pytest.fixture
def killed(work: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A program with two children at work, killed; its model goes on as it is told."""
    here, script = threading.Event(), [hand("beside", background=True), hand("within")]
    children: dict[str | None, list[Any]] = {
        None: script,
        "beside": [
            Turn("Writing.", calls=[Call("write_file", {"path": "b.txt", "content": "1"})]),
            lambda _: (here.set(), Turn("x", stall_after=0))[1],
        ],
        "within": [Turn("Half of it", stall_after=1)],
    }
    lock = threading.Lock()

    def answer(request: dict[str, Any]) -> Turn | str:
        with lock:
            said = children[goal_of(request)].pop(0)
        answered: Turn | str = said(request) if isinstance(said, Callable) else said
        return answered

    with ScriptedModel(then=answer) as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
        program = subprocess.Popen([sys.executable, "-c", _PROGRAM], cwd=work)
        try:
            assert here.wait(20)
            until(lambda: any(goal_of(request) == "within" for request in model.requests))
        finally:
            os.kill(program.pid, signal.SIGKILL)
            program.wait()
        yield model, children
        model.closing.set()


def test_whoever_resumes_hears_what_is_known_and_nothing_is_running(
    work: Path, killed: Any
) -> None:
    model, children = killed
    children[None] = [do("list"), do("status", "root/1"), do("resume", "root/1"), "all good"]
    children["beside"] = ["now it is done"]
    with (
        Sessions() as sessions,
        Agent("openai/gpt-4o", app=App(), journal=sessions.open("last")) as agent,
    ):
        assert agent.run("go on") == "all good"

        roots = [request for request in model.requests if goal_of(request) is None]
        heard = [m["content"] for m in roots[-1]["messages"] if m["role"] == "user"]
        assert sum("has ended: crashed" in text for text in heard) == 2
        listed, status, went_on = tool_results(model)[-3:]
        assert [one["state"] for one in listed["agents"]] == ["crashed", "crashed"]
        assert status["text"] == "Writing."
        assert status["files_changed"] == [str(work / "b.txt")]
        assert status["tokens"]["input"] > 0
        assert (went_on["status"], went_on["text"]) == ("completed", "now it is done")
        assert went_on["files_changed"] == [str(work / "b.txt")]

    with Sessions() as sessions:
        kept = child_report.last_notes(sessions.open("last"))
        assert {name: one["status"] for name, one in kept.items()} == {
            "root/1": "completed",
            "root/2": "crashed",
        }


def test_new_children_do_not_take_the_names_of_old_ones(work: Path, killed: Any) -> None:
    model, children = killed
    children[None] = [hand("more"), "ok"]
    children["more"] = ["done"]
    with (
        Sessions() as sessions,
        Agent("openai/gpt-4o", app=App(), journal=sessions.open("last")) as agent,
    ):
        agent.run("go on")

    assert tool_results(model)[-1]["agent"] == "root/3"


def test_one_that_another_program_runs_is_left_alone(work: Path, ask: Any) -> None:
    with Sessions() as sessions, subprocess.Popen(["sleep", "60"]) as other:
        try:
            session = sessions.begin(workspace=str(work), model="gpt-4o", front_door="test")
            child = sessions.begin(
                workspace=str(work), model="m", front_door="test", parent=session
            )
            owner = list(child_report.process_identity(other.pid))
            note = {"agent": "root/1", "status": "running", "goal": "x", "session": child.id}
            session.note("delegated", {**note, "turns": [], "owner": owner})
            agent, model = ask(do("resume", "root/1"), "ok", journal=session)

            agent.run("go")

            assert "still at work" in tool_results(model)[0]["error"]
            assert agent.children()[0].state == "running elsewhere"
        finally:
            other.kill()
