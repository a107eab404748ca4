"""Tool availability: declared requirements (packages, programs, variables) and `check_fn`, cached
for 30 seconds.
"""

from __future__ import annotations

import os
import threading
import time

from hermes.core.errors import UnavailableError

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import ModuleType
    from typing import Any

    from hermes.core.entry import ToolEntry


class Requirement:
    """A `check_fn` that knows its reason. Touches neither the network nor anything installed."""

    __slots__ = ("env", "extra", "install", "modules", "platforms", "programs")

    def __init__(
        self,
        *,
        modules: tuple[str, ...] = (),
        programs: tuple[str, ...] = (),
        env: tuple[str, ...] = (),
        platforms: tuple[str, ...] = (),
        extra: str = "",
        install: str = "",
    ) -> None:
        self.modules = modules
        self.programs = programs
        self.env = env
        self.platforms = platforms
        self.extra = extra
        self.install = install

    def __call__(self) -> bool:
        return self.missing() is None

    def missing(self) -> str | None:
        """The missing requirement with a remedy; None when all are met."""
        import sys

        if self.platforms and not sys.platform.startswith(self.platforms):
            return f"works on {' and '.join(self.platforms)} only"
        absent = [f"Python package {m}" for m in self.modules if not _importable(m)]
        absent += [f"program {p}" for p in self.programs if not _on_path(p)]
        absent += [f"environment variable {v}" for v in self.env if not os.environ.get(v)]
        if not absent:
            return None
        return f"missing {', '.join(absent)}{self.remedy}"

    @property
    def remedy(self) -> str:
        """How to get it, as the end of a sentence."""
        command = self.install or (
            f"pip install 'hermes-tools[{self.extra}]'" if self.extra else ""
        )
        return f"; {command}" if command else ""

    def to_dict(self) -> dict[str, Any]:
        """The requirement as plain values; empty ones left out."""
        return {slot: value for slot in self.__slots__ if (value := getattr(self, slot))}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Requirement:
        """The requirement that `to_dict` wrote."""
        several: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in values.items()
        }
        return cls(**several)


def needs(
    *modules: str,
    programs: tuple[str, ...] | str = (),
    env: tuple[str, ...] | str = (),
    platforms: tuple[str, ...] | str = (),
    extra: str = "",
    install: str = "",
) -> Requirement:
    """A `check_fn`: the named packages, programs and environment variables must be there."""

    def several(value: tuple[str, ...] | str) -> tuple[str, ...]:
        return (value,) if isinstance(value, str) else tuple(value)

    return Requirement(
        modules=modules,
        programs=several(programs),
        env=several(env),
        platforms=several(platforms),
        extra=extra,
        install=install,
    )


def require(module: str, *, extra: str = "") -> ModuleType:
    """Import an optional package, or raise `UnavailableError` naming the extra that brings it."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as error:
        wanted = Requirement(modules=(module.partition(".")[0],), extra=extra)
        raise UnavailableError(
            f"{module} can't be imported: {error}", hint=wanted.remedy[2:]
        ) from None


def _importable(module: str) -> bool:
    from importlib.util import find_spec

    try:
        # Only the top: asking for a submodule would import its parents.
        return find_spec(module.partition(".")[0]) is not None
    except (ImportError, ValueError):
        return False


def _on_path(program: str) -> bool:
    from shutil import which

    return which(program) is not None


if TYPE_CHECKING:
    Check = Callable[[], object]

REMEMBERED_SECONDS = 30.0
# A listing does not wait longer than this for checks, however many are stuck.
PATIENCE_SECONDS = 5.0


class _Run:
    """A check that runs in a thread, and its result."""

    __slots__ = ("done", "reason")

    def __init__(self) -> None:
        self.done = threading.Event()
        self.reason: str | None = "its check was not run to its end"


class Availability:
    """Runs each distinct check at most once per half minute; a check that raises means no."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[Check, tuple[float, str | None]] = {}
        self._running: dict[Check, _Run] = {}
        self._given_up: set[Check] = set()
        self.epoch = 0

    def missing(self, entries: Iterable[ToolEntry]) -> dict[str, str]:
        """The tools that can't work here, each with the reason."""
        entries = list(entries)
        reasons = self.reasons(e.check_fn for e in entries if e.check_fn is not None)
        found: dict[str, str] = {}
        for entry in entries:
            unset = [name for name in entry.requires_env if not os.environ.get(name)]
            if unset:
                found[entry.name] = f"missing environment variable {', '.join(unset)}"
            elif entry.check_fn is not None and (reason := reasons[entry.check_fn]):
                found[entry.name] = reason
        return found

    def reason(self, check: Check) -> str | None:
        """Why one check says no; None when it says yes."""
        return self.reasons([check])[check]

    def forget(self) -> None:
        """Run every check again when next asked, as after an installation."""
        with self._lock:
            self._known.clear()
            self.epoch += 1

    def fresh(self) -> bool:
        """Whether every remembered answer is still young enough to be used."""
        oldest = self._clock() - REMEMBERED_SECONDS
        with self._lock:
            return all(at > oldest for at, _ in self._known.values())

    def reasons(self, checks: Iterable[Check]) -> dict[Check, str | None]:
        """The reason of each failed check, or None; uncached checks run in parallel."""
        wanted = dict.fromkeys(checks)
        oldest = self._clock() - REMEMBERED_SECONDS
        with self._lock:
            self._drop_unasked(wanted, oldest)
            found = {c: self._known[c][1] for c in wanted if c in self._known}
            stale = [c for c in wanted if c not in self._known or self._known[c][0] <= oldest]
            waiting = {c: self._running[c] for c in stale if c in self._running}
            starting = [c for c in stale if c not in self._running]
            # What is data is looked at in place; code of others may be slow, so it gets threads.
            quick = [c for c in starting if isinstance(c, Requirement)]
            slow = [c for c in starting if not isinstance(c, Requirement)]
            for check in slow:
                waiting[check] = self._running[check] = _Run()
        for check in quick:
            found[check] = self._store(check, _run(check))
        for check in slow:
            threading.Thread(target=self._finish, args=(check,), daemon=True).start()
        deadline = time.monotonic() + PATIENCE_SECONDS
        for check, run in waiting.items():
            # One that was once waited for in vain is not waited for again.
            left = 0.0 if check in self._given_up else deadline - time.monotonic()
            if run.done.wait(max(0.0, left)):
                found[check] = run.reason
            else:
                self._given_up.add(check)
                reason = f"its check did not answer within {PATIENCE_SECONDS:g} s"
                found[check] = self._store(check, reason)
        return found

    def _drop_unasked(self, wanted: dict[Check, None], oldest: float) -> None:
        # The checks of tools that are gone would keep `fresh` from ever being true again.
        old = [c for c, (at, _) in self._known.items() if at <= oldest and c not in wanted]
        for check in old:
            del self._known[check]
        self.epoch += bool(old)

    def _finish(self, check: Check) -> None:
        reason = self._store(check, _run(check))
        with self._lock:
            self._given_up.discard(check)
            run = self._running.pop(check)
        run.reason = reason
        run.done.set()

    def _store(self, check: Check, reason: str | None) -> str | None:
        with self._lock:
            before = self._known.get(check)
            self._known[check] = (self._clock(), reason)
            if before is None or before[1] != reason:
                self.epoch += 1
        return reason


def _run(check: Check) -> str | None:
    if isinstance(check, Requirement):
        return check.missing()
    name = getattr(check, "__qualname__", repr(check))
    try:
        return None if check() else f"its check {name} says no"
    except BaseException as error:  # noqa: BLE001 - whatever a check raises means: not available
        return f"its check {name} failed: {type(error).__name__}: {error}"
