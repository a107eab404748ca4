"""Watch files: notifications and snapshots -> changes, batched and filtered; polling on remote
disks;
watches that run between calls.
"""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.errors import ToolError
from hermes.text.globs import Patterns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, Literal

    from hermes.environments.disk.protocol import Disk


if TYPE_CHECKING:
    Kind = Literal["added", "modified", "deleted"]
    Signature = tuple[int, int, int, int] | None

# Beyond this many paths, the system's word is taken for what happened to them.
MOST_KNOWN = 100_000


class Change(NamedTuple):
    """One change; the path is relative to the watched folder, a folder's ends with a slash."""

    kind: Kind
    path: str


class FolderSnapshot:
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


IGNORED = (".git", "node_modules")
# How often somebody who waits looks up, in milliseconds.
_STEP = 50
# How many seconds pass between two looks at every file, and how many times what a look takes.
_POLL, _EASE = 0.5, 10
_ADDED = 1
# Changes that never pause are reported all the same, after this many quiet times.
_LONGEST = 10


class Stop:
    """Asked by the watching library, again and again, whether to stop."""

    def __init__(self, asked: Callable[[], bool]) -> None:
        self.is_set = asked


class Watcher:
    """Collects changes below a path by system notifications, from its construction on; close it.

    A single file, or a missing path, is watched through its parent folder.
    """

    def __init__(
        self,
        real_path: str,
        *,
        globs: Iterable[str] = (),
        ignore: Iterable[str] = IGNORED,
        polling: bool = False,
    ) -> None:
        self.polling = polling
        self.gone = False
        self._due = 0.0
        self._globs = Patterns(globs)
        self._ignored = Patterns(ignore)
        whole = os.path.isdir(real_path)
        self._root = real_path if whole else os.path.dirname(real_path)
        self._only = "" if whole else os.path.basename(real_path)
        if not os.path.isdir(self._root):
            raise ToolError(f"{self._root} is not there", hint="Watch a folder that exists.")
        self._notify = self._opened()
        # After the watcher is at work, so that nothing falls between.
        self._identity = self._identified()
        self._known = FolderSnapshot(self._root, self._wanted, deep=whole, signed=self.polling)

    @property
    def remark(self) -> str:
        """A note on polling; empty with system notifications."""
        if not self.polling:
            return ""
        return "the system has no watches left: looked at every half second instead"

    @property
    def complete(self) -> bool:
        """Whether the snapshot is complete, so that additions can be told apart from changes."""
        return self._known.complete

    @property
    def exists(self) -> bool | None:
        """Whether the one path that is watched is there; None where a folder is watched."""
        return os.path.lexists(os.path.join(self._root, self._only)) if self._only else None

    def next(self, seconds: float, quiet: float, stop: Stop) -> list[Change]:
        """Changes, as soon as there are some and then none for `quiet` seconds; none in time."""
        end = time.monotonic() + seconds
        changes: list[Change] = []
        while not changes and not self.gone and not stop.is_set():
            left = end - time.monotonic()
            if left <= 0:
                return []
            changes = self._drained(left, stop)
        end = time.monotonic() + quiet * _LONGEST
        while changes and quiet > 0 and not self.gone and not stop.is_set():
            more = self._drained(min(quiet, max(0.0, end - time.monotonic())), stop)
            if not more:
                break
            changes = merged(changes, more)
        return changes

    def close(self) -> None:
        """Stop watching."""
        if self._notify is not None:
            self._notify.close()

    def _drained(self, seconds: float, stop: Stop) -> list[Change]:
        from watchfiles._rust_notify import WatchfilesRustInternalError

        if self._notify is None:
            return self._polled(seconds, stop)
        wait = max(1, int(seconds * 1000))
        try:
            notices = self._notify.watch(_STEP, _STEP, wait, stop)
        except (WatchfilesRustInternalError, OSError):
            # Such as a name that is no text: look for ourselves, and begin anew.
            return self._renewed()
        if notices == "signal":
            raise KeyboardInterrupt
        if self._identified() != self._identity:
            self.gone = True
        if isinstance(notices, str):
            return []
        touched = {
            kind_path[1]: kind_path[0] == _ADDED for kind_path in sorted(notices, reverse=True)
        }
        paths = {below: new for path, new in touched.items() if (below := self._below(path))}
        changes = self._known.settle(paths, (path for path, new in paths.items() if new))
        return [change for change in changes if self._shown(change.path)]

    def _polled(self, seconds: float, stop: Stop) -> list[Change]:
        """The changes by a full scan, if one is due."""
        end = time.monotonic() + seconds
        while time.monotonic() < min(end, self._due):
            if stop.is_set():
                return []
            time.sleep(min(_STEP / 1000, max(0.0, min(end, self._due) - time.monotonic())))
        begun = time.monotonic()
        if begun < self._due:
            return []
        if self._identified() != self._identity:
            self.gone = True
            return []
        changes = self._known.recount()
        self._due = time.monotonic() + max(_POLL, _EASE * (time.monotonic() - begun))
        return [change for change in changes if self._shown(change.path)]

    def _renewed(self) -> list[Change]:
        self.close()
        if self._identified() != self._identity:
            self.gone = True
            return []
        self._notify = self._opened()
        self._known.signed = self.polling
        return [change for change in self._known.recount() if self._shown(change.path)]

    def _opened(self) -> Any:
        """The library's watcher; none where there is none to be had, and one looks oneself."""
        if self.polling:
            return None
        from watchfiles._rust_notify import RustNotify

        try:
            return RustNotify([self._root], False, False, 0, not self._only, True)
        except OSError:
            # The system has only so many watches to give.
            self.polling = True
            return None

    def _identified(self) -> tuple[int, int] | None:
        try:
            status = os.lstat(self._root)
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _below(self, path: str) -> str:
        """A path from the root, when it is wanted and no link leads to it; else nothing."""
        top = os.path.join(self._root, "")
        if not path.startswith(top):
            return ""
        below = path[len(top) :]
        folder = os.path.dirname(path)
        if not below or not self._wanted(below) or os.path.realpath(folder) != folder:
            return ""
        return below

    def _wanted(self, path: str) -> bool:
        if self._only:
            return path == self._only
        return not self._ignored.fit(path.rstrip("/"))

    def _shown(self, path: str) -> bool:
        return not self._globs or self._globs.fit(path.rstrip("/"))


def merged(earlier: Iterable[Change], later: Iterable[Change]) -> list[Change]:
    """Two batches of changes merged into their net effect."""
    changes = {change.path: change for change in earlier}
    for change in later:
        before = changes.get(change.path)
        if before is None:
            changes[change.path] = change
        elif before.kind == "added" and change.kind == "deleted":
            del changes[change.path]
        elif before.kind == "deleted" and change.kind == "added":
            changes[change.path] = Change("modified", change.path)
        elif not (before.kind == "added" and change.kind == "modified"):
            changes[change.path] = change
    return list(changes.values())


if TYPE_CHECKING:
    # What a file is known by, and whether it is a folder.
    Seen = dict[str, tuple[object, ...]]

# Each is asked about on its own: more would keep the far side busy with nothing else.
_MOST = 5_000
# How many seconds pass between two looks, and how many times what a look takes.
_FAR_POLL, _FAR_EASE = 1.0, 5
_FAR_STEP = 0.05


class FarWatcher:
    """Collects changes below a path by polling, for disks without notifications."""

    complete = True

    def __init__(
        self,
        disk: Disk,
        real_path: str,
        *,
        globs: Iterable[str] = (),
        ignore: Iterable[str] = IGNORED,
    ) -> None:
        self.remark = f"looked at every second or less often, since it is on {disk.label}"
        self.gone = False
        self._disk = disk
        self._globs = Patterns(globs)
        self._ignored = Patterns(ignore)
        found = disk.status(real_path)
        whole = found is not None and found.kind == "folder"
        self._root = real_path if whole else os.path.dirname(real_path)
        self._only = "" if whole else os.path.basename(real_path)
        self._identity = self._identified()
        if self._identity is None:
            raise ToolError(f"{self._root} is not there", hint="Watch a folder that exists.")
        self._seen = self._look()
        self._due = time.monotonic() + _FAR_POLL

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
                if changes and (not more or quiet <= _FAR_POLL):
                    return changes
                end = max(end, self._due) if changes else end
            elif now >= end:
                return changes
            else:
                time.sleep(min(_FAR_STEP, end - now))
        return changes

    def close(self) -> None:
        """Nothing is kept open."""

    def _looked(self) -> list[Change]:
        begun = time.monotonic()
        if self._identified() != self._identity:
            self.gone = True
            return []
        before, self._seen = self._seen, self._look()
        self._due = time.monotonic() + max(_FAR_POLL, _FAR_EASE * (time.monotonic() - begun))
        return [change for change in _between(before, self._seen) if self._shown(change.path)]

    def _look(self) -> Seen:
        if self._only:
            signed = self._signed(os.path.join(self._root, self._only))
            return {} if signed is None else {self._only: signed}
        return dict(self._below(""))

    def _below(self, path: str) -> Iterator[tuple[str, tuple[object, ...]]]:
        """Every path below the root with its metadata; links are not followed."""
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

    def _signed(self, real_path: str) -> tuple[object, ...] | None:
        status = self._disk.status(real_path)
        return status and (status.kind, status.size, status.mtime_ns, status.inode)

    def _identified(self) -> tuple[int, int] | None:
        found = self._disk.status(self._root)
        if found is None or found.kind != "folder":
            return None
        return found.device, found.inode

    def _shown(self, path: str) -> bool:
        return not self._globs or self._globs.fit(path.rstrip("/"))


AnyWatcher = Watcher | FarWatcher


def _between(before: Seen, after: Seen) -> Iterator[Change]:
    """The changes between two scans."""
    for path, signed in after.items():
        if path not in before:
            yield Change("added", path)
        elif before[path] != signed:
            yield Change("modified", path)
    for path in before:
        if path not in after:
            yield Change("deleted", path)


MOST_WATCHES = 16
MOST_PENDING = 10_000
# How long one look takes when nothing happens, in seconds.
_LOOK = 0.1


class Collected(NamedTuple):
    """Changes since last time; how many were lost for want of room; how the watch is doing."""

    changes: list[Change]
    lost: int
    gone: bool
    failure: str


class BackgroundWatch:
    """A watcher with a thread that empties it."""

    def __init__(self, name: str, watched: str, watcher: AnyWatcher) -> None:
        self.name = name
        self.watched = watched
        self.watcher = watcher
        self._changed = threading.Condition()
        self._pending: list[Change] = []
        self._lost = 0
        self._looks = 0
        self._failure = ""
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"hermes-{name}", daemon=True)
        self._thread.start()

    @property
    def pending(self) -> int:
        """How many changes wait to be collected."""
        return len(self._pending)

    def collect(self) -> Collected:
        """The changes since the last call."""
        with self._changed:
            # What happened just before the call is in by the end of the second look from here.
            enough = self._looks + 2
            self._changed.wait_for(
                lambda: self._looks >= enough or not self._thread.is_alive(), timeout=2
            )
            changes, self._pending = self._pending, []
            lost, self._lost = self._lost, 0
            return Collected(changes, lost, self.watcher.gone, self._failure)

    def close(self) -> None:
        """Stop, and wait for the thread's end."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        stop = Stop(self._stopped.is_set)
        try:
            while not self._stopped.is_set() and not self.watcher.gone:
                self._keep(self.watcher.next(_LOOK, 0, stop))
        except (OSError, RuntimeError, ToolError) as error:
            self._failure = str(error) or type(error).__name__
        finally:
            self.watcher.close()
            with self._changed:
                self._looks += 2
                self._changed.notify_all()

    def _keep(self, changes: list[Change]) -> None:
        with self._changed:
            if changes:
                pending = merged(self._pending, changes)
                self._lost += max(0, len(pending) - MOST_PENDING)
                self._pending = pending[:MOST_PENDING]
            self._looks += 1
            self._changed.notify_all()


class BackgroundWatches:
    """The watches of a task, by name."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watches: dict[str, BackgroundWatch] = {}
        self._count = 0
        self._closed = False

    def start(self, name: str, watched: str, make: Callable[[], AnyWatcher]) -> BackgroundWatch:
        """A new watch; without a name it gets one."""
        with self._lock:
            if self._closed:
                raise ToolError("the task has ended")
            if len(self._watches) >= MOST_WATCHES:
                raise ToolError(
                    f"{MOST_WATCHES} watches are running already", hint="Stop one of them."
                )
            if name in self._watches:
                raise ToolError(f"there is a watch {name} already", hint="Stop it, or rename this.")
            while not name or name in self._watches:
                self._count += 1
                name = f"watch-{self._count}"
            self._watches[name] = watch = BackgroundWatch(name, watched, make())
            return watch

    def get(self, name: str) -> BackgroundWatch:
        """The watch of that name; the only one there is when no name is given."""
        with self._lock:
            if not name and len(self._watches) == 1:
                return next(iter(self._watches.values()))
            if name not in self._watches:
                running = ", ".join(self._watches) or "none"
                raise ToolError(f"there is no watch {name!r}", hint=f"Running: {running}.")
            return self._watches[name]

    def all(self) -> list[BackgroundWatch]:
        """Every watch, in the order of their start."""
        with self._lock:
            return list(self._watches.values())

    def stop(self, name: str) -> BackgroundWatch:
        """End a watch."""
        watch = self.get(name)
        watch.close()
        with self._lock:
            self._watches.pop(watch.name, None)
        return watch

    def close(self) -> None:
        """End them all, and start no more."""
        with self._lock:
            self._closed = True
        for watch in self.all():
            self.stop(watch.name)
