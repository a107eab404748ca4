"""Policy: the ruling on a call (allow, ask, refuse), and the simple policy by effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.context import Ruling
from hermes.core.protocols import Policy

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from hermes.core.context import ToolContext
    from hermes.core.entry import ToolEntry

__all__ = ["EffectPolicy", "Policy", "Ruling"]

_READS = Ruling("allow", rule="effect:read")
# Its author is the program's author: defining the tool was the decision.
PROGRAM_TOOL = Ruling("allow", rule="origin:program")
_MAY = {
    "write": "may change files or settings",
    "execute": "may run code",
    "network": "may send data over the network",
    "message": "may reach other people",
}


class EffectPolicy(Policy):
    """Allows tools that only read and tools that the program itself defines; all others ask."""

    def judge(
        self,
        entry: ToolEntry,
        arguments: Mapping[str, Any],
        context: ToolContext,  # noqa: ARG002 - a policy may look at it; this one need not
    ) -> Ruling:
        """The ruling by what the tool declares of itself."""
        effect = entry.effect
        if effect == "read" or entry.effect_of(arguments) == "read":
            return _READS
        if entry.origin == "custom":
            return PROGRAM_TOOL
        return Ruling("ask", reason=f"{entry.name} {_MAY[effect]}", rule=f"effect:{effect}")
