"""Whether a tool can work here: its checks, run once and remembered for half a minute."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING

from hermes.core.requirements import Requirement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hermes.core.entry import ToolEntry

    Check = Callable[[], object]

REMEMBERED_SECONDS = 30.0
# A listing does not wait longer than this for checks, however many are stuck.
PATIENCE_SECONDS = 5.0


class Availability:
    """Runs each distinct check at most once per half minute; a check that raises means no."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[Check, tuple[float, str | None]] = {}
        self._running: dict[Check, threading.Event] = {}
        self.epoch = 0

    def missing(self, entries: Iterable[ToolEntry]) -> dict[str, str]:
        """The tools that can't work here, each with the reason."""
        entries = list(entries)
        self._refresh({e.check_fn for e in entries if e.check_fn is not None})
        found: dict[str, str] = {}
        for entry in entries:
            reason = self._reason(entry)
            if reason is not None:
                found[entry.name] = reason
        return found

    def reason(self, check: Check) -> str | None:
        """Why one check says no; None when it says yes."""
        self._refresh({check})
        return self._verdict(check)

    def forget(self) -> None:
        """Run every check again when next asked, as after an installation."""
        with self._lock:
            self._known.clear()
            self.epoch += 1

    def fresh(self) -> bool:
        """Whether every remembered answer is still young enough to be used."""
        oldest = self._clock() - REMEMBERED_SECONDS
        return all(at > oldest for at, _ in self._known.values())

    def _reason(self, entry: ToolEntry) -> str | None:
        unset = [name for name in entry.requires_env if not os.environ.get(name)]
        if unset:
            return f"missing environment variable {', '.join(unset)}"
        return None if entry.check_fn is None else self._verdict(entry.check_fn)

    def _verdict(self, check: Check) -> str | None:
        return self._known[check][1]

    def _refresh(self, checks: set[Check]) -> None:
        oldest = self._clock() - REMEMBERED_SECONDS
        with self._lock:
            stale = [c for c in checks if c not in self._known or self._known[c][0] <= oldest]
            waiting = {c: self._running[c] for c in stale if c in self._running}
            starting = [c for c in stale if c not in self._running]
            # What is data is looked at in place; code of others may be slow, so it gets threads.
            quick = [c for c in starting if isinstance(c, Requirement)]
            slow = [c for c in starting if not isinstance(c, Requirement)]
            for check in slow:
                waiting[check] = self._running[check] = threading.Event()
        for check in quick:
            self._store(check, _run(check))
        for check in slow:
            threading.Thread(target=self._finish, args=(check,), daemon=True).start()
        deadline = time.monotonic() + PATIENCE_SECONDS
        for check, done in waiting.items():
            if not done.wait(max(0.0, deadline - time.monotonic())):
                # Remembered like an answer, so that the next listing does not wait for it again.
                self._store(check, f"its check did not answer within {PATIENCE_SECONDS:g} s")

    def _finish(self, check: Check) -> None:
        self._store(check, _run(check))
        with self._lock:
            self._running.pop(check).set()

    def _store(self, check: Check, reason: str | None) -> None:
        with self._lock:
            before = self._known.get(check)
            self._known[check] = (self._clock(), reason)
            if before is None or before[1] != reason:
                self.epoch += 1


def _run(check: Check) -> str | None:
    if isinstance(check, Requirement):
        return check.missing()
    name = getattr(check, "__qualname__", repr(check))
    try:
        return None if check() else f"its check {name} says no"
    except Exception as error:  # noqa: BLE001 - whatever a check raises means: not available
        return f"its check {name} failed: {type(error).__name__}: {error}"
