from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.agent.delegation.script import goal_of, lets_delegate

from hermes.agent.agent import Agent
from hermes.runtime.app import App
from hermes.testing import ScriptedModel, Turn


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY", "HERMES_MODEL"):
        monkeypatch.delenv(name, raising=False)
    return work


@pytest.fixture
def ask(work: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """An agent whose model answers the root by a script, and each child by its goal."""
    models: list[ScriptedModel] = []
    agents: list[Agent] = []

    def make(
        *script: Any, children: dict[str, list[Any]] | None = None, **more: Any
    ) -> tuple[Agent, ScriptedModel]:
        root, lock = list(script), threading.Lock()

        def answer(request: dict[str, Any]) -> Turn | str:
            with lock:
                goal = goal_of(request)
                queue = root if goal is None else (children or {})[goal]
                said = queue.pop(0)
            answered: Turn | str = said(request) if callable(said) else said
            return answered

        model = ScriptedModel(then=answer).__enter__()
        models.append(model)
        monkeypatch.setenv("OPENAI_BASE_URL", model.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
        more.setdefault("app", App())
        more.setdefault("approver", lets_delegate)
        agents.append(Agent("openai/gpt-4o", **more))
        return agents[-1], model

    yield make
    for model in models:
        model.closing.set()
    for agent in agents:
        agent.close()
        agent.app.close()
    for model in models:
        model.close()
