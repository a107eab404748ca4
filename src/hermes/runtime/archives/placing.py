"""From a finished folder to the target, without overwriting: all of it, or nothing."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from hermes.runtime.archives.values import ArchiveError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def staging(target: str) -> Iterator[str]:
    """A private folder near the target, which ends as the target or leaves nothing behind."""
    parent = os.path.dirname(target)
    made = _make_parents(parent)
    draft = os.path.join(_near(parent, target), f".{os.urandom(12).hex()}.unpacking")
    placed: list[tuple[str, str]] = []
    try:
        os.mkdir(draft, 0o700)
        yield draft
        _check_free(draft, target)
        _place(draft, target, placed)
    except BaseException:
        for source, destination in reversed(placed):
            if not os.path.lexists(source):
                _remove(destination)
        _remove(draft)
        for folder in reversed(made):
            with suppress(OSError):
                os.rmdir(folder)
        raise
    _remove(draft)


def usual_mode(draft: str) -> int:
    """The permissions that a new folder gets here, all that the umask leaves."""
    # To ask for the umask is to set it, for every thread.
    probe = os.path.join(draft, ".mode")
    os.mkdir(probe, 0o777)
    mode = stat.S_IMODE(os.stat(probe).st_mode) & 0o777
    os.rmdir(probe)
    return mode


def _make_parents(folder: str) -> list[str]:
    """Make a folder and those above it; what was made, outermost first."""
    missing = []
    while not os.path.lexists(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    missing.reverse()
    for count, path in enumerate(missing):
        try:
            os.mkdir(path)
        except BaseException:
            for done in reversed(missing[:count]):
                os.rmdir(done)
            raise
    return missing


def _near(parent: str, target: str) -> str:
    """Where a folder can be renamed to the target, or its entries into it."""
    if not os.path.lexists(target):
        return parent
    if not os.path.isdir(target):
        raise ArchiveError(f"the target {target!r} is there already, and is no folder")
    apart = os.stat(parent).st_dev != os.stat(target).st_dev or os.path.ismount(target)
    return target if apart or not os.access(parent, os.W_OK | os.X_OK) else parent


def _check_free(draft: str, target: str) -> None:
    """Raise if anything in the draft has its place taken; folders may meet folders."""
    if not os.path.lexists(target):
        return
    with os.scandir(draft) as entries:
        for entry in entries:
            place = os.path.join(target, entry.name)
            if _both_folders(entry, place):
                _check_free(entry.path, place)
            elif os.path.lexists(place):
                raise ArchiveError(
                    f"{place!r} is there already, and nothing is overwritten",
                    hint="Unpack into an empty folder.",
                )


def _place(draft: str, target: str, placed: list[tuple[str, str]]) -> None:
    if not os.path.lexists(target):
        # Noted first: an interruption may come before the next line.
        placed.append((draft, target))
        os.rename(draft, target)
        return
    with os.scandir(draft) as entries:
        listed = list(entries)
    for entry in listed:
        place = os.path.join(target, entry.name)
        if _both_folders(entry, place):
            _place(entry.path, place, placed)
        elif os.path.lexists(place):
            raise ArchiveError(f"{place!r} has appeared meanwhile, and nothing is overwritten")
        else:
            placed.append((entry.path, place))
            os.rename(entry.path, place)


def _both_folders(entry: os.DirEntry[str], place: str) -> bool:
    if not entry.is_dir(follow_symlinks=False):
        return False
    try:
        # A link to a folder is not one: it may lead out of the target.
        return stat.S_ISDIR(os.lstat(place).st_mode)
    except FileNotFoundError:
        return False


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        import shutil

        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            os.unlink(path)
