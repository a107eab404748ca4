"""Traces of agents: children side by side, in the background, compaction; each in its place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.agent.agent import Agent
from hermes.runtime.app import App
from hermes.runtime.tracing import SpanFiles, traces
from hermes.testing import Call, ScriptedModel, Turn


def _answer(request: dict[str, Any]) -> Any:
    """A parent that hands two tasks on, and children that look at something first."""
    said = str([m["content"] for m in request["messages"] if m["role"] == "user"])
    results = sum(m["role"] == "tool" for m in request["messages"])
    if "task of" in said:
        return "looked" if results else Turn(calls=[Call("system_info", {"sections": ["cpu"]})])
    tasks = [{"goal": "task of one"}, {"goal": "task of two"}]
    return "done" if results else Turn(calls=[Call("delegate_task", {"tasks": tasks})])


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedModel]:
    monkeypatch.chdir(tmp_path)
    with ScriptedModel(then=_answer) as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        yield model


def _paths() -> list[str]:
    """Where each span is: the kinds of all that it is inside of."""
    (trace,) = traces(SpanFiles().read())
    by_id = {span["span_id"]: span for span in trace.spans}

    def path(span: dict[str, Any]) -> str:
        about = span["attributes"]
        name = (
            about["gen_ai.agent.name"] if about["hermes.kind"] == "agent" else about["hermes.kind"]
        )
        above = by_id.get(span["parent_span_id"])
        return f"{path(above)} > {name}" if above else str(name)

    return sorted(path(span) for span in trace.spans)


def test_children_side_by_side_are_told_apart(model: ScriptedModel) -> None:
    app = App()
    with Agent("openai/gpt-4o", app=app) as agent:
        assert agent.run("go") == "done"
    app.close()

    child = "session > turn > tool > root/{}"
    assert _paths() == sorted(
        [
            "session",
            "session > turn",
            *["session > turn > chat"] * 2,
            "session > turn > tool",
            *(
                where
                for number in (1, 2)
                for where in (
                    child.format(number),
                    *[f"{child.format(number)} > chat"] * 2,
                    f"{child.format(number)} > tool",
                )
            ),
        ]
    )


def test_what_works_in_the_background_belongs_to_the_session(model: ScriptedModel) -> None:
    import time

    app = App()
    with Agent("openai/gpt-4o", app=app) as agent:
        handle = agent.background("task of three")
        until = time.monotonic() + 20
        while not agent.report(handle) and time.monotonic() < until:
            time.sleep(0.02)
        assert agent.report(handle)["status"] == "completed"
    app.close()

    assert _paths() == [
        "session",
        f"session > {handle}",
        f"session > {handle} > chat",
        f"session > {handle} > chat",
        f"session > {handle} > tool",
    ]


def test_without_a_tracer_everything_works(model: ScriptedModel, home: Path) -> None:
    app = App()
    app.config.values = {"trace": {"enabled": False}}
    with Agent("openai/gpt-4o", app=app) as agent:
        assert agent.run("go") == "done"
    app.close()

    assert not (home / "traces").exists()
