"""A stop is heard by all whom it concerns, once, from many threads."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from hermes.core import Cancellation, CancelledError


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

    assert not parent._children


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
