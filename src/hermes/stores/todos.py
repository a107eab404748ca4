"""Todo list of a task: validated, ordered, kept in the task's state."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hermes.core.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from hermes.core.context import Task

STATUSES = ("pending", "in_progress", "completed", "cancelled")
_SIGNS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]", "cancelled": "[-]"}
_MOST = 200
_LONGEST = 1_000


class Todo(NamedTuple):
    """One thing to do."""

    id: str
    content: str
    status: str = "pending"


def todos_of(task: Task) -> list[Todo]:
    """The todo list of a task; empty when there is none."""
    return list(task.todos)


def keep_todos(task: Task, todos: Iterable[Todo]) -> None:
    """Set the todo list of a task."""
    task.todos = tuple(todos)


def written(items: Iterable[Mapping[str, Any]], before: Iterable[Todo] = ()) -> list[Todo]:
    """The list that items make, on top of another one: those with a known id change that.

    Raises `ToolError` when an item says nothing, or there are too many.
    """
    found = {todo.id: todo for todo in before}
    for item in items:
        name = str(item.get("id") or "").strip() or _free(found)
        known = found.get(name)
        content = str(item.get("content") or "").strip() or (known.content if known else "")
        if not content:
            raise ToolError(f"item {name!r:.40} has no content and is not in the list yet")
        if len(content) > _LONGEST:
            raise ToolError(f"item {name!r:.40} has more than {_LONGEST:,} characters")
        status = item.get("status") or (known.status if known else STATUSES[0])
        if status not in STATUSES:
            raise ToolError(f"no status {status!r:.40}", hint=f"Use one of {', '.join(STATUSES)}.")
        found[name] = Todo(name, content, str(status))
    if len(found) > _MOST:
        raise ToolError(f"{len(found)} items are too many; at most {_MOST}")
    return list(found.values())


def listed(todos: Iterable[Todo]) -> str:
    """The list for people, a line for each item."""
    from hermes.safety.sanitise import clean_text

    return "".join(
        f"{_SIGNS[todo.status]} {' '.join(clean_text(todo.content).split())}\n" for todo in todos
    )


def _free(found: Mapping[str, Todo]) -> str:
    number = len(found) + 1
    while str(number) in found:
        number += 1
    return str(number)
