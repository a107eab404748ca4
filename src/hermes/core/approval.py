"""Approval requests: the question shown to a person about one call, and the answers they
can give.
"""

from __future__ import annotations

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Literal

    from hermes.core.protocols import CallEffects


class Answer(str):
    """The answer to a request, and its author for the audit log: `Answer("once", by="…")`."""

    __slots__ = ("by",)

    def __new__(cls, text: str, *, by: str = "") -> Answer:
        """The answer, which is text like any other."""
        answer = super().__new__(cls, text)
        answer.by = by
        return answer

    by: str


class ApprovalRequest:
    """A question to a person about one call: tool, arguments, reason and rules.

    `rule` is the first of `rules`; with `human_only`, no model may answer for the person. `batch`
    names a series that the answer `"batch"` approves as a whole, such as the rest of a script.
    """

    __slots__ = (
        "agent_path",
        "arguments",
        "batch",
        "call_id",
        "front_door",
        "human_only",
        "reason",
        "rule",
        "rules",
        "tool",
    )

    def __init__(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        reason: str,
        rule: str,
        rules: Sequence[str] = (),
        human_only: bool = False,
        call_id: str = "",
        front_door: str = "",
        agent_path: str = "",
    ) -> None:
        self.tool = tool
        self.arguments = arguments
        self.reason = reason
        self.rule = rule
        self.rules = tuple(rules) or (rule,)
        self.human_only = human_only
        self.call_id = call_id
        self.front_door = front_door
        self.agent_path = agent_path
        self.batch = ""


class Ruling:
    """A policy's ruling on one call: `allow`, `ask` or `refuse`, with the reason and the rule.

    `effects` has the call's effects and the analysis of its commands.
    `grants` is the scope of an approval and `targets` that of a refusal, for a policy that
    remembers answers. `paths` maps kind and spelling of the call's paths to the resolved path; `by`
    is the earlier approval of an allowed call; `human_only` keeps models from approving. `keeps`
    names the data that the call would store for later conversations, if it can wait for a review.
    """

    __slots__ = (
        "action", "by", "effects", "grants", "human_only", "keeps", "paths", "reason", "rule",
        "targets",
    )  # fmt: skip

    def __init__(
        self,
        action: Literal["allow", "ask", "refuse"],
        *,
        reason: str = "",
        rule: str = "",
        grants: tuple[Any, ...] = (),
        targets: frozenset[str] = frozenset(),
        paths: Mapping[tuple[str, str], str] | None = None,
        effects: CallEffects | None = None,
        by: str = "",
        human_only: bool = False,
        keeps: str = "",
    ) -> None:
        self.action = action
        self.reason = reason
        self.rule = rule
        self.grants = grants
        self.targets = targets
        self.paths = paths
        self.effects = effects
        self.by = by
        self.human_only = human_only
        self.keeps = keeps

    def __repr__(self) -> str:
        return f"<{self.action} by {self.rule}: {self.reason}>"
