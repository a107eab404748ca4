"""Folder diff: added, removed and changed paths; symbolic links are not followed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hermes.core.errors import ToolError
from hermes.files.compare.content_diff import CHUNK, read_exactly
from hermes.text.globs import Patterns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from hermes.environments.disk.protocol import Disk, Status

MOST_ENTRIES = 300_000
MOST_SHOWN = 300


class FolderEntry(NamedTuple):
    """One entry of a folder; `target` is that of a symbolic link."""

    status: Status
    target: str = ""


class _Tree:
    """All entries below a folder by path, and the unreadable paths."""

    def __init__(self) -> None:
        self.entries: dict[str, FolderEntry] = {}
        self.closed: dict[str, str] = {}


def compare_folders(
    disk: Disk,
    old: str,
    new: str,
    *,
    exclude: Iterable[str] = (),
    permit: Callable[[str], object] = lambda _: None,
    check: Callable[[str], object] = lambda _: None,
) -> dict[str, Any]:
    """The differences of two folders as JSON for the model.

    Args:
        permit: Called with each file before it is opened; its error becomes part of the result.
        check: Called with a progress text; may raise to stop.
    """
    unwanted = Patterns(exclude)
    left = _walk(disk, old, unwanted, check)
    right = _walk(disk, new, unwanted, check)
    both = sorted(left.entries.keys() & right.entries.keys())
    changed: dict[str, str] = {}
    unseen = {**left.closed, **right.closed}
    for count, path in enumerate(both):
        if count % 200 == 0:
            check(f"{count} of {len(both)} compared")
        real_paths = (_below(old, path), _below(new, path))
        try:
            reason = _difference(disk, real_paths, left.entries[path], right.entries[path], permit)
        except (OSError, ToolError) as error:
            unseen[path] = str(error)
            continue
        if reason:
            changed[path] = reason
    added = sorted(right.entries.keys() - left.entries.keys())
    removed = sorted(left.entries.keys() - right.entries.keys())
    answer: dict[str, Any] = {
        "identical": not (changed or added or removed or unseen),
        "compared": len(both),
        "added": _outermost(added, right),
        "removed": _outermost(removed, left),
        "changed": dict(list(changed.items())[:MOST_SHOWN]),
        "counts": {"added": len(added), "removed": len(removed), "changed": len(changed)},
    }
    if unseen:
        answer["not_compared"] = dict(sorted(unseen.items())[:MOST_SHOWN])
        answer["counts"]["not_compared"] = len(unseen)
    if max(map(len, (answer["added"], answer["removed"], answer["changed"]))) >= MOST_SHOWN:
        answer["notes"] = [f"at most {MOST_SHOWN} paths of each kind are listed; counts are whole"]
    return answer


def _walk(disk: Disk, top: str, unwanted: Patterns, check: Callable[[str], object]) -> _Tree:
    tree = _Tree()
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        try:
            listed = sorted(disk.scan(_below(top, folder)))
        except (OSError, ToolError) as error:
            if not folder:
                raise
            tree.closed[folder] = str(error)
            continue
        for entry in listed:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if unwanted.fit(path):
                continue
            real_path = _below(top, path)
            status = disk.status(real_path)
            if status is None:
                # Gone since the folder was read.
                continue
            if len(tree.entries) % 500 == 0:
                check(f"{len(tree.entries)} entries of {top} seen")
            if len(tree.entries) >= MOST_ENTRIES:
                raise ToolError(
                    f"{top} holds more than {MOST_ENTRIES} entries",
                    hint="Compare parts of it, or leave some out with exclude.",
                )
            target = disk.link_target(real_path) if status.kind == "link" else ""
            tree.entries[path] = FolderEntry(status, target)
            if status.kind == "folder":
                waiting.append(path)
    return tree


def _difference(
    disk: Disk,
    real_paths: tuple[str, str],
    old: FolderEntry,
    new: FolderEntry,
    permit: Callable[[str], object],
) -> str:
    """How two entries of one path differ, in words; nothing when they do not."""
    kinds = old.status.kind, new.status.kind
    if kinds[0] != kinds[1]:
        return f"{kinds[0]} became {kinds[1]}"
    if kinds[0] == "link":
        if old.target != new.target:
            return f"link to {old.target} became link to {new.target}"
        return ""
    if kinds[0] == "file":
        sizes = old.status.size, new.status.size
        if sizes[0] != sizes[1]:
            return f"{sizes[0]} bytes became {sizes[1]}"
        if not _same_file(old, new):
            for real_path in real_paths:
                permit(real_path)
            if not _same_bytes(disk, *real_paths):
                return f"content, {sizes[0]} bytes both"
    if old.status.mode != new.status.mode:
        return f"mode {old.status.mode:o} became {new.status.mode:o}"
    return ""


def _same_file(old: FolderEntry, new: FolderEntry) -> bool:
    left, right = old.status, new.status
    return left.inode != 0 and (left.inode, left.device) == (right.inode, right.device)


def _same_bytes(disk: Disk, old: str, new: str) -> bool:
    with disk.open(old) as left, disk.open(new) as right:
        while True:
            a, b = read_exactly(left, CHUNK), read_exactly(right, CHUNK)
            if a != b:
                return False
            if not a:
                return True


def _outermost(paths: list[str], tree: _Tree) -> list[str]:
    """Sorted paths; a folder stands for its content."""
    shown: list[str] = []
    inside = ""
    for path in sorted(paths, key=lambda path: path.split("/")):
        if inside and path.startswith(inside):
            continue
        inside = path + "/" if tree.entries[path].status.kind == "folder" else ""
        shown.append(inside or path)
        if len(shown) >= MOST_SHOWN:
            break
    return shown


def _below(top: str, path: str) -> str:
    if not path:
        return top
    return f"{top.rstrip('/')}/{path}"
