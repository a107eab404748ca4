"""Which tools a child gets: never more than its parent has, and some less."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.errors import ToolError
from hermes.runtime.deferral import Offer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.runtime.app import App

BLOCKED = frozenset({"delegate_task", "clarify", "memory", "send_message", "execute_code"})


def offered(
    app: App, parents: Offer, toolsets: Sequence[str] | None, *, hands_on: bool
) -> tuple[Offer, list[str]]:
    """What a child may use, and what was asked for and is not given.

    Args:
        app: The tools there are.
        parents: Those of its parent.
        toolsets: Those it was meant to have; all of its parent's if None.
        hands_on: Whether it may hand tasks on in turn.
    """
    names = parents.reachable - (BLOCKED - {"delegate_task"} if hands_on else BLOCKED)
    registry = app.registry
    left_out: list[str] = []
    if toolsets:
        asked = frozenset(app.toolsets.resolve(toolsets))
        left_out = sorted(asked.intersection(registry.names()) - names)
        names &= asked
        if not names:
            raise ToolError(
                f"you have no tools of {', '.join(toolsets)} to hand on",
                hint="Leave toolsets out, or name others.",
            )
    offer = Offer(
        registry,
        [entry for entry in registry.entries() if entry.name in names],
        index=app.index,
        defer_above=app.config.get("tools.defer_above"),
    )
    return offer, left_out
