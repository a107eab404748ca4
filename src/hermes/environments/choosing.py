"""Which kind of environment a task works in, and the disk its files are on."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.runtime.disk import LocalDisk

if TYPE_CHECKING:
    from hermes.core.context import ToolContext
    from hermes.runtime.disk import Disk

# Says it for one run, whatever the settings say.
VARIABLE = "HERMES_TERMINAL_ENV"
LOCAL = "local"
_local = LocalDisk()


def kind_of(ctx: ToolContext) -> str:
    """The kind of environment: the task's own, the variable's, the setting's."""
    own = ctx.task.state.get("env_type")
    if own:
        return str(own)
    named = os.environ.get(VARIABLE)
    if named:
        return named
    app = ctx.services.get("app")
    return LOCAL if app is None else str(app.config.get("terminal.env_type"))


def disk_of(ctx: ToolContext) -> Disk:
    """The disk that a task's files are on."""
    if kind_of(ctx) == LOCAL:
        # No command has to run for a file to be read here.
        return _local
    from hermes.environments.tasks import environment_of

    return environment_of(ctx).disk
