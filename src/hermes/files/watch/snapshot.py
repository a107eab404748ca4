"""Snapshot of the paths below a folder, to compare with their present state."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Literal

    Kind = Literal["added", "modified", "deleted"]
    Signature = tuple[int, int, int, int] | None

# Beyond this many paths, the system's word is taken for what happened to them.
MOST_KNOWN = 100_000


class Change(NamedTuple):
    """One change; the path is relative to the watched folder, a folder's ends with a slash."""

    kind: Kind
    path: str


class Known:
    """Paths relative to `root`; folders end with a slash. Links are paths, not ways.

    With `signed`, size and times of each file are kept, so that `recount` sees changes.
    """

    def __init__(
        self, root: str, wanted: Callable[[str], bool], *, deep: bool, signed: bool = False
    ) -> None:
        self._root = root
        self._wanted = wanted
        self._deep = deep
        self.signed = signed
        self._paths: dict[str, Signature] = {}
        self.complete = True
        self._paths.update(self._walk(""))

    def settle(self, touched: Iterable[str], said_new: Iterable[str] = ()) -> list[Change]:
        """The changes behind notifications for some paths, filtered."""
        new = set(said_new)
        changes: dict[str, Change] = {}
        for path in sorted(touched):
            for change in self._judge(path, path in new):
                changes.setdefault(change.path, change)
        return list(changes.values())

    def recount(self) -> list[Change]:
        """All additions and removals since the last look, by a full scan."""
        before, self._paths = self._paths, {}
        self._paths.update(self._walk(""))
        now = self._paths
        changes = [Change("deleted", path) for path in before.keys() - now.keys()]
        changes += [Change("added", path) for path in now.keys() - before.keys()]
        changes += [
            Change("modified", path)
            for path, signature in now.items()
            if before.get(path) not in (None, signature)
        ]
        return sorted(changes, key=lambda change: change.path)

    def _judge(self, path: str, said_new: bool) -> Iterator[Change]:
        kind = self._kind(path)
        if kind is None:
            yield from self._gone(path)
        elif kind == "folder":
            if path in self._paths:
                # A file was there before.
                yield from self._gone(path)
            # Seen even when known: what was put into a new folder at once is not announced.
            present = {f"{path}/": None, **dict(self._walk(f"{path}/"))}
            came = [path_below for path_below in present if path_below not in self._paths]
            self._paths.update(present)
            yield from (Change("added", path_below) for path_below in came)
        else:
            if f"{path}/" in self._paths:
                yield from self._gone(path)
            new = path not in self._paths and (self.complete or said_new)
            self._paths[path] = None
            yield Change("added" if new else "modified", path)

    def _gone(self, path: str) -> Iterator[Change]:
        folder = f"{path}/"
        gone = [path] if path in self._paths else []
        if folder in self._paths:
            gone += [path_below for path_below in self._paths if path_below.startswith(folder)]
        elif not gone and not self.complete:
            gone = [path]
        for path_below in gone:
            self._paths.pop(path_below, None)
        yield from (Change("deleted", path_below) for path_below in sorted(gone))

    def _kind(self, path: str) -> str | None:
        import stat

        try:
            mode = os.lstat(os.path.join(self._root, path)).st_mode
        except (OSError, ValueError):
            return None
        return "folder" if stat.S_ISDIR(mode) else "file"

    def _walk(self, top: str) -> Iterator[tuple[str, Signature]]:
        """Every wanted path below a folder, itself not included."""
        waiting = [top]
        count = len(self._paths)
        while waiting:
            folder = waiting.pop()
            try:
                with os.scandir(os.path.join(self._root, folder)) as scanned:
                    entries = list(scanned)
            except OSError:
                continue
            for entry in entries:
                path = folder + entry.name
                if not self._wanted(path):
                    continue
                count += 1
                if count > MOST_KNOWN:
                    self.complete = False
                    return
                if entry.is_dir(follow_symlinks=False):
                    path += "/"
                    if self._deep:
                        waiting.append(path)
                    yield path, None
                else:
                    yield path, _signature(entry) if self.signed else None


def _signature(entry: os.DirEntry[str]) -> Signature:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino
