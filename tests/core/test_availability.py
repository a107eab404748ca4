"""Availability: checks are run once, together, and never waited for twice."""

from __future__ import annotations

import itertools
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from hermes.core import ToolRegistry, needs
from hermes.core import availability as module
from hermes.core.availability import REMEMBERED_SECONDS, Availability

if TYPE_CHECKING:
    from collections.abc import Callable


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Counting:
    """A check that counts how often it is asked."""

    def __init__(self, answer: object = True) -> None:
        self.answer = answer
        self.runs = 0

    def __call__(self) -> Any:
        self.runs += 1
        return self.answer


def with_tools(*checks: Callable[[], Any]) -> tuple[ToolRegistry, Clock]:
    registry, clock = ToolRegistry(), Clock()
    registry.availability = Availability(clock)
    for number, check in enumerate(checks):
        registry.register(f"tool_{number}", "own", {}, lambda: None, check_fn=check)
    return registry, clock


def test_an_answer_is_remembered_for_half_a_minute() -> None:
    check = Counting()
    registry, clock = with_tools(check)

    for second in (0, 1, 29.9):
        clock.now = 1000.0 + second
        assert len(registry.get_definitions()) == 1
    assert check.runs == 1

    clock.now = 1000.0 + REMEMBERED_SECONDS
    check.answer = False
    assert registry.get_definitions() == []
    assert check.runs == 2


def test_a_check_that_many_tools_share_runs_once_per_listing() -> None:
    check = Counting()
    registry, _ = with_tools(*[check] * 20)

    assert len(registry.get_definitions()) == 20
    assert check.runs == 1


def test_forgetting_runs_everything_again() -> None:
    check = Counting()
    registry, _ = with_tools(check)
    registry.get_definitions()

    registry.availability.forget()
    registry.get_definitions()

    assert check.runs == 2


def boom() -> bool:
    raise ValueError("the daemon is down")


def leave() -> bool:
    sys.exit(3)


def test_whatever_a_check_raises_means_no_with_a_reason() -> None:
    registry, _ = with_tools(boom, leave, lambda: False, lambda: None, list, lambda: "yes")

    missing = registry.availability.missing(registry.entries())

    assert sorted(missing) == ["tool_0", "tool_1", "tool_2", "tool_3", "tool_4"]
    assert missing["tool_0"] == "its check boom failed: ValueError: the daemon is down"
    assert "SystemExit" in missing["tool_1"]
    assert "says no" in missing["tool_2"]


def test_an_unset_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HERMES_TEST_ONE", raising=False)
    monkeypatch.setenv("HERMES_TEST_TWO", "")
    registry = ToolRegistry()
    registry.register(
        "t", "own", {}, lambda: None, requires_env=["HERMES_TEST_ONE", "HERMES_TEST_TWO"]
    )

    missing = registry.availability.missing(registry.entries())

    assert missing == {"t": "missing environment variable HERMES_TEST_ONE, HERMES_TEST_TWO"}


def test_slow_checks_run_side_by_side() -> None:
    together = threading.Barrier(3)
    # Each waits until all three are at it: one after the other, none would get past.
    checks = [lambda: together.wait(4) >= 0, lambda: together.wait(4) >= 0]
    registry, _ = with_tools(*checks, lambda: together.wait(4) >= 0)

    assert len(registry.get_definitions()) == 3


def test_listings_at_the_same_time_share_one_run() -> None:
    begun, go_on = threading.Event(), threading.Event()
    runs = itertools.count(1)

    def check() -> bool:
        next(runs)
        begun.set()
        return go_on.wait(10)

    registry, _ = with_tools(check)
    counts: list[int] = []
    threads = [
        threading.Thread(target=lambda: counts.append(len(registry.get_definitions())))
        for _ in range(5)
    ]
    for thread in threads:
        thread.start()
    assert begun.wait(10)
    go_on.set()
    for thread in threads:
        thread.join()

    assert counts == [1] * 5
    assert next(runs) == 2


def test_a_check_that_hangs_ends_with_a_reason_and_is_not_waited_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 0.05)
    waits: list[float | None] = []
    release = threading.Event()
    fast = Counting()

    class NotedEvent(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout)
            return super().wait(timeout)

    registry, clock = with_tools(lambda: release.wait(20), fast)
    monkeypatch.setattr(threading, "Event", NotedEvent)

    assert [d["function"]["name"] for d in registry.get_definitions()] == ["tool_1"]
    missing = registry.availability.missing(registry.entries())
    assert missing == {"tool_0": "its check did not answer within 0.05 s"}
    waits.clear()

    for _ in range(3):
        clock.now += REMEMBERED_SECONDS + 1
        assert "tool_0" in registry.availability.missing(registry.entries())
        assert registry.availability.fresh()
    # The other check is waited for; this one is only looked at.
    assert sum(wait == 0.0 for wait in waits) >= 3

    (running,) = registry.availability._running.values()
    release.set()
    assert running.done.wait(10)
    clock.now += REMEMBERED_SECONDS + 1
    assert registry.availability.missing(registry.entries()) == {}


def test_forgetting_during_a_listing_harms_nobody() -> None:
    registry, _ = with_tools(*[Counting() for _ in range(5)])
    stop = threading.Event()

    def forget() -> None:
        while not stop.is_set():
            registry.availability.forget()
            registry.availability.fresh()

    thread = threading.Thread(target=forget)
    thread.start()
    try:
        for _ in range(200):
            assert len(registry.get_definitions()) == 5
    finally:
        stop.set()
        thread.join()


def test_the_checks_of_tools_that_are_gone_do_not_spoil_freshness() -> None:
    registry, clock = with_tools(Counting(), Counting())
    registry.get_definitions()
    registry.deregister("tool_0")

    clock.now += REMEMBERED_SECONDS + 1
    assert not registry.availability.fresh()
    epoch = registry.availability.epoch
    registry.get_definitions()

    assert registry.availability.fresh()
    # Whoever relied on what was dropped has to look again.
    assert registry.availability.epoch > epoch


def test_the_epoch_changes_with_the_answers_only() -> None:
    check = Counting()
    registry, clock = with_tools(check)
    registry.get_definitions()
    epoch = registry.availability.epoch

    clock.now += REMEMBERED_SECONDS + 1
    registry.get_definitions()
    assert registry.availability.epoch == epoch

    check.answer = False
    clock.now += REMEMBERED_SECONDS + 1
    registry.get_definitions()
    assert registry.availability.epoch == epoch + 1


def test_a_requirement_is_looked_at_without_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    registry, _ = with_tools(needs("json"), needs("no_such_package_anywhere"))
    monkeypatch.setattr(threading, "Thread", None)

    assert [d["function"]["name"] for d in registry.get_definitions()] == ["tool_0"]
    check = needs("no_such_package_anywhere", extra="pdf")
    assert "hermes-tools[pdf]" in str(registry.availability.reason(check))
