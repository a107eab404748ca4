"""Environment and disk of a task: the backend it is configured for, made at its first command."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.environments.disk import LocalDisk

if TYPE_CHECKING:
    from hermes.core.context import ToolContext
    from hermes.environments.backends import Setting
    from hermes.environments.disk import Disk
    from hermes.environments.environment import Environment
    from hermes.environments.restart_policy import Restarts


_KEY = "environment"


def environment_of(ctx: ToolContext) -> Environment:
    """Where the commands of a call's task run."""
    return existing_environment(ctx) or ctx.task.keep(
        _KEY, lambda: _made(ctx), lambda made: made.cleanup()
    )


def existing_environment(ctx: ToolContext) -> Environment | None:
    """The same, when the task has run a command yet."""
    found: Environment | None = ctx.task.kept(_KEY)
    return found


def record_cwd(ctx: ToolContext, environment: Environment) -> None:
    """Let the rest of Hermes know where the next command runs, by the name that it has here."""
    ctx.task.cwd = environment.workspace_name(environment.cwd)


def restarts_of(ctx: ToolContext) -> Restarts:
    """The background commands of a call's task that are started again when they fail."""
    from hermes.environments.restart_policy import Restarts

    found: Restarts = ctx.task.keep("restarts", Restarts, Restarts.close)
    return found


def _made(ctx: ToolContext) -> Environment:
    from hermes.environments.backends import backend
    from hermes.environments.environment import SharedSettings

    setting = setting_of(ctx)
    shared = SharedSettings(
        env=ctx.task.env,
        task=ctx.task_id,
        workspace=os.path.realpath(ctx.workspace),
        pass_env=setting("terminal.pass_env", ()),
        ansi=setting("terminal.ansi", False),
        idle_seconds=60.0 * setting("terminal.idle_minutes", 0),
    )
    return backend(backend_name(ctx)).make(ctx.workspace, setting, shared)


def setting_of(ctx: ToolContext) -> Setting:
    """Reads settings by name; what is given along where there is none of that name."""
    from hermes.core.config import DEFAULTS

    app = ctx.services.app
    return lambda name, default: (
        default if app is None or name not in DEFAULTS else app.config.get(name)
    )


# Says it for one run, whatever the settings say.
VARIABLE = "HERMES_TERMINAL_ENV"
LOCAL = "local"
_local = LocalDisk()


def backend_name(ctx: ToolContext) -> str:
    """The kind of environment: from the environment variable, else from the settings."""
    named = os.environ.get(VARIABLE)
    if named:
        return named
    app = ctx.services.app
    return LOCAL if app is None else str(app.config.get("terminal.env_type"))


def disk_of(ctx: ToolContext) -> Disk:
    """The disk that a task's files are on."""
    if backend_name(ctx) == LOCAL:
        # No command has to run for a file to be read here.
        return _local

    return environment_of(ctx).disk
