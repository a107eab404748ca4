"""The two ends of a conversation: hooks are told, what was only for it is forgotten.

What lies between is one span of the trace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.runtime import needs

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from hermes.runtime.pipeline import Runtime


def begin_session(runtime: Runtime, session_id: str) -> None:
    """Tell the hooks that a conversation begins."""
    if runtime.tracer is not None:
        runtime.tracer.session_begins(session_id)
    _tell(runtime, runtime.hooks.session_start, session_id)


def end_session(runtime: Runtime, session_id: str) -> None:
    """Tell the hooks that a conversation ended; approvals that were for it alone end with it."""
    _tell(runtime, runtime.hooks.session_end, session_id)
    runtime.secrets.end_session(session_id)
    runtime.heard.end(session_id)
    ended = getattr(runtime.policy, "session_ended", None)
    if ended is not None:
        ended(session_id)
    if runtime.tracer is not None:
        runtime.tracer.session_ends(session_id)


def _tell(runtime: Runtime, hooks: tuple[Callable[..., Any], ...], session_id: str) -> None:
    for hook in hooks:
        try:
            needs.Hook(hook, (session_id,)).sync(runtime)
        except Exception as error:  # noqa: BLE001 - a hook must not stop a conversation
            name = getattr(hook, "__qualname__", None) or repr(hook)
            runtime.report_trouble(f"hook {name}: {type(error).__name__}: {error}")
