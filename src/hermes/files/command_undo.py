"""Undo for shell commands: a snapshot of the workspace before the command, its changes after it;
what that would not cover of paths that a command is about to destroy."""

from __future__ import annotations

import os
import stat
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from hermes.core.errors import ToolError
from hermes.core.log import Log
from hermes.core.paths import is_below
from hermes.core.protocols import Coverage, Uncovered
from hermes.files.edit_transaction import author_of
from hermes.stores.checkpoints.checkpoint_store import checkpoints

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hermes.core.context import ToolContext
    from hermes.core.protocols import CallEffects
    from hermes.environments.background import Background
    from hermes.stores.checkpoints import Checkpoints, Snapshot


log = Log("hermes.undo")

# How long the files of a first snapshot are read in front of a command that names none of them.
PATIENCE_SECONDS = 0.5
# Time limit of a snapshot; after it the command runs without one.
SNAPSHOT_SECONDS = 20.0
# Changes during a longer command may be those of a person.
CERTAIN_SECONDS = 5.0
# How often a background command is looked at.
_POLL_SECONDS = 0.2


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
    snapshot, notes = _taken(ctx, cwd)
    began = time.monotonic()
    try:
        yield notes
    finally:
        if snapshot is not None:
            certain = time.monotonic() - began < CERTAIN_SECONDS
            checkpoints(ctx).after_command(snapshot, certain=certain)


def start_protected(
    ctx: ToolContext, start: Callable[[], Background], *, cwd: str
) -> tuple[Background, list[str]]:
    """Start a background command; the files that it changes until its end are recorded.

    Where the program ends first, they are recorded at its next start. Returns the command and notes
    on files that are not recorded.
    """
    snapshot, notes = _taken(ctx, cwd, background=True)
    store, began = checkpoints(ctx), time.monotonic()
    try:
        started = start()
    except BaseException:
        if snapshot is not None:
            store.after_command(snapshot)
        raise
    if snapshot is not None:

        def record() -> None:
            while started.state == "running":
                time.sleep(_POLL_SECONDS)
            # Where the store is gone, there is nothing to record for.
            with suppress(ToolError, OSError):
                store.after_command(snapshot, certain=time.monotonic() - began < CERTAIN_SECONDS)

        threading.Thread(target=record, name="hermes-undo", daemon=True).start()
    return started, notes


def _taken(
    ctx: ToolContext, cwd: str, *, background: bool = False
) -> tuple[Snapshot | None, list[str]]:
    """A snapshot before a command, None where there is none, and notes on what is not protected."""
    effects = ctx.ruling.effects if ctx.ruling is not None else None
    if effects is not None and effects.reads_only:
        return None, []
    root = _root(ctx.workspace, cwd)
    if _holds_home(root):
        return None, [
            f"what this changed can't be undone: {root} is not a project but a whole home"
        ]
    end = time.monotonic() + SNAPSHOT_SECONDS
    patience, named = _reach(effects, cwd)

    def check() -> None:
        ctx.check_cancelled()
        if time.monotonic() > end:
            raise _TooLongError

    try:
        snapshot = checkpoints(ctx).snapshot(
            root, author_of(ctx), progress=ctx.progress, check=check, background=background,
            patience=patience, first=named,
        )  # fmt: skip
    except _TooLongError:
        late = f"{root} holds more than could be kept in {SNAPSHOT_SECONDS:g} s"
        return None, [f"what this changed can't be undone: {late}"]
    if snapshot.later:
        _keep_later(checkpoints(ctx), snapshot.root)
    return snapshot, snapshot.notes


def _reach(effects: CallEffects | None, cwd: str) -> tuple[float | None, list[str]]:
    """How long a command may wait for its snapshot, and the paths that it names.

    None where it is known to destroy something, or where nothing is known of it.
    """
    if effects is None:
        return None, []
    named = []
    for act in effects.commands():
        verdict = effects.verdict(act)
        if any(finding.kind == "inside" for finding in verdict.findings):
            return None, []
        for word in (word for words in verdict.commands for word in words[1:]):
            # A pattern means any name in its folder.
            plain = os.path.dirname(word) if any(sign in word for sign in "*?[") else word
            path = os.path.join(effects.cwd(act) or cwd, plain)
            if os.path.lexists(path):
                named.append(path)
    return PATIENCE_SECONDS, named


_keeping: set[str] = set()


def _keep_later(store: Checkpoints, root: str) -> None:
    """Read the rest of a first snapshot in the background, a bit at a time."""

    def keep() -> None:
        left, before = 1, 0
        try:
            # Where nothing more can be read, the rest is past the limits.
            while left and left != before:
                left, before = store.keep(root, seconds=PATIENCE_SECONDS), left
                time.sleep(_POLL_SECONDS)
        except (ToolError, OSError) as error:
            log.warning("the snapshot of %s is not complete: %s", root, error)
        finally:
            _keeping.discard(root)

    if root not in _keeping:
        _keeping.add(root)
        threading.Thread(target=keep, name="hermes-snapshot", daemon=True).start()


def _root(workspace: str, cwd: str) -> str:
    """The folder to record: the workspace, or the working directory if that is outside."""
    workspace, cwd = os.path.realpath(workspace), os.path.realpath(cwd)
    return workspace if is_below(cwd, workspace) else cwd


def _holds_home(folder: str) -> bool:
    return is_below(os.path.realpath(os.path.expanduser("~")), folder)


# How many uncovered files are named.
_NAMED = 20


def coverage(paths: Sequence[str], context: ToolContext, *, cwd: str = "") -> Coverage:
    """What undo would not restore of some paths and everything in them; see `UndoCoverage`."""
    folder = os.path.realpath(cwd or context.cwd)
    root = _root(context.workspace, folder)
    store = checkpoints(context)
    room = store.room()
    uncovered: list[Uncovered] = []
    # The files that are neither ignored nor ours, by the given path.
    files: dict[str, set[str]] = {}
    places = []
    for path in paths:
        absolute = os.path.join(folder, os.path.expanduser(path))
        # A link itself is destroyed, not its target.
        lead, name = os.path.split(absolute.rstrip("/") or "/")
        real = os.path.join(os.path.realpath(lead), name)
        if not os.path.lexists(real):
            files[path] = set()
            continue
        if not is_below(real, root) or _holds_home(root):
            why = f"outside of {root}" if not is_below(real, root) else "a whole home folder"
            uncovered.append(Uncovered(real, os.lstat(real).st_size, why))
            files[path] = {real}
            continue
        files[path] = set()
        places.append(real)
        for found, status in _below(real):
            files[path].add(found)
            why = _unrestorable(found, status) or store.refusal(found, status, root=root, room=room)
            if why:
                uncovered.append(Uncovered(found, status.st_size, why))
    uncovered.sort(key=lambda one: (-one.size, one.path))
    kept = _not_ignored(root, places, {one for found in files.values() for one in found})
    made = store.made_below(root, context.session_id) if kept else set()
    disposable = {}
    for path, inside in files.items():
        visible = inside & kept
        if not visible - made:
            by_session = "made in this session"
            disposable[path] = by_session if visible else "ignored by git" if inside else "empty"
    return Coverage(tuple(uncovered[:_NAMED]), max(0, len(uncovered) - _NAMED), disposable)


def _below(path: str) -> Iterator[tuple[str, os.stat_result]]:
    """A file, or every file below a folder; unreadable folders, too."""
    status = os.lstat(path)
    if not stat.S_ISDIR(status.st_mode):
        yield path, status
        return
    queue = [path]
    for folder in queue:
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        queue.append(entry.path)
                    else:
                        yield entry.path, entry.stat(follow_symlinks=False)
        except OSError:
            yield folder, os.lstat(folder)


def _unrestorable(path: str, status: os.stat_result) -> str:
    """Why the state of a path can't be kept at all; empty where it can."""
    if stat.S_ISLNK(status.st_mode):
        return ""
    if stat.S_ISDIR(status.st_mode) or not os.access(path, os.R_OK):
        return "not readable"
    plain = stat.S_ISREG, stat.S_ISFIFO, stat.S_ISSOCK
    return "" if any(one(status.st_mode) for one in plain) else "a device"


def _not_ignored(root: str, places: Sequence[str], files: set[str]) -> set[str]:
    """Those of the files at some places that git does not ignore; all where it knows nothing."""
    from hermes.files.compare.content_diff import run_git

    words = ("--literal-pathspecs", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    try:
        listed = run_git(root, (*words, "--", *places))
    except (ToolError, OSError):
        return files
    if listed.returncode:
        return files
    names = {os.path.join(root, os.fsdecode(name)) for name in listed.stdout.split(b"\0") if name}
    # A repository in the repository is one name with a slash; git's own folder has none.
    inner = tuple(name for name in names if name.endswith("/"))
    return {
        path
        for path in files
        if path in names or path.startswith(inner) or f"{os.sep}.git{os.sep}" in f"{path}{os.sep}"
    }
