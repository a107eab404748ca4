"""What a runtime keeps between calls, and calls from everywhere at once."""

from __future__ import annotations

import asyncio
import threading

import pytest
from tests.runtime.recorder import NotingTool, both_ways

from hermes.core import ToolCall, ToolContext, ToolRegistry, tool
from hermes.runtime import Runtime


def test_a_closed_task_takes_its_things_along_and_the_next_call_begins_anew() -> None:
    registry = ToolRegistry()
    closed: list[str] = []

    @tool(registry=registry, effect="read")
    def shell(ctx: ToolContext) -> int:
        """Keep something."""
        return id(ctx.task.keep("shell", object, lambda thing: closed.append("shell")))

    runtime = Runtime(registry)
    first = runtime.dispatch("shell", {})
    assert runtime.dispatch("shell", {}) == first

    runtime.close_task("main")
    assert closed == ["shell"]
    runtime.dispatch("shell", {})
    runtime.close()
    assert closed == ["shell", "shell"]


def test_events_tell_the_story_of_a_call() -> None:
    bench = NotingTool(approver=lambda request: True)

    bench.call({"path": "p"})

    assert [event.kind for event in bench.events] == ["approval_requested", "started", "finished"]
    assert {event.call_id for event in bench.events} == {"c1"}
    assert bench.events[1].data["arguments"]["path"] == "p"
    assert bench.events[2].data["outcome"].ok


def test_calls_from_many_threads_share_a_runtime() -> None:
    bench = NotingTool("read")
    contents: list[str] = []

    def work(number: int) -> None:
        for index in range(100):
            outcome = bench.runtime.call_sync(ToolCall("work", {"count": index}))
            contents.append(outcome.content)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert contents == ['"done"'] * 1600
    assert len(bench.ran) == 1600
    assert bench.runtime.running() == []
    assert not bench.runtime._context.cancellation._children


def test_ids_are_made_where_none_are_given() -> None:
    bench = NotingTool("read")

    ids = {bench.runtime.call_sync(ToolCall("work", {})).call_id for _ in range(10)}

    assert len(ids) == 10


def test_a_tool_that_can_not_work_here_says_why_instead_of_running() -> None:
    registry = ToolRegistry()
    ran: list[str] = []
    schema = {"type": "object", "properties": {}}
    registry.register(
        "far", "t", schema, lambda: ran.append("far"), effect="read", requires_env=["NO_SUCH_VAR"]
    )

    outcome = Runtime(registry).call_sync(ToolCall("far", {}))

    assert outcome.status == "error"
    assert "NO_SUCH_VAR" in outcome.content
    assert ran == []


class OwnError(BaseException):
    """What a library may raise past everybody."""


@pytest.mark.parametrize("limit", [None, 60])
@pytest.mark.parametrize(
    "error", [SystemExit(3), GeneratorExit(), asyncio.CancelledError(), OwnError("over")]
)
def test_a_handler_can_not_end_the_program(error: BaseException, limit: float | None) -> None:
    registry = ToolRegistry()
    schema = {"type": "object", "properties": {}}

    def leave() -> None:
        raise error

    registry.register("leave", "t", schema, leave, effect="read", timeout_seconds=limit)

    outcomes = both_ways(Runtime(registry), ToolCall("leave", {}))

    assert [outcome.status for outcome in outcomes] == ["error", "error"]
