"""One call under way: what the stages of the pipeline know of it, and its line in the audit log."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from hermes.runtime.audit import AuditLine

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from hermes.core.context import Cancellation, ToolContext
    from hermes.core.entry import ToolEntry
    from hermes.runtime.tracing import Span
    from hermes.safety.placeholders import Used
    from hermes.safety.policy import Ruling


class Flight:
    """What is known of a call while it is under way."""

    __slots__ = (
        "approver",
        "arguments",
        "around",
        "call_id",
        "cancellation",
        "context",
        "entry",
        "noted",
        "places",
        "ruling",
        "source",
        "span",
        "started",
        "tool",
        "used",
        "verdict",
    )

    def __init__(
        self,
        call_id: str,
        tool: str,
        context: ToolContext,
        cancellation: Cancellation,
        started: float,
    ) -> None:
        self.call_id = call_id
        self.tool = tool
        self.context = context
        self.cancellation = cancellation
        self.started = started
        self.entry: ToolEntry | None = None
        self.arguments: dict[str, Any] = {}
        self.noted = "{}"
        self.ruling: Ruling | None = None
        self.verdict = "allowed"
        # Who said yes, or no.
        self.approver = ""
        # Secrets that it was given in place of placeholders.
        self.used: Used | None = None
        self.places: Mapping[tuple[str, str], str] | None = None
        # Whose words it brings in.
        self.source = ""
        # Its part in the trace, and the span that it is inside of.
        self.span: Span | None = None
        self.around: Span | None = None

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
            self.ruling.rule if self.ruling is not None else "",
            self.approver,
            status,
            int(seconds * 1_000_000) / 1000,
            self.noted,
        )
