"""One folder or file of any disk, watched by looking at it again and again."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from hermes.core.errors import ToolError
from hermes.files.choosing import Patterns
from hermes.files.watching.known import Change
from hermes.files.watching.watcher import IGNORED, Watcher, merged

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hermes.files.watching.watcher import Stop
    from hermes.runtime.disk import Disk

    # What a file is known by, and whether it is a folder.
    Seen = dict[str, tuple[object, ...]]

# Each is asked about on its own: more would keep the far side busy with nothing else.
_MOST = 5_000
# How many seconds pass between two looks, and how many times what a look takes.
_POLL, _EASE = 1.0, 5
_STEP = 0.05


class FarWatcher:
    """Collects changes below a place, as `Watcher` does where the system tells of them."""

    complete = True

    def __init__(
        self,
        disk: Disk,
        place: str,
        *,
        globs: Iterable[str] = (),
        ignore: Iterable[str] = IGNORED,
    ) -> None:
        self.remark = f"looked at every second or less often, since it is on {disk.label}"
        self.gone = False
        self._disk = disk
        self._globs = Patterns(globs)
        self._ignored = Patterns(ignore)
        found = disk.status(place)
        whole = found is not None and found.kind == "folder"
        self._root = place if whole else os.path.dirname(place)
        self._only = "" if whole else os.path.basename(place)
        self._identity = self._identified()
        if self._identity is None:
            raise ToolError(f"{self._root} is not there", hint="Watch a folder that exists.")
        self._seen = self._look()
        self._due = time.monotonic() + _POLL

    @property
    def exists(self) -> bool | None:
        """Whether the one path that is watched is there; None where a folder is watched."""
        return self._only in self._seen if self._only else None

    def next(self, seconds: float, quiet: float, stop: Stop) -> list[Change]:
        """Changes, as soon as there are some and then none for `quiet` seconds; none in time."""
        end = time.monotonic() + seconds
        changes: list[Change] = []
        while not self.gone and not stop.is_set():
            now = time.monotonic()
            if now >= self._due:
                more = self._looked()
                changes = merged(changes, more)
                if changes and (not more or quiet <= _POLL):
                    return changes
                end = max(end, self._due) if changes else end
            elif now >= end:
                return changes
            else:
                time.sleep(min(_STEP, end - now))
        return changes

    def close(self) -> None:
        """Nothing is kept open."""

    def _looked(self) -> list[Change]:
        begun = time.monotonic()
        if self._identified() != self._identity:
            self.gone = True
            return []
        before, self._seen = self._seen, self._look()
        self._due = time.monotonic() + max(_POLL, _EASE * (time.monotonic() - begun))
        return [change for change in _between(before, self._seen) if self._shown(change.path)]

    def _look(self) -> Seen:
        if self._only:
            signed = self._signed(os.path.join(self._root, self._only))
            return {} if signed is None else {self._only: signed}
        return dict(self._below(""))

    def _below(self, path: str) -> Iterator[tuple[str, tuple[object, ...]]]:
        """Every path below the root and what it is known by; links are not followed."""
        folders = [path]
        count = 0
        while folders:
            folder = folders.pop()
            try:
                entries = list(self._disk.scan(os.path.join(self._root, folder).rstrip("/")))
            except (FileNotFoundError, NotADirectoryError):
                continue
            for entry in entries:
                below = f"{folder}{entry.name}"
                if self._ignored.fit(below):
                    continue
                count += 1
                if count > _MOST:
                    raise ToolError(
                        f"more than {_MOST} files are below {self._root}",
                        hint="Watch a smaller folder.",
                    )
                if entry.kind == "folder":
                    folders.append(f"{below}/")
                    yield f"{below}/", ("folder",)
                elif (signed := self._signed(os.path.join(self._root, below))) is not None:
                    yield below, signed

    def _signed(self, place: str) -> tuple[object, ...] | None:
        found = self._disk.status(place)
        return found and (found.kind, found.size, found.mtime_ns, found.inode)

    def _identified(self) -> tuple[int, int] | None:
        found = self._disk.status(self._root)
        if found is None or found.kind != "folder":
            return None
        return found.device, found.inode

    def _shown(self, path: str) -> bool:
        return not self._globs or self._globs.fit(path.rstrip("/"))


AnyWatcher = Watcher | FarWatcher


def _between(before: Seen, after: Seen) -> Iterator[Change]:
    """What became of every path from one look to the next."""
    for path, signed in after.items():
        if path not in before:
            yield Change("added", path)
        elif before[path] != signed:
            yield Change("modified", path)
    for path in before:
        if path not in after:
            yield Change("deleted", path)
