"""Cancellation token of a call: cancelled by its caller, or by its deadline."""

from __future__ import annotations

import threading

from hermes.core.errors import HermesError

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from collections.abc import Callable


class CancelledError(HermesError):
    """The call was cancelled; its partial work is undone or reported."""


class Cancellation:
    """Cancellation token of one call: set once, polled or observed by callback; children follow."""

    __slots__ = ("_callbacks", "_children", "_event", "_parent", "reason")

    # One lock for all: it is held for a few instructions, and only when something is cancelled
    # or waited for, so that making one costs next to nothing.
    _lock = threading.Lock()

    def __init__(self, parent: Cancellation | None = None) -> None:
        self._event: threading.Event | None = None
        self._callbacks: list[Callable[[], object]] = []
        # A dict, which costs less to make than a set.
        self._children: dict[Cancellation, None] = {}
        self._parent = parent
        self.reason = ""
        if parent is not None:
            parent._children[self] = None  # noqa: SLF001 - one of its own kind
            # Looked at only now: a parent that was cancelled before could not tell us.
            if parent.reason:
                self.reason = parent.reason

    @property
    def cancelled(self) -> bool:
        """Whether the call is to stop."""
        return bool(self.reason)

    def check(self) -> None:
        """Raise `CancelledError` when the call is to stop."""
        if self.reason:
            raise CancelledError(self.reason)

    def cancel(self, reason: str = "cancelled") -> None:
        """Ask for the stop; the first reason is kept."""
        with self._lock:
            if self.reason:
                return
            self.reason = reason or "cancelled"
            # A copy: whoever is just taking a callback back does so in the list we had.
            callbacks, self._callbacks = tuple(self._callbacks), []
            children = tuple(self._children)
            if self._event is not None:
                self._event.set()
        for child in children:
            child.cancel(self.reason)
        for callback in callbacks:
            try:
                callback()
            except Exception:  # the others are to be told all the same
                import logging

                logging.getLogger("hermes.core").exception("a callback on cancellation failed")

    def wait(self, seconds: float) -> bool:
        """Sleep up to `seconds`; True at once when the stop is asked for."""
        with self._lock:
            if self._event is None:
                self._event = threading.Event()
                if self.reason:
                    self._event.set()
        return self._event.wait(seconds)

    def on_cancel(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Run `callback` when the stop is asked for; gives a function that takes it back."""
        with self._lock:
            if not self.reason:
                self._callbacks.append(callback)
                return lambda: self._forget(callback)
        callback()
        return lambda: None

    def close(self) -> None:
        """Let go of the parent: the call has ended."""
        if self._parent is not None:
            self._parent._children.pop(self, None)  # noqa: SLF001

    def _forget(self, callback: Callable[[], object]) -> None:
        try:
            self._callbacks.remove(callback)
        except ValueError:
            # Already run, or being run.
            return
