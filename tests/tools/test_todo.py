"""The task list."""

from __future__ import annotations

from typing import Any

import pytest
from tests.tools.bench import Bench

from hermes.stores.sessions import Sessions


def items(answer: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(one["id"], one["content"], one["status"]) for one in answer["todos"]]


def test_a_list_is_written_merged_and_read(bench: Bench) -> None:
    assert bench("todo")["todos"] == []

    bench("todo", todos=[{"id": "a", "content": "look"}, {"content": "change"}])
    merged = [{"id": "a", "status": "completed"}, {"id": "c", "content": "check"}]
    bench("todo", todos=merged, merge=True)

    answer = bench("todo")
    assert items(answer) == [
        ("a", "look", "completed"),
        ("2", "change", "pending"),
        ("c", "check", "pending"),
    ]
    assert answer["summary"] == {"total": 3, "completed": 1, "pending": 2}


def test_a_whole_list_takes_the_place_of_the_old_one(bench: Bench) -> None:
    bench("todo", todos=[{"content": "old"}])

    assert items(bench("todo", todos=[{"content": "new"}])) == [("1", "new", "pending")]
    assert items(bench("todo", todos=[])) == []


@pytest.mark.parametrize(
    ("todos", "merge"),
    [
        ([{"id": "unknown", "status": "completed"}], True),
        ([{"id": "1"}], False),
        ([{"content": "x" * 2_000}], False),
        ([{"content": "x"}] * 300, False),
        ([{"content": "x", "status": "soon"}], False),
    ],
)
def test_a_list_that_makes_no_sense_leaves_the_old_one(
    bench: Bench, todos: list[dict[str, str]], merge: bool
) -> None:
    bench("todo", todos=[{"content": "look"}])

    assert "error" in bench("todo", todos=todos, merge=merge)

    assert items(bench("todo")) == [("1", "look", "pending")]


def test_tasks_have_lists_of_their_own(bench: Bench) -> None:
    bench("todo", todos=[{"content": "mine"}])

    assert bench.another("s2")("todo")["todos"] == []


def test_the_person_sees_the_list(bench: Bench) -> None:
    shown: list[str] = []
    bench.app.runtime.events.subscribe(
        lambda event: shown.append(event.data["text"]) if event.kind == "output" else None
    )

    bench("todo", todos=[{"content": "look", "status": "in_progress"}, {"content": "check"}])

    assert "".join(shown) == "[>] look\n[ ] check\n"


def test_a_resumed_session_has_its_list_again(bench: Bench) -> None:
    with Sessions() as store:
        journal = store.begin(workspace="/", model="m", front_door="test")
        services = bench.context.services.replace(journal=journal)
        first = bench.another(journal.id)
        first.context.services = services
        first("todo", todos=[{"content": "look"}, {"content": "check"}])
        bench.app.runtime.close_task(first.context.task.id)

        again = bench.another(journal.id)
        again.context.services = services

        assert items(again("todo"))[1] == ("2", "check", "pending")
