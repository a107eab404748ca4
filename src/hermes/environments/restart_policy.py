"""Restart policy: background commands started again when they fail, with back-off; off by
default.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from hermes.core.context import Cancellation
from hermes.core.errors import HermesError
from hermes.environments.background import OUTSIDE

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from hermes.environments.background import Background

FIRST_SECONDS = 1.0
LONGEST_SECONDS = 30.0
JOIN_SECONDS = 10.0
# After a run of this length the count starts again.
WELL_SECONDS = 60.0


class Restarts:
    """The restart policies of one task, by the name of the process."""

    def __init__(self) -> None:
        self._watched: dict[str, _Watched] = {}

    def watch(
        self,
        first: Background,
        again: Callable[[], Background],
        *,
        most: int,
        first_seconds: float = FIRST_SECONDS,
    ) -> None:
        """Restart a process by `again`, at most so often in a row, with exponential back-off."""
        watched = _Watched(first, again, most, first_seconds)
        self._watched[first.name] = watched
        watched.start()

    def shown(self, name: str) -> dict[str, Any]:
        """State of a process's policy for the model; empty without one."""
        watched = self._watched.get(name)
        return {} if watched is None else watched.shown()

    def stop(self, name: str) -> None:
        """End a policy."""
        watched = self._watched.get(name)
        if watched is not None:
            watched.stop("switched off")

    def close(self) -> None:
        """End all policies; no process is started after this returns."""
        for name in list(self._watched):
            self.stop(name)
        for watched in self._watched.values():
            watched.join()


class _Watched:
    def __init__(
        self, first: Background, again: Callable[[], Background], most: int, seconds: float
    ) -> None:
        self._one = first
        self._again = again
        self._most = most
        self._seconds = seconds
        self._count = 0
        self._in_a_row = 0
        self._state = "on failure"
        # A policy that was ended keeps the reason, whatever its thread finds out meanwhile.
        self._lock = threading.Lock()
        self._stop = Cancellation()
        self._thread = threading.Thread(
            target=self._watch, name=f"hermes-restart-{first.name}", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def join(self) -> None:
        self._thread.join(JOIN_SECONDS)

    def stop(self, why: str) -> None:
        with self._lock:
            self._state = why
            self._stop.cancel(why)

    def _set(self, state: str) -> None:
        with self._lock:
            if not self._stop.cancelled:
                self._state = state

    def shown(self) -> dict[str, Any]:
        return {"restart": self._state, "restarts": self._count}

    def _watch(self) -> None:
        while not self._stop.cancelled:
            if not self._one.wait(3600.0, cancellation=self._stop):
                continue
            if not failed(self._one):
                self._set("not needed: it did not fail")
                return
            ended = self._one.ended_at or time.time()
            if ended - self._one.started_at >= WELL_SECONDS:
                self._in_a_row = 0
            if self._in_a_row >= self._most:
                self._set(f"given up after {self._in_a_row} in a row")
                return
            pause = min(LONGEST_SECONDS, self._seconds * 2**self._in_a_row)
            self._set(f"in {pause:g} s")
            if self._stop.wait(pause):
                return
            try:
                self._one = self._again()
            except HermesError as error:
                self._set(f"failed: {error}")
                return
            self._count += 1
            self._in_a_row += 1
            self._set("on failure")


def failed(one: Background) -> bool:
    """Whether a process ended with an error, or was killed by an unknown killer."""
    if one.state == "lost":
        # It may still run, and two of them are worse than none.
        return one.dies_with_backend and not one.detached
    if one.state == "killed":
        return one.killed_by == OUTSIDE
    return one.state == "exited" and one.exit_code != 0
