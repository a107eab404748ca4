"""Tasks and contexts, from many threads."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from hermes.core import Cancellation, CancelledError, Task, ToolContext, UnavailableError
from hermes.core.context import Services


def test_a_thing_is_made_once_however_many_ask_for_it() -> None:
    task = Task("t")
    made: list[int] = []
    got: list[Any] = []

    def make() -> object:
        made.append(1)
        return object()

    threads = [
        threading.Thread(target=lambda: got.append(task.keep("x", make, lambda _: None)))
        for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert made == [1]
    assert len(set(map(id, got))) == 1


def test_things_are_closed_last_made_first_and_once() -> None:
    task = Task("t")
    closed: list[str] = []
    for name in "abc":
        task.keep(name, lambda name=name: name, closed.append)

    assert task.close() == []
    assert task.close() == []

    assert closed == ["c", "b", "a"]
    assert task.kept("a") is None


def test_a_thing_that_can_not_be_closed_keeps_no_other_open() -> None:
    task = Task("t")
    closed: list[str] = []

    def fail(_: str) -> None:
        raise OSError("busy")

    task.keep("a", lambda: "a", closed.append)
    task.keep("b", lambda: "b", fail)
    task.keep("c", lambda: "c", closed.append)

    failures = task.close()

    assert closed == ["c", "a"]
    assert [str(failure) for failure in failures] == ["busy"]


def test_a_thing_that_can_not_be_made_is_tried_again() -> None:
    task = Task("t")

    with pytest.raises(ZeroDivisionError):
        task.keep("x", lambda: 1 / 0, lambda _: None)

    assert task.keep("x", lambda: 5, lambda _: None) == 5


def test_a_thing_may_need_another_of_the_same_task() -> None:
    task = Task("t")
    closed: list[str] = []

    def make() -> str:
        return task.keep("folder", lambda: "folder", closed.append) + "/profile"

    assert task.keep("browser", make, closed.append) == "folder/profile"
    task.close()
    assert closed == ["folder/profile", "folder"]


def test_nothing_is_made_for_a_task_that_has_ended() -> None:
    task = Task("t")
    task.close()

    with pytest.raises(UnavailableError, match="ended"):
        task.keep("x", lambda: 5, lambda _: None)


def test_nothing_outlives_a_task_that_is_closed_while_things_are_made() -> None:
    for _ in range(50):
        task = Task("t")
        alive: set[int] = set()
        start = threading.Barrier(5)

        def work(number: int, task: Any = task, alive: Any = alive, start: Any = start) -> None:
            def make() -> int:
                alive.add(number)
                return number

            start.wait()
            try:
                task.keep(f"x{number}", make, alive.discard)
            except UnavailableError:
                return

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        start.wait()
        task.close()
        for thread in threads:
            thread.join()

        assert alive == set()


# -- contexts ------------------------------------------------------------------------------------


def test_a_context_for_a_call_is_the_same_surroundings() -> None:
    reports: list[Any] = []
    services = Services(store=5)
    context = ToolContext(task=Task("t", workspace="/w"), session_id="s", services=services)

    inner = context.for_call("c1", "tool", Cancellation(), lambda *given: reports.append(given))
    inner.progress("half", fraction=0.5)
    inner.output("text")
    context.progress("nobody listens")

    assert (inner.task_id, inner.workspace, inner.session_id) == ("t", "/w", "s")
    assert inner.service("store") == 5
    assert reports == [
        ("progress", {"message": "half", "fraction": 0.5}),
        ("output", {"text": "text"}),
    ]
    assert (context.call_id, inner.call_id) == ("", "c1")


def test_services_that_come_later_are_seen() -> None:
    services = Services()
    context = ToolContext(services=services)

    services.late = 1  # type: ignore[attr-defined]

    assert context.service("late") == 1
    with pytest.raises(UnavailableError, match="mail"):
        context.service("mail")


def test_a_handler_hears_of_its_cancellation() -> None:
    context = ToolContext()
    context.check_cancelled()

    context.cancellation.cancel("stop")

    assert context.cancelled
    with pytest.raises(CancelledError, match="stop"):
        context.check_cancelled()
