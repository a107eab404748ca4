"""A list of things to do, whatever a model sends."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hermes.core import ToolError
from hermes.core.context import Task
from hermes.stores.todos import STATUSES, keep_todos, listed, todos_of, written

_items = st.fixed_dictionaries(
    {},
    optional={
        "id": st.sampled_from(["", "1", "2", "a"]),
        "content": st.text(max_size=5),
        "status": st.sampled_from([*STATUSES, "done", None]),
    },
)


@given(st.lists(_items, max_size=6), st.lists(_items, max_size=6))
def test_a_list_has_every_id_once_and_something_to_do_in_each(
    first: list[dict[str, str]], then: list[dict[str, str]]
) -> None:
    try:
        before = written(first)
        after = written(then, before)
    except ToolError:
        return

    ids = [todo.id for todo in after]
    assert len(set(ids)) == len(ids)
    assert ids[: len(before)] == [todo.id for todo in before]
    assert all(todo.content.strip() and todo.status in STATUSES for todo in after)
    assert listed(after).count("[") >= len(after)


def test_a_list_ends_with_its_task() -> None:
    task = Task("t")
    keep_todos(task, written([{"content": "look"}]))

    assert [todo.content for todo in todos_of(task)] == ["look"]
    task.close()
    assert todos_of(task) == []
