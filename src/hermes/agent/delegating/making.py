"""What a child works with: a conversation, a task and surroundings of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.agent.compaction import Compaction
from hermes.agent.loop import Conversation
from hermes.agent.prompt import system_text
from hermes.agent.resuming import resumed
from hermes.core.context import Cancellation

if TYPE_CHECKING:
    from hermes.agent.budget import Budget
    from hermes.agent.delegating.delegation import Delegation
    from hermes.agent.delegating.signs import Signs
    from hermes.agent.loop import Journal
    from hermes.core.context import ToolContext
    from hermes.runtime.deferral import Offer

_CHILD = """\
Another agent handed you this one task. You see nothing of its conversation, and nobody can answer \
questions: where something is unclear, take the likeliest reading and say so. Your last answer is \
all that it gets to see: say what you found and did, with exact names, and what is left open."""
# What belongs to the agent above and to nobody else.
_THEIRS = ("agent", "delegate", "ask_person")


def conversation_for(
    parent: Delegation,
    handle: str,
    around: ToolContext,
    *,
    offer: Offer,
    budget: Budget,
    journal: Journal,
    signs: Signs,
    stop: Cancellation,
) -> tuple[Conversation, Delegation | None]:
    """A child's conversation, from its beginning or where it left off; and its own children.

    Args:
        parent: Who hands the task on.
        handle: The child's path.
        around: The surroundings of the call that hands it on.
        offer: The tools it may use.
        budget: What it may cost.
        journal: Where it is kept.
        signs: Told of whatever happens.
        stop: What stops all of its calls.
    """
    runtime = parent.app.runtime
    task = runtime.task(task_id(around, handle), workspace=around.workspace)
    task.env = dict(around.task.env)
    services = {name: one for name, one in around.services.items() if name not in _THEIRS}
    services["offer"] = offer
    inner = parent.below(offer, budget, journal)
    if inner is not None:
        services["delegate"] = inner

    def context(_: str) -> ToolContext:
        signs.beat()
        return runtime.context(
            task.id,
            session_id=around.session_id,
            turn=around.turn,
            front_door=around.front_door,
            agent_path=handle,
            approver=around.approver,
            cancellation=Cancellation(stop),
            services=services,
            profiles=around.profiles,
        )

    kind: type[Conversation] = getattr(parent.provider, "conversation", Conversation)
    made = kind(
        parent.provider,
        runtime,
        system=system_text(around.workspace, context=parent.project, more=[_CHILD]),
        offer=offer,
        context=context,
        journal=journal,
        budget=budget,
        compact=Compaction(),
        on_event=signs.said,
        messages=resumed(journal),
        at_once=parent.app.config.get("tools.parallel"),
    )
    if inner is not None:
        made.news = inner.news
        if made.messages:
            inner.recall(context(""))
    return made, inner


def task_id(around: ToolContext, handle: str) -> str:
    """The task that a child's processes and files belong to."""
    return f"{around.task_id}-{handle.replace('/', '-')}"
