"""Watchers that go on between calls: a thread each, ended with the task that started them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.errors import ToolError
from hermes.files.watch.watcher import Stop, merged

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.files.watch.watcher import AnyWatcher, Change

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


class Watch:
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


class Watches:
    """The watches of a task, by name."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watches: dict[str, Watch] = {}
        self._count = 0
        self._closed = False

    def start(self, name: str, watched: str, make: Callable[[], AnyWatcher]) -> Watch:
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
            self._watches[name] = watch = Watch(name, watched, make())
            return watch

    def get(self, name: str) -> Watch:
        """The watch of that name; the only one there is when no name is given."""
        with self._lock:
            if not name and len(self._watches) == 1:
                return next(iter(self._watches.values()))
            if name not in self._watches:
                running = ", ".join(self._watches) or "none"
                raise ToolError(f"there is no watch {name!r}", hint=f"Running: {running}.")
            return self._watches[name]

    def all(self) -> list[Watch]:
        """Every watch, in the order of their start."""
        with self._lock:
            return list(self._watches.values())

    def stop(self, name: str) -> Watch:
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
