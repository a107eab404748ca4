"""Work handed to fresh agents: each with a conversation and a task of its own, one purse for all.

    delegation.py  `Delegation`: hands tasks on, knows every child by its handle
    worker.py      `Worker`: one child at work, within its limits
    offering.py    the tools that it gets
    making.py      what it works with: conversation, task, surroundings
    signs.py       its signs of life
    reporting.py   what is known of a child: at a glance, and when it has ended
    record.py      what the journal keeps of children
    recalling.py   children of an earlier run, which may have been cut off
    pages.py       the journal of a child whose parent keeps none
    crew.py        the thread that children work in
    purse.py       a child's view of the shared budget
    told.py        what the tool says to each of its actions

A child has at most the tools and rights of its parent, and some less: it can't ask or write to
people, remember, or run code that calls tools. What it wants approved is asked of the same person,
with its path. Its changes belong to the turn that handed the task on, and are undone with it. It
ends with an answer, at a limit or with its parent; whatever happened, there is a report.
"""

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.agent.delegation.child_report import Child
    from hermes.agent.delegation.supervisor import Delegation

__all__ = ["Child", "Delegation"]

__getattr__ = names_from(
    __name__,
    {
        "Child": "child_report",
        "Delegation": "supervisor",
    },
)
