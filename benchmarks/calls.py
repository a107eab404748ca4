"""What one call costs: the whole pipeline, validated, with the gate and the audit log on."""

from __future__ import annotations

import asyncio
import os
import tempfile
from typing import TYPE_CHECKING, Any

from benchmarks.measure import Row, alternately_us, each_us_async
from hermes.core import ToolCall, ToolRegistry, tool
from hermes.runtime import Runtime
from hermes.runtime.audit import AuditLog

if TYPE_CHECKING:
    from collections.abc import Iterator


def registry_of(count: int = 0) -> ToolRegistry:
    """The tools that are called, among `count` others."""
    registry = ToolRegistry()

    @tool(registry=registry, effect="read")
    def add(a: int, b: int) -> dict[str, int]:
        """Add two numbers."""
        return {"sum": a + b}

    @tool(registry=registry, effect="read")
    def five(a: int, b: bool, c: list[str], d: float, e: str) -> dict[str, bool]:
        """Take five arguments."""
        return {"ok": bool(a and b and c and d and e)}

    @tool(registry=registry, effect="read")
    async def add_later(a: int, b: int) -> dict[str, int]:
        """Add two numbers, asynchronously."""
        return {"sum": a + b}

    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"path": {"type": "string"}, "count": {"type": "integer"}},
        "required": ["path"],
    }
    for number in range(count):
        registry.register(
            f"tool_{number}",
            f"family_{number % 20}",
            {"description": f"Does thing {number} to a file.", "parameters": schema},
            lambda path, count=1: path * count,
            effect="read",
        )
    return registry


def rows() -> Iterator[Row]:
    """Microseconds of CPU for one call."""
    with tempfile.TemporaryDirectory() as home:
        audit = AuditLog(os.path.join(home, "audit.jsonl"))
        runtime = Runtime(registry_of(), audit=audit)
        plain = ToolCall("add", {"a": 1, "b": 2})
        mixed = ToolCall("five", {"a": "1", "b": "true", "c": "https://a.com", "d": "1.5", "e": 5})
        later = ToolCall("add_later", {"a": 1, "b": 2})
        assert runtime.call_sync(plain).content == '{"sum":3}'
        assert runtime.call_sync(mixed).content == '{"ok":true}'
        cost = alternately_us(
            {
                "sync call, 2 arguments": lambda: runtime.call_sync(plain),
                "sync call, 5 coerced": lambda: runtime.call_sync(mixed),
            }
        )
        yield Row("sync call, 2 arguments", cost["sync call, 2 arguments"], "µs", 12)
        yield Row("sync call, 5 coerced", cost["sync call, 5 coerced"], "µs", 25)
        inside = asyncio.run(each_us_async(lambda: runtime.call(later)))
        yield Row("async call inside a loop", inside, "µs", 20)
        runtime.close()
