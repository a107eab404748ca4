"""Policy: the ruling on a call (allow, ask, refuse), and the simple policy by effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Literal, Protocol

    from hermes.core.context import ToolContext
    from hermes.core.entry import ToolEntry
    from hermes.safety.approvals import Grant

    class Policy(Protocol):
        """Rules on calls. Whatever it raises means: refused."""

        def judge(
            self, entry: ToolEntry, arguments: Mapping[str, Any], context: ToolContext
        ) -> Ruling: ...


class Ruling:
    """`allow`, `ask` or `refuse`, with the reason and the rule it comes from.

    `grants` is what a yes would cover and `targets` what a no is about, for a policy that
    remembers answers. `places` is where the paths of the call lead, by kind and spelling; `by`
    is what an allowed call was approved by before; `human_only` keeps models from answering.
    `keeps` names what the call would leave for later conversations when it can wait for a review.
    """

    __slots__ = (
        "action", "by", "grants", "human_only", "keeps", "places", "reason", "rule", "targets",
    )  # fmt: skip

    def __init__(
        self,
        action: Literal["allow", "ask", "refuse"],
        *,
        reason: str = "",
        rule: str = "",
        grants: tuple[Grant, ...] = (),
        targets: frozenset[str] = frozenset(),
        places: Mapping[tuple[str, str], str] | None = None,
        by: str = "",
        human_only: bool = False,
        keeps: str = "",
    ) -> None:
        self.action = action
        self.reason = reason
        self.rule = rule
        self.grants = grants
        self.targets = targets
        self.places = places
        self.by = by
        self.human_only = human_only
        self.keeps = keeps

    def __repr__(self) -> str:
        return f"<{self.action} by {self.rule}: {self.reason}>"


_READS = Ruling("allow", rule="effect:read")
_MAY = {
    "write": "may change files or settings",
    "execute": "may run code",
    "network": "may send data over the network",
    "message": "may reach other people",
}


class EffectPolicy:
    """What only reads passes; everything else asks."""

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
        return Ruling("ask", reason=f"{entry.name} {_MAY[effect]}", rule=f"effect:{effect}")
