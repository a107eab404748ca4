"""A model that answers the root by a script and each child by its goal, and what was said."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from hermes.agent.agent import Agent
from hermes.testing import Call, ScriptedModel, Turn

Answer = Callable[[dict[str, Any]], Turn | str]


def lets_delegate(request: Any) -> str | None:
    """A person who lets tasks be handed on, and can't be asked about anything else."""
    return "once" if request.tool == "delegate_task" else None


def goal_of(request: dict[str, Any]) -> str | None:
    """The first line of the task that a child was given; None when the root is asking."""
    system, first = request["messages"][:2]
    if "Another agent handed you" not in system["content"]:
        return None
    return str(first["content"]).split("\n")[0]


def hand(*goals: str, **more: Any) -> Turn:
    if len(goals) == 1:
        return Turn(calls=[Call("delegate_task", {"goal": goals[0], **more})])
    tasks = [{"goal": goal} for goal in goals]
    return Turn(calls=[Call("delegate_task", {"tasks": tasks, **more})])


def report(model: ScriptedModel) -> Any:
    """What the root was told last by a tool."""
    roots = [request for request in model.requests if goal_of(request) is None]
    return json.loads([m["content"] for m in roots[-1]["messages"] if m["role"] == "tool"][-1])


def tool_results(model: ScriptedModel) -> list[Any]:
    """Everything that the root was told by tools, in order."""
    roots = [request for request in model.requests if goal_of(request) is None]
    return [json.loads(m["content"]) for m in roots[-1]["messages"] if m["role"] == "tool"]


def do(action: str, handle: str = "", **more: Any) -> Turn:
    """A call that looks after a child."""
    return Turn(calls=[Call("delegate_task", {"action": action, "handle": handle, **more})])


def until(condition: Callable[[], Any], seconds: float = 10.0) -> Any:
    """Wait until something holds; what it is."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.01)
    return found


def ended(agent: Agent, handle: str) -> Any:
    """The child, when it has ended."""
    return until(lambda: [c for c in agent.children() if c.handle == handle and not c.running])[0]
