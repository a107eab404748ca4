"""Hooks that observe, veto or rewrite a call, and progress events for observers."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from hermes.core.errors import RegistrationError
from hermes.core.log import Log

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal

    from hermes.core.context import ToolContext


NAMES = (
    "pre_tool_call",
    "post_tool_call",
    "transform_tool_result",
    "session_start",
    "session_end",
)
LIMIT_SECONDS = 5.0


class Veto:
    """Refusal by a hook, with the reason for the model."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason


class Rewrite:
    """Other arguments for the call; they are validated and judged like the first ones."""

    __slots__ = ("arguments",)

    def __init__(self, arguments: dict[str, Any]) -> None:
        self.arguments = arguments


class HookCall:
    """The call that a hook receives."""

    __slots__ = ("arguments", "call_id", "context", "tool")

    def __init__(
        self, tool: str, arguments: dict[str, Any], call_id: str, context: ToolContext
    ) -> None:
        self.tool = tool
        self.arguments = arguments
        self.call_id = call_id
        self.context = context


class Hooks:
    """The hooks of one runtime, by name, in the order they were added."""

    def __init__(self, *, limit_seconds: float = LIMIT_SECONDS) -> None:
        self.limit_seconds = limit_seconds
        self._lock = threading.Lock()
        self.pre_tool_call: tuple[Callable[..., Any], ...] = ()
        self.post_tool_call: tuple[Callable[..., Any], ...] = ()
        self.transform_tool_result: tuple[Callable[..., Any], ...] = ()
        self.session_start: tuple[Callable[..., Any], ...] = ()
        self.session_end: tuple[Callable[..., Any], ...] = ()

    def add(self, name: str, hook: Callable[..., Any]) -> Callable[[], None]:
        """Add a hook; gives the function that takes it away."""
        if name not in NAMES:
            raise RegistrationError(
                f"there is no hook called {name!r}", hint=f"Use one of {', '.join(NAMES)}."
            )
        with self._lock:
            setattr(self, name, (*getattr(self, name), hook))

        def remove() -> None:
            with self._lock:
                kept = list(getattr(self, name))
                # One of them: the same hook may have been added twice.
                if hook in kept:
                    kept.remove(hook)
                setattr(self, name, tuple(kept))

        return remove


if TYPE_CHECKING:
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
