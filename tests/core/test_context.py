"""Cancellation, tasks and contexts, from many threads."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from hermes.core import Cancellation, CancelledError, Task, ToolContext, UnavailableError


def test_a_stop_is_asked_for_once_and_the_first_reason_is_kept() -> None:
    cancellation = Cancellation()
    told: list[str] = []
    cancellation.on_cancel(lambda: told.append(cancellation.reason))
    assert not cancellation.cancelled
    cancellation.check()

    cancellation.cancel("enough")
    cancellation.cancel("again")

    assert cancellation.cancelled
    assert told == ["enough"]
    with pytest.raises(CancelledError, match="enough"):
        cancellation.check()


def test_a_stop_without_a_reason_is_still_a_stop() -> None:
    cancellation = Cancellation()

    cancellation.cancel("")

    assert cancellation.cancelled


def test_children_stop_with_their_parent_and_not_the_other_way_round() -> None:
    parent = Cancellation()
    first, second = Cancellation(parent), Cancellation(parent)
    below = Cancellation(first)

    second.cancel("just me")
    assert (parent.cancelled, first.cancelled) == (False, False)

    parent.cancel("all")
    assert (first.reason, below.reason, second.reason) == ("all", "all", "just me")
    assert Cancellation(parent).reason == "all"


def test_who_comes_late_is_told_at_once_and_who_left_is_not_told() -> None:
    cancellation = Cancellation()
    told: list[str] = []
    forget = cancellation.on_cancel(lambda: told.append("left"))
    forget()
    forget()

    cancellation.cancel()
    cancellation.on_cancel(lambda: told.append("late"))()

    assert told == ["late"]


def test_a_callback_that_fails_keeps_no_other_from_being_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    parent = Cancellation()
    parent.on_cancel(lambda: 1 / 0)
    child = Cancellation(parent)

    parent.cancel()

    assert child.cancelled
    assert "callback" in caplog.text


def test_a_closed_child_leaves_nothing_with_its_parent() -> None:
    parent = Cancellation()
    children = [Cancellation(parent) for _ in range(100)]

    for child in children:
        child.close()

    assert parent._children == set()


def test_waiting_ends_when_the_stop_is_asked_for() -> None:
    cancellation = Cancellation()
    assert not cancellation.wait(0)
    woken: list[bool] = []
    thread = threading.Thread(target=lambda: woken.append(cancellation.wait(10)))
    thread.start()

    cancellation.cancel()
    thread.join()

    assert woken == [True]
    assert cancellation.wait(10)


def test_no_child_is_forgotten_while_others_come_and_go() -> None:
    for _ in range(60):
        parent = Cancellation()
        start = threading.Barrier(5)
        stayed: list[Cancellation] = []
        told: list[int] = []

        def work(parent: Any = parent, start: Any = start, stayed: Any = stayed) -> None:
            start.wait()
            for number in range(40):
                child = Cancellation(parent)
                if number % 2:
                    child.close()
                else:
                    stayed.append(child)

        def watch(parent: Any = parent, start: Any = start, told: Any = told) -> None:
            start.wait()
            for _ in range(40):
                parent.on_cancel(lambda: told.append(1))
            for _ in range(40):
                parent.on_cancel(lambda: told.append(2))()

        threads = [threading.Thread(target=work) for _ in range(3)]
        threads.append(threading.Thread(target=watch))
        for thread in threads:
            thread.start()
        start.wait()
        parent.cancel("now")
        for thread in threads:
            thread.join()

        assert all(child.cancelled for child in stayed)
        assert told.count(1) == 40


def test_of_many_who_stop_at_once_one_reason_holds_and_callbacks_run_once() -> None:
    cancellation = Cancellation()
    runs: list[int] = []
    cancellation.on_cancel(lambda: runs.append(1))
    threads = [
        threading.Thread(target=cancellation.cancel, args=(f"r{number}",)) for number in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert runs == [1]
    assert cancellation.reason.startswith("r")


# -- tasks ---------------------------------------------------------------------------------------


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
    assert task.state == {}


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
    services = {"store": 5}
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
    services: dict[str, Any] = {}
    context = ToolContext(services=services)

    services["late"] = 1

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
