"""What the agent itself costs: a turn with a model that answers at once."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

from benchmarks.files import workspace
from benchmarks.measure import Row, process_ms, python_ms
from hermes.core.model_protocol import Message
from hermes.testing import Call, ScriptedModel, Turn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def rows() -> Iterator[Row]:
    """A turn after some others, a whole program, a message kept."""
    with ScriptedModel(then="hello") as model, workspace():
        os.environ.update(OPENAI_BASE_URL=model.url, OPENAI_API_KEY="none")
        try:
            yield from _turns()
            base = python_ms("pass")
            ours = process_ms([sys.executable, "-m", "hermes", "run", "hi"], runs=7)
            yield Row("hermes run hi / python -c pass", ours / base, "× CPU", 35)
            yield _child()
            yield _kept()
        finally:
            del os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"]


def _turns() -> Iterator[Row]:
    from hermes import Agent
    from hermes.runtime.app import App
    from hermes.stores.sessions import Sessions

    with Sessions() as sessions:
        for prior in (0, 50, 500):
            session = sessions.begin(workspace=os.getcwd(), model="gpt-4o", front_door="bench")
            with Agent("openai/gpt-4o", app=App(), journal=session) as agent:
                for number in range(prior):
                    agent.conversation.messages += [
                        Message("user", f"question {number}"),
                        Message("assistant", f"answer {number}"),
                    ]
                agent.run("warm up")
                best = float("inf")
                for _ in range(15):
                    began = time.thread_time()
                    agent.run("hi")
                    best = min(best, time.thread_time() - began)
            yield Row(f"a turn after {prior} others (CPU)", best * 1000, "ms", 6)


def _child() -> Row:
    """What a task costs that is handed on, beyond the two answers that its parent needs."""
    from hermes import Agent
    from hermes.runtime.app import App
    from hermes.stores.sessions import Sessions

    def answer(request: dict[str, Any]) -> Turn | str:
        last = request["messages"][-1]
        hands_on = last["content"] == "hand it on"
        return Turn(calls=[Call("delegate_task", {"goal": "do it"})]) if hands_on else "done"

    with ScriptedModel(then=answer) as model, Sessions() as sessions:
        os.environ["OPENAI_BASE_URL"] = model.url
        session = sessions.begin(workspace=os.getcwd(), model="gpt-4o", front_door="bench")
        with Agent("openai/gpt-4o", app=App(), journal=session) as agent:
            least = {"hi": float("inf"), "hand it on": float("inf")}
            for text in list(least) * 15:
                began = time.process_time()
                agent.run(text)
                least[text] = min(least[text], time.process_time() - began)
    spent = least["hand it on"] - 2 * least["hi"]
    return Row("a delegated child (CPU, with the model's)", spent * 1000, "ms", 15)


def _kept() -> Row:
    from hermes.stores.sessions import Sessions

    with Sessions() as sessions:
        session = sessions.begin(workspace=os.getcwd(), model="m", front_door="bench")
        best = float("inf")
        for _ in range(5):
            began = time.perf_counter()
            for number in range(500):
                session.append(Message("user", f"message number {number} of this session"))
            best = min(best, time.perf_counter() - began)
    return Row("a message kept", best / 500 * 1000, "ms", 1)
