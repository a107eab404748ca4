"""Undo for shell commands: a snapshot of the workspace before the command, its changes after it."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hermes.core.paths import is_below
from hermes.files.edit_transaction import author_of
from hermes.stores.checkpoints.checkpoint_store import checkpoints

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes.core.context import ToolContext


# Time limit of a snapshot; after it the command runs without one.
SNAPSHOT_SECONDS = 20.0
# Changes during a longer command may be those of a person.
CERTAIN_SECONDS = 5.0


class _TooLongError(Exception):
    """The snapshot exceeded its time limit."""


@contextmanager
def protected(ctx: ToolContext, *, cwd: str) -> Iterator[list[str]]:
    """Record the files that a command changes; yields notes on files that are not recorded.

    A read-only command needs no snapshot. Changes are recorded at the end of the command, also
    when it fails.

    Args:
        ctx: The call that runs the command.
        cwd: Its working directory.
    """
    effects = ctx.ruling.effects if ctx.ruling is not None else None
    if effects is not None and effects.reads_only:
        yield []
        return
    root = _root(ctx.workspace, cwd)
    if _holds_home(root):
        yield [f"what this changed can't be undone: {root} is not a project but a whole home"]
        return
    store = checkpoints(ctx)
    end = time.monotonic() + SNAPSHOT_SECONDS

    def check() -> None:
        ctx.check_cancelled()
        if time.monotonic() > end:
            raise _TooLongError

    try:
        snapshot = store.snapshot(root, author_of(ctx), progress=ctx.progress, check=check)
    except _TooLongError:
        late = f"{root} holds more than could be kept in {SNAPSHOT_SECONDS:g} s"
        yield [f"what this changed can't be undone: {late}"]
        return
    began = time.monotonic()
    try:
        yield snapshot.notes
    finally:
        store.after_command(snapshot, certain=time.monotonic() - began < CERTAIN_SECONDS)


def _root(workspace: str, cwd: str) -> str:
    """The folder to record: the workspace, or the working directory if that is outside."""
    workspace, cwd = os.path.realpath(workspace), os.path.realpath(cwd)
    return workspace if is_below(cwd, workspace) else cwd


def _holds_home(folder: str) -> bool:
    return is_below(os.path.realpath(os.path.expanduser("~")), folder)
