"""`todo`: the task list, stored with the task and shown to the person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NotRequired, TypedDict

from hermes.core import ToolContext, tool

if TYPE_CHECKING:
    from typing import Any

    from hermes.stores.todos import Todo


class Item(TypedDict):
    """One thing to do."""

    id: NotRequired[str]
    content: NotRequired[str]
    status: NotRequired[Literal["pending", "in_progress", "completed", "cancelled"]]


# It changes nothing but the conversation's own list: for the gate, that is reading.
@tool(
    toolset="agent",
    effect="read",
    concurrency="exclusive",
    emoji="📋",
    max_result_size_chars=300_000,
    tags=["plan", "task list", "steps", "checklist", "progress", "what is left", "next step"],
)
def todo(ctx: ToolContext, todos: list[Item] | None = None, merge: bool = False) -> dict[str, Any]:
    """Keep the task list of work with several steps; without todos, read it.

    Args:
        todos: The whole list, in order; with merge, what changes.
        merge: Change items by id and append new ones.
    """
    from hermes.stores.todos import keep_todos, listed, written

    now = _kept(ctx)
    if todos is not None:
        # The fields are those of `Item`; a typed dict is a dict, whatever a type checker says.
        now = written([dict(item) for item in todos], now if merge else ())
        keep_todos(ctx.task, now)
        if (journal := _journal(ctx)) is not None:
            journal.note("todos", [one._asdict() for one in now])
        ctx.output(listed(now))
    counts: dict[str, int] = {}
    for one in now:
        counts[one.status] = counts.get(one.status, 0) + 1
    return {"todos": [one._asdict() for one in now], "summary": {"total": len(now), **counts}}


def _kept(ctx: ToolContext) -> list[Todo]:
    """The list of this task; that of the session when it has just been resumed."""
    from hermes.stores.todos import keep_todos, todos_of, written

    todos = todos_of(ctx.task)
    notes = getattr(_journal(ctx), "notes", None)
    if not todos and notes is not None and (kept := notes("todos")):
        todos = written(kept[-1].data)
        keep_todos(ctx.task, todos)
    return todos


def _journal(ctx: ToolContext) -> Any:
    """Where this conversation is kept, if it is; a helper's is not its parent's."""
    journal = ctx.services.journal
    return journal if journal is not None and journal.id == ctx.session_id else None
