"""Path locks: one writer per path across threads and processes; released when the process dies."""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hermes.core.errors import ToolError
from hermes.core.paths import flock, is_current, open_lock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_FIRST_SLEEP, _LONGEST_SLEEP = 0.001, 0.05
_NAME_BYTES = 300
# How many locks go by between two looks at how many files there are, and how many there may be.
_LOOK_EVERY, _MOST_FILES = 1000, 2000


class BusyError(ToolError):
    """Another writer has the file locked; `holder` names it."""

    def __init__(self, place: str, holder: str, seconds: float) -> None:
        super().__init__(
            f"{place} is being written by {holder}; gave up after {seconds:g} s",
            hint="Read the file again before writing it.",
        )
        self.place = place
        self.holder = holder


class PathLocks:
    """The locks of one store."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._held = 0

    @contextmanager
    def hold(
        self, place: str, who: str, *, seconds: float, check: Callable[[], None] | None = None
    ) -> Iterator[None]:
        """Keep everybody else off a path; raises `BusyError` when that takes too long."""
        name = hashlib.sha256(place.encode("utf-8", "surrogateescape")).hexdigest()[:40]
        path = os.path.join(self._folder, name)
        handle = _taken(path, place, seconds, check)
        try:
            said = who.encode("utf-8", "backslashreplace")[:_NAME_BYTES]
            os.write(handle, said.ljust(_NAME_BYTES))
            yield
        finally:
            os.close(handle)
            self._held += 1
            if self._held % _LOOK_EVERY == 0:
                self._sweep()

    def _sweep(self) -> None:
        """Remove unused lock files when there are many."""
        names = os.listdir(self._folder)
        for name in names if len(names) > _MOST_FILES else ():
            path = os.path.join(self._folder, name)
            handle = open_lock(path)
            try:
                # Gone before it is free: whoever waits for this file notices, and begins anew.
                if flock(handle, wait=False) and is_current(handle, path):
                    os.unlink(path)
            finally:
                os.close(handle)


def _taken(path: str, place: str, seconds: float, check: Callable[[], None] | None) -> int:
    deadline = time.monotonic() + seconds
    sleep = _FIRST_SLEEP
    while True:
        handle = open_lock(path)
        try:
            if flock(handle, wait=False) and is_current(handle, path):
                return handle
            said = os.read(handle, _NAME_BYTES).decode("utf-8", "replace")
            holder = said.strip() or "somebody else"
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)
        if time.monotonic() >= deadline:
            raise BusyError(place, holder, seconds)
        if check is not None:
            check()
        time.sleep(sleep)
        sleep = min(sleep * 1.5, _LONGEST_SLEEP)
