"""The event bus: everybody hears, nobody is hurt."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from hermes.core import ToolContext, ToolRegistry, tool
from hermes.runtime import Runtime
from hermes.runtime.hooks import EventBus

if TYPE_CHECKING:
    import pytest


def test_every_listener_hears_every_event_in_order() -> None:
    bus = EventBus()
    first: list[Any] = []
    second: list[Any] = []
    bus.subscribe(first.append)
    bus.subscribe(second.append)

    for number in range(3):
        bus.emit("progress", "c1", "work", message=str(number))

    assert first == second
    assert [(e.kind, e.call_id, e.tool, e.data) for e in first] == [
        ("progress", "c1", "work", {"message": str(number)}) for number in range(3)
    ]


def test_data_may_have_any_name() -> None:
    bus = EventBus()
    seen: list[Any] = []
    bus.subscribe(seen.append)

    bus.emit("output", "c1", "work", kind="x", call_id="y", tool="z", self="s")

    assert seen[0].kind == "output"
    assert seen[0].data == {"kind": "x", "call_id": "y", "tool": "z", "self": "s"}


def test_a_listener_that_fails_is_reported_and_hurts_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bus = EventBus()
    seen: list[Any] = []
    bus.subscribe(lambda event: 1 / 0)
    bus.subscribe(seen.append)

    bus.emit("started")

    assert len(seen) == 1
    assert "ZeroDivisionError" in caplog.text


def test_a_listener_that_left_hears_no_more_and_one_added_twice_hears_once() -> None:
    bus = EventBus()
    seen: list[Any] = []
    first = bus.subscribe(seen.append)
    bus.subscribe(seen.append)

    first()
    bus.emit("started")

    assert len(seen) == 1


def test_coming_and_going_while_events_are_emitted() -> None:
    bus = EventBus()
    seen: list[Any] = []
    bus.subscribe(seen.append)
    stop = threading.Event()

    def come_and_go() -> None:
        while not stop.is_set():
            bus.subscribe(lambda event: None)()

    threads = [threading.Thread(target=come_and_go) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(500):
        bus.emit("progress")
    stop.set()
    for thread in threads:
        thread.join()

    assert len(seen) == 500
    assert len(bus.listeners) == 1


def test_a_handler_tells_how_far_it_is() -> None:
    registry = ToolRegistry()

    @tool(registry=registry, effect="read")
    def work(ctx: ToolContext) -> str:
        """Work."""
        ctx.progress("half", fraction=0.5)
        ctx.output("a line")
        return "done"

    runtime = Runtime(registry)
    seen: list[Any] = []
    runtime.events.subscribe(seen.append)

    runtime.dispatch("work", {})

    assert [event.kind for event in seen] == ["started", "progress", "output", "finished"]
    assert seen[1].data == {"message": "half", "fraction": 0.5}
    assert seen[2].data == {"text": "a line"}
    assert "work" in repr(seen[0])
