"""The environment of a task: made at its first command, closed with the task."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes.core.context import ToolContext
    from hermes.environments.backends import Setting
    from hermes.environments.protocol import Environment
    from hermes.environments.restarting import Restarts

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


def note_folder(ctx: ToolContext, environment: Environment) -> None:
    """Let the rest of Hermes know where the next command runs, by the name that it has here."""
    ctx.task.state["cwd"] = environment.here(environment.cwd)


def restarts_of(ctx: ToolContext) -> Restarts:
    """The background commands of a call's task that are started again when they fail."""
    from hermes.environments.restarting import Restarts

    found: Restarts = ctx.task.keep("restarts", Restarts, Restarts.close)
    return found


def _made(ctx: ToolContext) -> Environment:
    from hermes.environments.backends import backend
    from hermes.environments.choosing import kind_of
    from hermes.environments.sharing import Shared

    setting = setting_of(ctx)
    shared = Shared(
        env=ctx.task.env,
        task=ctx.task_id,
        workspace=os.path.realpath(ctx.workspace),
        passed=setting("terminal.pass_env", ()),
        ansi=setting("terminal.ansi", False),
        idle_seconds=60.0 * setting("terminal.idle_minutes", 0),
    )
    return backend(kind_of(ctx)).make(ctx.workspace, setting, shared)


def setting_of(ctx: ToolContext) -> Setting:
    """Reads settings by name; what is given along where there is none of that name."""
    from hermes.core.config import DEFAULTS

    app = ctx.services.get("app")
    return lambda name, default: (
        default if app is None or name not in DEFAULTS else app.config.get(name)
    )
