"""Placement: move a complete staging folder into the target by renames, all or nothing."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from hermes.files.archives.limits import ArchiveError, Placed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hermes.files.archives.limits import Existing


class Draft:
    """The private staging folder, and the existing files that it met; paths below the target."""

    __slots__ = ("folder", "replaced", "skipped", "skipped_bytes")

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.skipped: list[str] = []
        self.skipped_bytes = 0
        self.replaced: list[str] = []


class Move(NamedTuple):
    """A part of the draft, where it goes, and whether it takes the place of something."""

    source: str
    place: str
    replaces: bool


@contextmanager
def staging(
    target: str,
    existing: Existing = "refuse",
    before: Callable[[list[Placed]], object] | None = None,
) -> Iterator[Draft]:
    """A private folder near the target, which ends as the target or leaves nothing behind."""
    missing = _missing(os.path.dirname(target))
    near = os.path.dirname(missing[0]) if missing else _near(os.path.dirname(target), target)
    name = os.path.join(near, f".{os.urandom(12).hex()}.unpacking")
    draft = Draft(name)
    # Whatever is replaced waits here until everything is in its place.
    aside = f"{name}.old"
    done: list[tuple[str, str]] = []
    try:
        os.mkdir(name, 0o700)
        yield draft
        moves = list(_moves(draft, target, "", existing))
        if before is not None:
            above = [Placed(folder, "") for folder in missing]
            before([*above, *(placed for move in moves for placed in _all(move, name, target))])
        for folder in missing:
            done.append(("", folder))
            os.mkdir(folder)
        if draft.replaced:
            os.mkdir(aside, 0o700)
        _move(moves, aside, done)
    except BaseException:
        _undo(done)
        _remove(name)
        _remove(aside)
        raise
    _remove(name)
    _remove(aside)


def usual_mode(draft: str) -> int:
    """The permissions that a new folder gets here, all that the umask leaves."""
    # To ask for the umask is to set it, for every thread.
    probe = os.path.join(draft, ".mode")
    os.mkdir(probe, 0o777)
    mode = stat.S_IMODE(os.stat(probe).st_mode) & 0o777
    os.rmdir(probe)
    return mode


def _missing(folder: str) -> list[str]:
    """The folders that have to be made, outermost first."""
    missing = []
    while not os.path.lexists(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    missing.reverse()
    return missing


def _near(parent: str, target: str) -> str:
    """Where a folder can be renamed to the target, or its entries into it."""
    if not os.path.lexists(target):
        return parent
    if not os.path.isdir(target):
        raise ArchiveError(f"the target {target!r} is there already, and is no folder")
    apart = os.stat(parent).st_dev != os.stat(target).st_dev or os.path.ismount(target)
    return target if apart or not os.access(parent, os.W_OK | os.X_OK) else parent


def _moves(draft: Draft, target: str, path: str, existing: Existing) -> Iterator[Move]:
    """Which part of the draft goes where; folders may meet folders, nothing else meets a folder."""
    if not os.path.lexists(target):
        yield Move(os.path.join(draft.folder, path), target, False)
        return
    with os.scandir(os.path.join(draft.folder, path)) as scanned:
        entries = sorted(scanned, key=lambda entry: entry.name)
    for entry in entries:
        below = f"{path}/{entry.name}" if path else entry.name
        real_path = os.path.join(target, entry.name)
        kind = _kind(real_path)
        folder = entry.is_dir(follow_symlinks=False)
        if folder and kind == "folder":
            yield from _moves(draft, real_path, below, existing)
        elif kind == "nothing":
            yield Move(entry.path, real_path, False)
        elif folder or kind == "folder" or existing == "refuse":
            raise ArchiveError(
                f"{real_path!r} is there already, and nothing is overwritten",
                hint="Unpack into an empty folder.",
            )
        elif existing == "skip":
            draft.skipped.append(below)
            if entry.is_file(follow_symlinks=False):
                draft.skipped_bytes += entry.stat(follow_symlinks=False).st_size
        else:
            draft.replaced.append(below)
            yield Move(entry.path, real_path, True)


def _move(moves: list[Move], aside: str, done: list[tuple[str, str]]) -> None:
    """Rename everything; a step is noted first: an interruption may come before the next line."""
    for number, (source, real_path, replaces) in enumerate(moves):
        kind = _kind(real_path)
        if kind == "folder" or (kind != "nothing" and not replaces):
            raise ArchiveError(f"{real_path!r} has appeared meanwhile, and nothing is overwritten")
        if kind != "nothing":
            kept = os.path.join(aside, str(number))
            done.append((real_path, kept))
            os.rename(real_path, kept)
        done.append((source, real_path))
        os.rename(source, real_path)


def _undo(done: list[tuple[str, str]]) -> None:
    """Take every step back that was made, last first; a source of `""` is a folder made."""
    for source, real_path in reversed(done):
        if not source:
            with suppress(OSError):
                os.rmdir(real_path)
        elif not os.path.lexists(source) and os.path.lexists(real_path):
            with suppress(OSError):
                os.rename(real_path, source)


def _all(move: Move, draft: str, target: str) -> Iterator[Placed]:
    """Every path that a move creates, with its source."""
    yield Placed(move.place, move.source)
    if os.path.isdir(move.source) and not os.path.islink(move.source):
        for above, folders, files in os.walk(move.source):
            below = os.path.normpath(os.path.join(target, os.path.relpath(above, draft)))
            for name in (*folders, *files):
                yield Placed(os.path.join(below, name), os.path.join(above, name))


def _kind(real_path: str) -> str:
    try:
        # A link to a folder is not one: it may lead out of the target.
        return "folder" if stat.S_ISDIR(os.lstat(real_path).st_mode) else "file"
    except FileNotFoundError:
        return "nothing"


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        import shutil

        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            os.unlink(path)
