"""A small model that says what a test tells it to, in the place of the real one."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from hermes.agent.agent import Agent
from hermes.core.registry import ToolRegistry
from hermes.embedded.conversation import EmbeddedTurn
from hermes.embedded.engine_client import Completion
from hermes.runtime.app import App


class ScriptedSmall:
    """Answers in order; keeps what it was asked and what it was held to."""

    name, model, window = "embedded", "scripted", 8192

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked: list[list[tuple[str, str]]] = []
        self.grammars: list[str] = []

    async def ask(
        self,
        said: Sequence[tuple[str, str]],
        *,
        grammar: str = "",
        most: int = 0,
        temperature: float = 0.0,
        slot: int = 0,
    ) -> AsyncIterator[str | Completion]:
        self.asked.append(list(said))
        self.grammars.append(grammar)
        text = self.answers.pop(0)
        finish = "length" if text.endswith("…") else "stop"
        text = text.removesuffix("…")
        yield text
        yield Completion(text, finish, read=3, cached=4, written=5)

    async def run_turn(self, conversation: Any, state: Any, request: str) -> Any:
        return await EmbeddedTurn(conversation, state).run(request)

    async def stream(self, request: Any) -> AsyncIterator[Any]:
        raise AssertionError("a small conversation asks in its own way")
        yield

    async def close(self) -> None:
        return None


def call(tool: str, **arguments: Any) -> str:
    """The action of a call."""
    return json.dumps({"tool": tool, "args": arguments})


def reply(text: str) -> str:
    """The action of a reply."""
    return json.dumps({"reply": text})


def agent(work: Path, model: ScriptedSmall, **options: Any) -> Agent:
    """An agent in a folder."""
    return Agent(model, workspace=str(work), app=App(ToolRegistry(), project=str(work)), **options)
