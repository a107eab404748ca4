"""Children of an earlier run of the program: what the journals and the checkpoints say of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import hermes.agent.delegating.record as record
import hermes.agent.delegating.reporting as reporting
from hermes.agent.delegating.reporting import UNFINISHED
from hermes.agent.delegating.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from hermes.agent.delegating.delegation import Delegation
    from hermes.core.context import ToolContext

# Another program has it: it is neither ours to end nor to go on with.
ELSEWHERE = "running elsewhere"
_REPORTED = (
    "agent", "status", "reason", "text", "refused", "tools_not_given", "files_changed", "tokens",
    "steps", "seconds",
)  # fmt: skip


def recalled(
    parent: Delegation, handle: str, data: Mapping[str, Any], context: ToolContext
) -> Worker:
    """The child as it was left; one that was cut off has ended now, and the journal says so."""
    worker = Worker(parent, handle, {"goal": "", **data})
    above: Any = parent.journal
    worker.journal = journal = above.store.open(data["session"])
    worker.turns = list(data["turns"])
    report = {key: data[key] for key in _REPORTED if key in data}
    if data["status"] in UNFINISHED:
        report |= _pieced(worker, journal, context)
        if record.cut_off(data):
            record.ended(
                above, report, worker.task, session=journal.id, turns=worker.turns, cost=None
            )
        else:
            report["status"], report["reason"] = ELSEWHERE, "another program runs it"
    worker.settle(report)
    return worker


def _pieced(worker: Worker, journal: Any, context: ToolContext) -> dict[str, Any]:
    messages = journal.messages()
    usage = journal.totals().usage
    info = journal.store.info(journal.id)
    tools = {intent.tool for intent in journal.intents()}
    return {
        "status": "crashed",
        "reason": "the program that it ran in ended while it was at work",
        "text": reporting.last_text(messages),
        "files_changed": reporting.files_changed(worker, context, tools),
        "tokens": {"input": usage.input, "output": usage.output},
        "steps": sum(message.role == "assistant" for message in messages),
        "seconds": round(info.touched - info.began, 1),
    }
