"""System tools: machine state, environment variables of the task, sleep."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Literal

from hermes.core import ToolContext, ToolError, ToolResult, needs, tool
from hermes.core.schema import Field

if TYPE_CHECKING:
    from typing import Any

Section = Literal["cpu", "memory", "disk", "network", "processes", "system"]

_MASK = "[masked]"
_HOUR = 3600


@tool(
    toolset="system",
    permissions=["system:read"],
    effect="read",
    emoji="🖥️",
    check_fn=needs("psutil"),
    tags=[
        "cpu load", "ram usage", "free disk space", "battery", "temperature fan", "uptime", "slow",
        "top processes", "ip address", "operating system version", "hardware", "performance",
    ],
)  # fmt: skip
def system_info(
    ctx: ToolContext,
    sections: list[Section] | None = None,
    top: Annotated[int, Field(ge=1, le=100)] = 10,
) -> dict[str, Any]:
    """Measure this machine: CPU load, memory, disks, network, busiest processes, OS and uptime.

    Args:
        sections: What to report; everything when left out.
        top: How many processes to list, busiest first.
    """
    from hermes.tools import _machine

    wanted = sections or ["system", "cpu", "memory", "disk", "network", "processes"]
    return {name: _machine.measure(name, ctx, top) for name in dict.fromkeys(wanted)}


@tool(
    toolset="system",
    permissions=["env:write"],
    effect="write",
    reads_when={"action": ["list", "get"]},
    emoji="🌱",
    tags=["environment variable", "PATH", "export", "setenv", "shell variable", "config value"],
)
def env_manager(
    ctx: ToolContext,
    action: Literal["list", "get", "set", "unset"],
    name: str | None = None,
    value: str | None = None,
) -> ToolResult:
    """List, read or set environment variables for the commands of this task.

    Values of secret-looking names are masked. Changes last for the task and never reach other
    programs.

    Args:
        action: What to do.
        name: Variable name; with list, only names containing it.
        value: New value, for set.
    """
    env = _environment(ctx)
    if action == "list":
        shown = {key: _shown(key, env[key]) for key in sorted(env) if (name or "") in key}
        return ToolResult(shown)
    if not name or "=" in name or "\0" in name:
        raise ToolError(f"{action} needs the name of a variable, not {name!r}")
    if action == "get":
        if name not in env:
            raise ToolError(f"{name} is not set", hint="Use list to see what is.")
        return ToolResult({"name": name, "value": _shown(name, env[name])})
    if action == "set":
        if value is None or "\0" in value:
            raise ToolError(f"set needs a value for {name}")
        ctx.task.env[name] = value
        return ToolResult({"name": name, "value": _shown(name, value), "set_for": "this task"})
    ctx.task.env[name] = None
    return ToolResult({"name": name, "unset_for": "this task"})


@tool(
    toolset="system",
    effect="read",
    emoji="💤",
    tags=["wait", "pause", "delay", "timer", "later", "hold on", "seconds", "minutes"],
)
def sleep(ctx: ToolContext, seconds: Annotated[float, Field(ge=0, le=_HOUR)]) -> dict[str, Any]:
    """Wait for a number of seconds, at most an hour; shows progress and can be cancelled.

    Args:
        seconds: How long to wait.
    """
    import time

    begun = time.monotonic()
    while (left := begun + seconds - time.monotonic()) > 0:
        ctx.progress(f"{left:.0f} s left", fraction=1 - left / seconds)
        if ctx.cancellation.wait(min(left, 1.0)):
            break
    slept = time.monotonic() - begun
    return {"slept_seconds": round(slept, 2), "cancelled": ctx.cancelled}


def _environment(ctx: ToolContext) -> dict[str, str]:
    """The environment variables of this task's commands."""
    env = dict(os.environ)
    for name, value in ctx.task.env.items():
        if value is None:
            env.pop(name, None)
        else:
            env[name] = value
    return env


def _shown(name: str, value: str) -> str:
    from hermes.safety.redaction import redact
    from hermes.safety.redaction.secret_names import kind_of

    return _MASK if value and kind_of(name) else redact(value)
