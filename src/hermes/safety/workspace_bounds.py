"""Workspace bounds: the paths a command writes, against the folders open to it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

from hermes.core.paths import is_below

_EVERYWHERE = {"allow_write": ["/**"], "deny": []}
_TEMPORARY = ("/tmp", "/var/tmp", "/private/tmp", "/private/var/tmp", "/var/folders", "/dev/shm")
# Below home: what programs fill and anybody may empty.
_CACHES = (".cache", "Library/Caches", ".npm", ".gradle/caches", ".m2/repository", "go/pkg/mod")
# More places than a person would look through.
_MOST = 500


def outside(
    writes: Mapping[str, str], *, workspace: str, home: str
) -> Iterator[tuple[str, str, str]]:
    """The places that a person has to be asked about: path, command and why.

    Args:
        writes: Absolute paths, each with the command that writes there.
        workspace: The folder that is open.
        home: Home directory of the user.
    """
    from hermes.safety.paths import check_path
    from hermes.safety.shell.path_classes import is_null

    open_ = _open_folders(home)
    base = os.path.realpath(workspace)
    for count, (path, command) in enumerate(writes.items()):
        if count >= _MOST:
            yield path, command, "it writes to more places than can be looked through"
            return
        # What can't be known of a name is a name all the same.
        shown = "".join("…" if "\ue000" <= char <= "\ue0ff" else char for char in path)
        decision = check_path(shown, "write", rules=_EVERYWHERE, cwd=base, home=home)
        if decision.resolved is None:
            if not is_open(shown, open_, base):
                yield path, command, f"it writes to {shown}, outside the workspace"
        elif is_null(decision.resolved):
            continue
        elif not decision.allowed:
            yield path, command, f"it writes where it may not: {decision.reason}"
        elif not is_open(decision.resolved, open_, base):
            yield path, command, f"it writes to {decision.resolved}, outside the workspace"


def is_inside(folder: str, *, workspace: str, home: str) -> bool:
    """Whether commands may change things in a folder unasked."""
    base = os.path.realpath(workspace)
    return is_open(os.path.realpath(folder), _open_folders(home), base)


def is_open(place: str, folders: tuple[str, ...], workspace: str) -> bool:
    """Whether a path is in the workspace, or in a shared temporary or cache folder."""
    if is_below(place, workspace):
        return True
    for folder in folders:
        if is_below(place, folder):
            # Next to a workspace that is itself a temporary folder are other people's.
            return not is_below(workspace, _top(place, folder))
    return False


def _open_folders(home: str) -> tuple[str, ...]:
    import tempfile

    given = (os.environ.get("TMPDIR"), os.environ.get("XDG_CACHE_HOME"), tempfile.gettempdir())
    caches = [os.path.join(home, name) for name in _CACHES]
    found = [*_TEMPORARY, *filter(None, given), *caches]
    real = [os.path.realpath(folder) for folder in found if os.path.isabs(folder)]
    # `TMPDIR=/` would open everything.
    return tuple(folder for folder in real if folder not in ("/", os.path.realpath(home)))


def _top(place: str, folder: str) -> str:
    """The entry of a folder in which a place is."""
    rest = place[len(folder) :].lstrip("/")
    return os.path.join(folder, rest.partition("/")[0]) if rest else folder
