"""State of one running call, shared by the stages of the pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from hermes.core.approval import Ruling

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
    """A running call: its arguments, the ruling on it, and its place in the trace."""

    call_id: str
    tool: str
    context: ToolContext
    cancellation: Cancellation
    started: float
    entry: ToolEntry | None = None
    arguments: dict[str, Any] = {}
    # The arguments as JSON, before the handler can change them.
    noted: str = "{}"
    ruling: Ruling = UNJUDGED
    # The rule that asked for or refused the call, or that an earlier approval covers.
    rule: str = ""
    verdict: str = "allowed"
    # The approver that allowed or refused it.
    approver: str = ""
    # Secrets that were filled in for placeholders.
    used: Used | None = None
    # Source of untrusted text in its result.
    source: str = ""
    # Its span in the trace, and the parent of that.
    span: Span | None = None
    around: Span | None = None
