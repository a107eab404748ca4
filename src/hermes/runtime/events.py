"""Event bus: progress of running calls (started, progress, output, approval_requested, finished,
trouble) for observers.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from hermes.core.log import Log

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal

    Kind = Literal[
        "started",
        "progress",
        "output",
        "approval_requested",
        "finished",
        "trouble",
        "tools_changed",
    ]

log = Log("hermes.events")


class Event:
    """Something that happened to a call. `data` depends on the kind."""

    __slots__ = ("at", "call_id", "data", "kind", "tool")

    def __init__(self, kind: Kind, call_id: str, tool: str, data: dict[str, Any]) -> None:
        self.kind: Kind = kind
        self.call_id = call_id
        self.tool = tool
        self.data = data
        self.at = time.time()

    def __repr__(self) -> str:
        return f"<{self.kind} {self.tool} {self.call_id} {self.data}>"


class EventBus:
    """Hands each event to every listener, in the thread that emits it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Replaced as a whole, so that emitting needs no lock.
        self.listeners: tuple[Callable[[Event], None], ...] = ()

    def subscribe(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Have `listener` called for every event; gives the function that ends it."""
        with self._lock:
            self.listeners = (*self.listeners, listener)

        def unsubscribe() -> None:
            with self._lock:
                kept = list(self.listeners)
                # One of them: the same listener may have been added twice.
                if listener in kept:
                    kept.remove(listener)
                self.listeners = tuple(kept)

        return unsubscribe

    def emit(self, kind: Kind, call_id: str = "", tool: str = "", /, **data: Any) -> None:
        """Send an event to every listener; the exception of one is logged and ignored."""
        if not self.listeners:
            return
        event = Event(kind, call_id, tool, data)
        for listener in self.listeners:
            try:
                listener(event)
            except Exception:  # watching a call must not break it
                log.exception("a listener failed on %r", event)
