"""The environment of a task: made at its first command, closed with the task."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.core.context import ToolContext
    from hermes.environments.backends import Setting
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
    from hermes.environments.backends import backend
    from hermes.environments.choosing import kind_of

    passed: Sequence[str] = setting_of(ctx)(PASSED, ())
    return backend(kind_of(ctx)).make(
        ctx.workspace, setting_of(ctx), env=ctx.task.env, task=ctx.task_id, passed=passed
    )


def setting_of(ctx: ToolContext) -> Setting:
    """Reads settings by name; what is given along where there is none of that name."""
    from hermes.core.config import DEFAULTS

    app = ctx.services.get("app")
    return lambda name, default: (
        default if app is None or name not in DEFAULTS else app.config.get(name)
    )
