"""The end of a call: no secret leaves, and no record that fails costs a result."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.runtime.recorder import SECRET, NotingTool, both_ways

from hermes.core import ToolCall, ToolContext, ToolError, ToolRegistry, ToolResult
from hermes.runtime import Runtime


@pytest.mark.parametrize(
    "answer",
    [
        f"the key is {SECRET}",
        {"env": [{"OPENAI_API_KEY": SECRET}]},
        json.dumps({"error": f"bad key {SECRET}"}),
        ToolResult(error=f"bad key {SECRET}", hint=SECRET),
        ValueError(f"bad key {SECRET}"),
        ToolError(f"bad key {SECRET}", hint=f"not {SECRET}"),
    ],
)
def test_no_secret_leaves_in_whatever_form(answer: Any) -> None:
    bench = NotingTool("read")
    bench.answer = answer
    seen: list[Any] = []
    bench.runtime.hooks.add("post_tool_call", lambda call, outcome: seen.append(outcome))

    for outcome in both_ways(bench.runtime, ToolCall("work", {})):
        assert SECRET not in outcome.content
        assert SECRET not in str(outcome.error)
        json.loads(outcome.content)
    assert len(seen) == 2
    assert all(SECRET not in outcome.content + str(outcome.error) for outcome in seen)


def test_a_redactor_that_fails_lets_nothing_through() -> None:
    class Broken:
        def redact(self, text: str) -> str:
            raise RecursionError

    redactor: Any = Broken()
    bench = NotingTool("read", redactor=redactor)
    bench.answer = "the whole secret"

    outcome = bench.call()

    assert outcome.status == "error"
    assert "secret" not in outcome.content


def test_an_audit_log_that_can_not_be_written_loses_no_result() -> None:
    class Full:
        def record(self, *given: Any, **more: Any) -> None:
            raise OSError(28, "No space left on device")

    audit: Any = Full()
    bench = NotingTool("read", audit=audit)

    assert bench.call().value == "done"
    assert "No space" in bench.trouble[0]


def test_what_had_to_be_approved_and_can_not_be_noted_does_not_run() -> None:
    class Full:
        def record(self, *given: Any, **more: Any) -> None:
            raise OSError(28, "No space left on device")

    audit: Any = Full()
    bench = NotingTool(audit=audit, approver=lambda request: True)

    assert bench.call().status == "error"
    assert bench.ran == []


def test_who_watches_sees_no_secrets() -> None:
    registry = ToolRegistry()
    token = "ghp_" + "a1B2" * 9
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}

    def tell(text: str, ctx: ToolContext) -> str:
        ctx.output(text)
        ctx.progress(text)
        return text

    registry.register("tell", "t", schema, tell, effect="read")
    runtime = Runtime(registry)
    seen: list[str] = []
    runtime.events.subscribe(lambda event: seen.append(repr(event.data)))

    runtime.call_sync(ToolCall("tell", {"text": token}))

    assert len(seen) == 4
    assert token not in "".join(seen)
