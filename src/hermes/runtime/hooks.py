"""Plugin hooks: functions that observe, veto or rewrite a call.

    pre_tool_call(call)                 returns None, Veto(reason) or Rewrite(arguments)
    post_tool_call(call, outcome)       observes
    transform_tool_result(call, value)  returns the value for the model, or None
    session_start(session_id), session_end(session_id)

A hook that raises or exceeds its time limit is reported and ignored. Enforce rules in the policy,
not in hooks.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from hermes.core.errors import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

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
