"""State of one running call, shared by the pipeline's stages; source of its audit line and trace
span.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from hermes.core.approval import Ruling
from hermes.runtime.audit import AuditLine

if TYPE_CHECKING:
    from typing import Any

    from hermes.core.cancellation import Cancellation
    from hermes.core.context import ToolContext
    from hermes.core.entry import ToolEntry
    from hermes.runtime.tracing import Span
    from hermes.safety.placeholders import Used


# Until the policy has ruled.
UNJUDGED = Ruling("refuse", rule="policy:pending")


class CallState(msgspec.Struct, eq=False):
    """What is known of a call while it is under way."""

    call_id: str
    tool: str
    context: ToolContext
    cancellation: Cancellation
    started: float
    entry: ToolEntry | None = None
    arguments: dict[str, Any] = {}
    noted: str = "{}"
    ruling: Ruling = UNJUDGED
    # The rule that asked for or refused the call, or that an earlier approval covers.
    rule: str = ""
    verdict: str = "allowed"
    # Who said yes, or no.
    approver: str = ""
    # Secrets that it was given in place of placeholders.
    used: Used | None = None
    # Whose words it brings in.
    source: str = ""
    # Its part in the trace, and the span that it is inside of.
    span: Span | None = None
    around: Span | None = None

    def line(self, status: str, seconds: float) -> AuditLine:
        """The audit line of the call as it now stands."""
        context = self.context
        return AuditLine(
            time.time(),
            context.front_door,
            context.session_id,
            context.task.id,
            context.agent_path,
            self.call_id,
            self.tool,
            self.verdict,
            self.rule,
            self.approver,
            status,
            int(seconds * 1_000_000) / 1000,
            self.noted,
        )
