"""Undo for commands: the workspace as it was before one ran, and what it changed."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hermes.files.changing import author_of
from hermes.safety.shell import reads_only
from hermes.stores.checkpoints.shared import checkpoints

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes.core.context import ToolContext


@contextmanager
def protected(ctx: ToolContext, command: str, *, cwd: str) -> Iterator[list[str]]:
    """Keep what a command may change while it runs; notes on what is not protected.

    A command that is known to change nothing costs nothing here. What it changes is recorded when
    it has ended, however it ended.

    Args:
        ctx: Whose command it is.
        command: As the shell gets it.
        cwd: The folder it runs in.
    """
    if reads_only(command, cwd=cwd):
        yield []
        return
    store = checkpoints(ctx)
    snapshot = store.snapshot(
        _root(ctx.workspace, cwd),
        author_of(ctx),
        progress=ctx.progress,
        check=ctx.check_cancelled,
    )
    try:
        yield snapshot.notes
    finally:
        store.after_command(snapshot)


def _root(workspace: str, cwd: str) -> str:
    """The folder to keep: the workspace, or where the command runs if that is elsewhere."""
    workspace, cwd = os.path.realpath(workspace), os.path.realpath(cwd)
    inside = os.path.join(cwd, "").startswith(os.path.join(workspace, ""))
    return workspace if inside else cwd
