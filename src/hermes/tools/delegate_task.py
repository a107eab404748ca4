"""`delegate_task`: hand self-contained tasks to new agents; list, wait for and stop them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, NotRequired, TypedDict

from hermes.core import ToolContext, ToolError, tool
from hermes.core.schema import Field

if TYPE_CHECKING:
    from typing import Any

    from hermes.core.protocols import Delegate

MOST_TASKS = 20


class Work(TypedDict):
    """One task of several."""

    goal: str
    context: NotRequired[str]
    toolsets: NotRequired[list[str]]
    timeout_seconds: NotRequired[float]
    idle_timeout_seconds: NotRequired[float]


def limits(_: frozenset[str]) -> dict[str, Any]:
    """The description with the limits that hold now."""
    from hermes.core.config import Config

    settings = Config.load().get("delegation")
    return {
        "description": (
            f"{_DESCRIPTION}\n\nNow: {settings['max_children']} at work at once, "
            f"{settings['timeout_seconds']:g} s each, {settings['idle_timeout_seconds']:g} s "
            f"without a sign of life, {settings['max_depth']} levels of agents with you."
        )
    }


_DESCRIPTION = """\
Hand a self-contained task, or several side by side, to fresh agents; get their reports. They know \
nothing but what you tell them and can't ask back. With background you get handles at once, hear \
when one has ended, and look after them by action and handle."""


@tool(
    toolset="delegation",
    description=_DESCRIPTION,
    permissions=["agent:delegate"],
    effect="execute",
    reads_when={"action": ["list", "status", "wait"]},
    concurrency="parallel",
    aliases=["delegate", "subagent"],
    emoji="🤝",
    max_result_size_chars=100_000,
    dynamic_schema_overrides=limits,
    tags=[
        "sub-agent", "spawn agent", "parallel tasks", "split the work", "helper", "hand over",
        "background agent", "cancel agent", "steer agent", "resume agent",
    ],
)  # fmt: skip
async def delegate_task(
    ctx: ToolContext,
    goal: str = "",
    context: str = "",
    toolsets: list[str] | None = None,
    timeout_seconds: Annotated[float, Field(gt=0, le=86_400)] | None = None,
    idle_timeout_seconds: Annotated[float, Field(gt=0, le=86_400)] | None = None,
    tasks: Annotated[list[Work], Field(max_length=MOST_TASKS)] | None = None,
    background: bool = False,
    action: Literal[
        "start", "list", "status", "wait", "cancel", "steer", "extend", "resume"
    ] = "start",
    handle: str = "",
    message: str = "",
) -> dict[str, Any]:
    """Hand tasks on, or look after those that were.

    Args:
        goal: What is to be done, and what to report.
        context: What it has to know: paths, findings, conditions.
        toolsets: Those it may use, of yours; all of yours if left out.
        timeout_seconds: It is stopped after this long; for wait, how long; for extend, from now.
        idle_timeout_seconds: It is stopped after this long without a sign of life.
        tasks: Several tasks instead of one goal; what one leaves out is taken from above.
        background: Do not wait for it.
        action: All but start are about agents that were started.
        handle: Which one; list and wait mean all without it.
        message: For steer and resume.
    """
    delegate: Delegate = ctx.service("delegate")
    if action != "start":
        return await delegate.act(
            action, handle, ctx, message=message, seconds=timeout_seconds, background=background
        )
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
    wanted = [{**common, **task} for task in tasks or [{"goal": goal}]]
    if any(not str(task["goal"]).strip() for task in wanted):
        raise ToolError("a task has no goal", hint="Say what is to be done, and what to report.")
    if background:
        begun = [
            {"handle": child.handle, "status": child.state} for child in delegate.start(wanted, ctx)
        ]
        return {"agents": begun} if tasks else begun[0]
    reports = await delegate(wanted, ctx)
    return {"results": reports} if tasks else reports[0]
