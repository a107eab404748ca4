"""The environment of a task: made at its first command, closed with the task."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.core.context import ToolContext
    from hermes.environments.protocol import Environment

# Variables of our own that commands may see besides the usual ones, by name.
PASSED = "terminal.pass_env"
_KEY = "environment"


def environment_of(ctx: ToolContext) -> Environment:
    """Where the commands of a call's task run."""
    found: Environment | None = ctx.task.state.get(_KEY)
    if found is None:
        found = ctx.task.keep(_KEY, lambda: _made(ctx), lambda made: made.cleanup())
    return found


def environment_so_far(ctx: ToolContext) -> Environment | None:
    """The same, when the task has run a command yet."""
    found: Environment | None = ctx.task.state.get(_KEY)
    return found


def _made(ctx: ToolContext) -> Environment:
    from hermes.environments.local import LocalEnvironment

    return LocalEnvironment(ctx.workspace, env=ctx.task.env, task=ctx.task_id, passed=_passed(ctx))


def _passed(ctx: ToolContext) -> Sequence[str]:
    from hermes.core.config import DEFAULTS

    app = ctx.services.get("app")
    if app is None or PASSED not in DEFAULTS:
        return ()
    names: Sequence[str] = app.config.get(PASSED)
    return names
