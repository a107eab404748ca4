"""What an agent remembers: frozen when a conversation begins, there for the next one."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.agent.agent import Agent
from hermes.runtime.app import App
from hermes.stores.memory import Memory
from hermes.testing import Call, ScriptedModel, Turn


def test_a_conversation_keeps_its_beginning_and_the_next_one_knows_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    Memory("user").add("is called Ada")
    call = Call("memory", {"action": "add", "content": "the harbour opens at six"})
    script = [Turn(calls=[call]), "noted", "still here", "good morning"]

    app = App()
    with ScriptedModel(script) as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        with Agent("openai/gpt-4o", app=app, approver=lambda _: "once") as agent:
            agent.run("remember that")
            agent.run("are you there?")
        with Agent("openai/gpt-4o", app=app) as agent:
            agent.run("hello")
    app.close()

    systems = [request["messages"][0]["content"] for request in model.requests]
    assert len(set(systems[:3])) == 1
    assert "is called Ada" in systems[0]
    assert "harbour" not in systems[0]
    assert "the harbour opens at six" in systems[3]
