"""Asking the gate: about a call before it runs, and about a path that a handler comes upon."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.core.log import Log
from hermes.safety.policy import Ruling

if TYPE_CHECKING:
    from typing import Any

    from hermes.core.context import ToolContext
    from hermes.core.entry import ToolEntry
    from hermes.runtime.pipeline import Runtime

log = Log("hermes.runtime")


def judge(
    runtime: Runtime, entry: ToolEntry, arguments: dict[str, Any], context: ToolContext
) -> Ruling:
    """What the policy says to a call, and what the words of strangers make of that."""
    try:
        ruling = runtime.policy.judge(entry, arguments, context)
        if ruling.action == "allow" or ruling.action in ("ask", "refuse"):
            sources = runtime.heard.sources(context)
            if not sources:
                return ruling
            from hermes.safety.lasting import reviewed

            return reviewed(ruling, entry, arguments, context, sources)
        raise ValueError(f"it ruled {ruling.action!r}")
    except Exception as error:
        # The gate fails closed.
        log.exception("the policy failed on %s", entry.name)
        return Ruling("refuse", reason=f"the policy failed: {error}", rule="policy:failed")


def place(runtime: Runtime, context: ToolContext, kind: str, path: str) -> str:
    """Where a path leads that a handler comes upon; the policy may refuse it."""
    ask = getattr(runtime.policy, "place", None)
    if ask is not None:
        found = str(ask(context, kind, path))
    else:
        found = os.path.realpath(os.path.join(context.workspace, os.path.expanduser(path)))
    if kind != "read" and runtime.heard.sources(context):
        from hermes.safety.lasting import check_unasked

        check_unasked(path, found)
    return found
