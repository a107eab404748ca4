"""Delegation: child agents, each with its own conversation and task, on one shared budget.

    supervisor.py     `Delegation`: starts children, finds them by handle; `delegate_task` actions
    child.py          `ChildAgent`: its tools, conversation and run; restored after a restart
    child_report.py   activity of a running child, report of an ended one

A child has at most the tools and rights of its parent, less some: it can't ask or message people,
write memory, or run code that calls tools. Its approvals are asked of the same person, with its
path. Its changes belong to the parent's turn and are undone with it. It ends with an answer, at a
limit, or with its parent; there is always a report.
"""

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.agent.delegation.child_report import ChildStatus
    from hermes.agent.delegation.supervisor import Delegation

__all__ = ["ChildStatus", "Delegation"]

__getattr__ = names_from(
    __name__,
    {
        "child_report": "ChildStatus",
        "supervisor": "Delegation",
    },
)
