"""A runtime with one tool that notes what it was called with, and others that note for tests."""

from __future__ import annotations

import asyncio
from typing import Any

from hermes.core import ToolCall, ToolRegistry, tool
from hermes.runtime import Runtime
from hermes.safety.policy import Policy, Ruling

SECRET = "sk-" + "proj-hT8vQ2mZx9LrWc4KpN7sYb3JdF6gAe1UoXiVtRqEwBzMnCyHkD"


class Allow(Policy):
    def judge(self, entry: Any, arguments: Any, context: Any) -> Ruling:
        return Ruling("allow")


class NotingTool:
    """A runtime with a tool that notes what it was called with."""

    def __init__(self, effect: Any = "write", **options: Any) -> None:
        self.registry = ToolRegistry()
        self.ran: list[dict[str, Any]] = []
        self.events: list[Any] = []
        self.answer: Any = "done"

        @tool("work", registry=self.registry, effect=effect, origin="plugin", owner="acme")
        def work(path: str = "a", count: int = 1, flag: Any = None) -> Any:
            """Work."""
            self.ran.append({"path": path, "count": count, "flag": flag})
            if isinstance(self.answer, BaseException):
                raise self.answer
            return self.answer

        self.runtime = Runtime(self.registry, **options)
        self.runtime.events.subscribe(self.events.append)

    def call(self, arguments: Any = None, name: str = "work", **more: Any) -> Any:
        return self.runtime.call_sync(ToolCall(name, arguments or {}, id="c1"), **more)

    @property
    def trouble(self) -> list[str]:
        return [event.data["message"] for event in self.events if event.kind == "trouble"]


def both_ways(runtime: Runtime, call: ToolCall) -> list[Any]:
    return [runtime.call_sync(call), asyncio.run(runtime.call(call))]


class NotingAudit:
    def __init__(self, seen: list[str]) -> None:
        self.seen = seen
        self.lines: list[tuple[Any, str]] = []

    def record(self, state: Any, status: str, seconds: float, *, now: bool = False) -> None:
        self.seen.append("record")
        self.lines.append((state, status))

    def flush(self) -> None:
        self.seen.append("flush")
