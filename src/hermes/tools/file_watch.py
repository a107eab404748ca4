"""`file_watch`: wait for file changes, or collect them in the background."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Literal

from hermes.core import ToolContext, ToolError, needs, tool
from hermes.core.schema import Field

if TYPE_CHECKING:
    from typing import Any

    from hermes.files.watch.watcher import AnyWatcher, BackgroundWatches, Change

_HOUR = 3600
_SLICE = 1.0


@tool(
    toolset="file",
    permissions=["file:read"],
    effect="read",
    acts={"path": "read"},
    check_fn=needs("watchfiles"),
    emoji="👀",
    aliases=["watch_files", "watch"],
    max_result_size_chars=50_000,
    tags=[
        "wait until a file appears", "monitor folder", "notice changes", "inotify", "notify me",
        "file created", "modified files", "build output", "on change", "tail directory",
    ],
)  # fmt: skip
def file_watch(
    ctx: ToolContext,
    action: Literal["wait", "start", "collect", "list", "stop"],
    path: str | None = None,
    globs: list[str] | None = None,
    timeout: Annotated[float, Field(ge=0, le=_HOUR)] = 60,
    debounce: Annotated[float, Field(ge=0, le=60)] = 0.2,
    name: str | None = None,
    everything: bool = False,
    limit: Annotated[int, Field(ge=1, le=5000)] = 500,
) -> dict[str, Any]:
    """Wait for changes of files, or watch in the background and collect the changes later.

    Args:
        action: `wait` for changes now; `start`, then `collect`, `list` or `stop` a watch.
        path: Folder or file; a file need not exist yet. For wait and start.
        globs: Only report paths that fit, such as `*.py` or `src/**`.
        timeout: Seconds to wait at most.
        debounce: Seconds without a change that end a batch.
        name: Of the watch.
        everything: Also report `.git` and `node_modules`.
        limit: How many changes to report.
    """
    if action == "wait":
        return _wait(ctx, _watcher(ctx, path, globs, everything), timeout, debounce, limit)
    watches = _watches(ctx)
    if action == "list":
        shown = [
            {"name": watch.name, "path": watch.watched, "pending": watch.pending}
            for watch in watches.all()
        ]
        return {"watches": shown}
    if action == "start":
        watched = _required(path)
        watch = watches.start(
            name or "", watched, lambda: _watcher(ctx, watched, globs, everything)
        )
        return {"name": watch.name, "path": watched, **_remarks(watch.watcher)}
    if action == "stop":
        return {"stopped": watches.stop(name or "").name}
    watch = watches.get(name or "")
    changes = watch.collect()
    answer = {"name": watch.name, **_told(changes.changes, limit)}
    if changes.lost:
        answer["lost"] = changes.lost
        answer["note"] = "too many changes to keep them all; look at the folder itself"
    if changes.gone:
        answer["gone"] = f"{watch.watched} was deleted or moved; this watch has ended"
    if changes.failure:
        answer["failed"] = changes.failure
    return answer


def _wait(
    ctx: ToolContext, watcher: AnyWatcher, timeout: float, debounce: float, limit: int
) -> dict[str, Any]:
    import time

    from hermes.files.watch.watcher import Stop

    begun = time.monotonic()
    stop = Stop(lambda: ctx.cancelled)
    changes: list[Change] = []
    try:
        remarks = _remarks(watcher)
        while not changes and not watcher.gone:
            left = begun + timeout - time.monotonic()
            if left <= 0:
                break
            changes = watcher.next(min(left, _SLICE), debounce, stop)
            ctx.check_cancelled()
            if not changes and timeout > 0:
                ctx.progress(f"{left:.0f} s left", fraction=min(1.0, 1 - left / timeout))
    finally:
        watcher.close()
    answer = {**_told(changes, limit), "seconds": round(time.monotonic() - begun, 2), **remarks}
    if watcher.exists is not None:
        answer["exists"] = watcher.exists
    if watcher.gone:
        answer["gone"] = "what was watched was deleted or moved"
    elif not changes:
        answer["timed_out"] = True
    return answer


def _watcher(
    ctx: ToolContext, path: str | None, globs: list[str] | None, everything: bool
) -> AnyWatcher:
    from hermes.environments.for_task import disk_of
    from hermes.files.watch.watcher import IGNORED, FarWatcher, Watcher

    disk = disk_of(ctx)
    real_path = ctx.resolve_path(_required(path), "read")
    ignore = () if everything else IGNORED
    if disk.label == "local":
        return Watcher(real_path, globs=globs or (), ignore=ignore)
    return FarWatcher(disk, real_path, globs=globs or (), ignore=ignore)


def _watches(ctx: ToolContext) -> BackgroundWatches:
    from hermes.files.watch.watcher import BackgroundWatches

    kept: BackgroundWatches = ctx.task.keep(
        "file_watches", BackgroundWatches, BackgroundWatches.close
    )
    return kept


def _required(path: str | None) -> str:
    if not path:
        raise ToolError("which path is to be watched?", hint="Give path.")
    return path


def _remarks(watcher: AnyWatcher) -> dict[str, Any]:
    notes = []
    if watcher.remark:
        notes.append(watcher.remark)
    if not watcher.complete:
        notes.append("too many files to know them all: replaced files may be reported as added")
    return {"notes": notes} if notes else {}


def _told(changes: list[Change], limit: int) -> dict[str, Any]:
    """Changes by kind, with sorted paths."""
    answer: dict[str, Any] = {"changes": len(changes)}
    shown = sorted(changes, key=lambda change: change.path)[:limit]
    for kind in ("added", "modified", "deleted"):
        paths = [os.fspath(change.path) for change in shown if change.kind == kind]
        if paths:
            answer[kind] = paths
    if len(changes) > limit:
        answer["not_shown"] = len(changes) - limit
    return answer
