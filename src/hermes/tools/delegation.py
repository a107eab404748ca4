"""Delegation: hand self-contained tasks to fresh agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NotRequired, TypedDict

from hermes.core import ToolContext, ToolError, tool
from hermes.core.schema import Field

if TYPE_CHECKING:
    from typing import Any

    from hermes.core.context import Delegate

MOST_TASKS = 20
_SECONDS = 900.0
_IDLE_SECONDS = 300.0


class Work(TypedDict):
    """One task of several."""

    goal: str
    context: NotRequired[str]
    toolsets: NotRequired[list[str]]
    timeout_seconds: NotRequired[float]
    idle_timeout_seconds: NotRequired[float]


@tool(
    toolset="delegation",
    permissions=["agent:delegate"],
    effect="execute",
    concurrency="parallel",
    aliases=["delegate", "subagent"],
    emoji="🤝",
    max_result_size_chars=100_000,
    tags=["sub-agent", "spawn agent", "parallel tasks", "split the work", "helper", "hand over"],
)
async def delegate_task(
    ctx: ToolContext,
    goal: str = "",
    context: str = "",
    toolsets: list[str] | None = None,
    timeout_seconds: Annotated[float, Field(gt=0, le=86_400)] = _SECONDS,
    idle_timeout_seconds: Annotated[float, Field(gt=0, le=86_400)] = _IDLE_SECONDS,
    tasks: Annotated[list[Work], Field(max_length=MOST_TASKS)] | None = None,
) -> dict[str, Any]:
    """Hand a self-contained task, or several side by side, to fresh agents; get their reports.

    They know nothing but what you tell them and can't ask back.

    Args:
        goal: What is to be done, and what to report.
        context: What it has to know: paths, findings, conditions.
        toolsets: Those it may use, of yours; all of yours if left out.
        timeout_seconds: It is stopped after this long.
        idle_timeout_seconds: It is stopped after this long without a sign of life.
        tasks: Several tasks instead of one goal; what one leaves out is taken from above.
    """
    delegate: Delegate = ctx.service("delegate")
    if bool(goal.strip()) == bool(tasks):
        raise ToolError(
            "give either a goal or tasks", hint='{"goal": "…"} or {"tasks": [{"goal": "…"}, …]}'
        )
    common: dict[str, Any] = {
        "context": context,
        "toolsets": toolsets,
        "timeout_seconds": timeout_seconds,
        "idle_timeout_seconds": idle_timeout_seconds,
    }
    reports = await delegate([{**common, **one} for one in tasks or [{"goal": goal}]], ctx)
    return {"results": reports} if tasks else reports[0]
