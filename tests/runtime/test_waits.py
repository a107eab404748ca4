"""Time limits and cancellation: every call ends, whatever its handler does."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from hermes.core import ToolCall, ToolContext, ToolRegistry, tool
from hermes.runtime import Runtime
from hermes.runtime.workers import Workers

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.core import ToolOutcome


class Scene:
    """A runtime with one tool `work` on it, and what was seen."""

    def __init__(self, handler: Callable[..., Any], **fields: Any) -> None:
        self.registry = ToolRegistry()
        tool("work", registry=self.registry, effect="read", **fields)(handler)
        self.runtime = Runtime(self.registry, grace_seconds=0.05)
        self.trouble: list[str] = []
        self.runtime.events.subscribe(
            lambda e: self.trouble.append(e.data["message"]) if e.kind == "trouble" else None
        )

    def sync(self, call_id: str = "c1", context: Any = None) -> ToolOutcome:
        return self.runtime.call_sync(ToolCall("work", {}, id=call_id), context)

    def in_loop(self, call_id: str = "c1", context: Any = None) -> ToolOutcome:
        return asyncio.run(self.runtime.call(ToolCall("work", {}, id=call_id), context))


WAYS = ["sync", "in_loop"]
begun = threading.Event()
release = threading.Event()


@pytest.fixture(autouse=True)
def _fresh() -> Any:
    begun.clear()
    release.clear()
    yield
    release.set()


def ignoring() -> str:
    """Hear nothing."""
    begun.set()
    release.wait(20)
    return "late"


def listening(ctx: ToolContext) -> str:
    """Stop when told."""
    begun.set()
    assert ctx.cancellation.wait(20)
    ctx.check_cancelled()
    return "never"


async def awaiting() -> str:
    """Await."""
    begun.set()
    await asyncio.sleep(20)
    return "never"


async def swallowing() -> str:
    """Go on whatever happens."""
    begun.set()
    while True:
        try:
            await asyncio.sleep(20)
        except asyncio.CancelledError:
            continue


async def undying() -> str:
    """Go on even when closed."""
    begun.set()
    for _ in range(100):
        try:
            await asyncio.sleep(20)
        except BaseException:  # noqa: BLE001
            continue
    return "never"


async def cleaning() -> str:
    """Take a moment to stop."""
    begun.set()
    try:
        await asyncio.sleep(20)
    finally:
        await asyncio.sleep(0)
        release.set()
    return "never"


STUCK = [ignoring, swallowing, undying]
HANDLERS = [*STUCK, listening, awaiting, cleaning]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("handler", HANDLERS)
def test_a_handler_past_its_time_is_stopped(way: str, handler: Any) -> None:
    scene = Scene(handler, timeout_seconds=0.05)

    outcome = getattr(scene, way)()

    assert outcome.status == "timeout"
    assert "stopped after 0.05 s" in outcome.value["error"]
    stuck = handler in STUCK
    assert ("given up on" in outcome.value["error"]) == stuck
    assert len(scene.trouble) == stuck
    assert scene.runtime.running() == []


@pytest.mark.parametrize("way", WAYS)
def test_a_handler_within_its_time_is_left_alone(way: str) -> None:
    async def quick() -> str:
        """Be quick."""
        await asyncio.sleep(0.001)
        return "done"

    assert getattr(Scene(lambda: "done", timeout_seconds=20), way)().value == "done"
    assert getattr(Scene(quick, timeout_seconds=20), way)().value == "done"


@pytest.mark.parametrize("way", WAYS)
def test_a_timeout_of_the_handlers_own_is_an_error_like_others(way: str) -> None:
    def own() -> None:
        """Fail."""
        raise TimeoutError("the host did not answer")

    async def awaited() -> None:
        """Fail."""
        async with asyncio.timeout(0.001):
            await asyncio.sleep(20)

    outcome = getattr(Scene(own), way)()

    assert outcome.status == "error"
    message = "Tool execution failed: TimeoutError: the host did not answer"
    assert outcome.value["error"] == message
    assert getattr(Scene(awaited, timeout_seconds=20), way)().status == "error"


@pytest.mark.parametrize("handler", STUCK)
def test_a_stuck_handler_does_not_keep_the_program_from_ending(handler: Any) -> None:
    code = f"""
import asyncio, threading
from hermes.core import ToolCall, ToolRegistry, tool
from hermes.runtime import Runtime
from hermes.runtime.workers import Workers
begun, release = threading.Event(), threading.Event()
{source(handler)}
registry = ToolRegistry()
tool("work", registry=registry, effect="read", timeout_seconds=0.05)({handler.__name__})
runtime = Runtime(registry, grace_seconds=0.05)
print(runtime.call_sync(ToolCall("work", {{}})).status)
print(asyncio.run(runtime.call(ToolCall("work", {{}}))).status)
runtime.close()
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=20
    )

    assert (done.stdout, done.returncode) == ("timeout\ntimeout\n", 0)
    assert "Traceback" not in done.stderr


def source(handler: Any) -> str:
    import inspect

    return inspect.getsource(handler)


def cancel_when_begun(
    scene: Scene, call_id: str = "c1", reason: str = "enough"
) -> threading.Thread:
    def stop() -> None:
        assert begun.wait(10)
        assert scene.runtime.cancel(call_id, reason)

    thread = threading.Thread(target=stop)
    thread.start()
    return thread


@pytest.mark.parametrize(
    ("way", "limit", "handler"),
    [
        (way, limit, handler)
        for way in WAYS
        for limit in (None, 20)
        for handler in HANDLERS
        # Plain code called by plain code runs in the caller's own thread: nothing can stop it.
        if (way, limit, handler) != ("sync", None, ignoring)
    ],
)
def test_a_call_can_be_cancelled_from_another_thread(way: str, limit: Any, handler: Any) -> None:
    scene = Scene(handler, timeout_seconds=limit)
    thread = cancel_when_begun(scene)

    outcome = getattr(scene, way)()
    thread.join()

    assert outcome.status == "cancelled"
    assert "enough" in outcome.value["error"]
    assert len(scene.trouble) == (handler in STUCK)
    assert not scene.runtime.cancel("c1")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("handler", [listening, awaiting])
def test_cancelling_the_context_cancels_its_calls(way: str, handler: Any) -> None:
    scene = Scene(handler)
    context = scene.runtime.context()
    threading.Thread(
        target=lambda: begun.wait(10) and context.cancellation.cancel("session over")
    ).start()

    first = getattr(scene, way)("c1", context)
    after = getattr(scene, way)("c2", context)

    assert (first.status, after.status) == ("cancelled", "cancelled")
    assert "session over" in first.value["error"]


def test_cancelling_one_call_leaves_the_others() -> None:
    scene = Scene(awaiting)

    async def both() -> list[str]:
        scene.registry.register("quick", "own", {}, quick, effect="read")
        calls = [ToolCall("work", {}, id="c1"), *[ToolCall("quick", {}) for _ in range(5)]]
        running = asyncio.ensure_future(scene.runtime.call_many(calls))
        await asyncio.sleep(0.01)
        assert scene.runtime.cancel("c1")
        return [outcome.status for outcome in await running]

    async def quick() -> str:
        await asyncio.sleep(0.03)
        return "done"

    assert asyncio.run(both()) == ["cancelled", "ok", "ok", "ok", "ok", "ok"]


def test_a_cancelled_call_does_not_cancel_what_its_caller_does_next() -> None:
    async def ends_itself(ctx: ToolContext) -> str:
        """Be told to stop at the very end."""
        await asyncio.sleep(0)
        ctx.cancellation.cancel("too late")
        return "done"

    scene = Scene(ends_itself)

    async def caller() -> tuple[str, int]:
        outcome = await scene.runtime.call(ToolCall("work", {}))
        await asyncio.sleep(0.01)
        task = asyncio.current_task()
        assert task is not None
        return outcome.status, task.cancelling()

    assert asyncio.run(caller()) == ("ok", 0)


@pytest.mark.parametrize("limit", [None, 20])
@pytest.mark.parametrize("handler", [listening, awaiting, cleaning, swallowing])
def test_cancelling_the_caller_reaches_the_handler(limit: Any, handler: Any) -> None:
    contexts: list[ToolContext] = []

    async def noted(ctx: ToolContext) -> Any:
        """Note the context."""
        contexts.append(ctx)
        return await handler()

    scene = Scene(handler if handler is listening else noted, timeout_seconds=limit)
    finished: list[str] = []
    scene.runtime.events.subscribe(
        lambda e: finished.append(e.data["outcome"].status) if e.kind == "finished" else None
    )

    async def caller() -> None:
        task = asyncio.ensure_future(scene.runtime.call(ToolCall("work", {})))
        await asyncio.to_thread(begun.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(caller())

    assert finished == ["cancelled"]
    assert all(context.cancelled for context in contexts)
    assert scene.runtime.running() == []


def test_a_caller_with_a_limit_of_its_own_gets_its_own_timeout() -> None:
    scene = Scene(awaiting)

    async def caller() -> None:
        async with asyncio.timeout(0.02):
            await scene.runtime.call(ToolCall("work", {}))

    with pytest.raises(TimeoutError):
        asyncio.run(caller())


@pytest.mark.parametrize("way", WAYS)
def test_a_handlers_own_cancelled_error_is_nobody_elses(way: str) -> None:
    async def waits_for_something_cancelled() -> None:
        """Await a future that is cancelled."""
        future = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(future.cancel)
        await future

    async def at_once() -> None:
        """Raise it."""
        raise asyncio.CancelledError

    for handler in (waits_for_something_cancelled, at_once):
        for limit in (None, 20):
            outcome = getattr(Scene(handler, timeout_seconds=limit), way)()
            assert outcome.status in ("cancelled", "error")


@pytest.mark.parametrize("limit", [None, 20])
def test_ctrl_c_in_a_handler_is_recorded_and_passed_on(limit: Any) -> None:
    def interrupted() -> None:
        """Be interrupted."""
        raise KeyboardInterrupt

    scene = Scene(interrupted, timeout_seconds=limit)
    finished: list[str] = []
    scene.runtime.events.subscribe(
        lambda e: finished.append(e.data["outcome"].status) if e.kind == "finished" else None
    )

    with pytest.raises(KeyboardInterrupt):
        scene.sync()

    assert finished == ["cancelled"]
    assert scene.runtime.running() == []


def test_a_handler_that_exits_does_not_end_the_program() -> None:
    def leaves() -> None:
        """Leave."""
        sys.exit(3)

    async def leaves_later() -> None:
        """Leave."""
        await asyncio.sleep(0)
        sys.exit(3)

    for handler in (leaves, leaves_later):
        for limit in (None, 20):
            outcome = Scene(handler, timeout_seconds=limit).in_loop()
            assert outcome.status == "error"
            assert "SystemExit: 3" in outcome.value["error"]


def test_two_calls_of_one_id_do_not_get_in_each_others_way() -> None:
    scene = Scene(listening)
    outcomes: list[ToolOutcome] = []
    threads = [
        threading.Thread(target=lambda: outcomes.append(scene.sync("same"))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    while scene.runtime.running() != ["same"] * 3:
        begun.wait(0.001)

    assert scene.runtime.cancel("same")
    for thread in threads:
        thread.join()

    assert [outcome.status for outcome in outcomes] == ["cancelled"] * 3


def test_a_call_that_waits_for_approval_can_be_cancelled() -> None:
    registry = ToolRegistry()
    ran: list[int] = []
    tool("work", registry=registry, effect="write", origin="plugin")(lambda: ran.append(1))

    async def ask(request: Any) -> bool:
        begun.set()
        await asyncio.sleep(20)
        return True

    def ask_in_thread(request: Any) -> bool:
        begun.set()
        release.wait(20)
        return True

    for approver in (ask, ask_in_thread):
        begun.clear()
        runtime = Runtime(registry, approver=approver)
        threading.Thread(
            target=lambda runtime=runtime: begun.wait(10) and runtime.cancel("c1", "never mind")
        ).start()
        outcome = asyncio.run(runtime.call(ToolCall("work", {}, id="c1")))
        assert outcome.status == "cancelled"
        assert "never mind" in outcome.content

    assert ran == []


@pytest.mark.parametrize("way", WAYS)
def test_a_handler_may_have_time_limits_and_task_groups_of_its_own(way: str) -> None:
    async def fail() -> None:
        raise ValueError("one of them failed")

    async def patient(ctx: ToolContext) -> str:
        try:
            async with asyncio.timeout(0.01):
                await asyncio.sleep(60)
        except TimeoutError:
            pass
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(fail())
                await asyncio.sleep(60)
        except* ValueError:
            pass
        # Longer than the grace: whoever took that for a cancellation would give up here.
        await asyncio.sleep(0.3)
        return "done"

    scene = Scene(patient)
    scene.runtime.grace_seconds = 0.1

    assert getattr(scene, way)().value == "done"
    assert scene.trouble == []


def test_the_time_in_the_queue_is_not_the_tools() -> None:
    """Twelve calls of half their limit each, two at a time: the last begins long after the limit."""
    registry = ToolRegistry()

    @tool(registry=registry, effect="read", timeout_seconds=0.4)
    def slow() -> str:
        """Take a while."""
        time.sleep(0.2)
        return "done"

    runtime = Runtime(registry, workers=Workers(2))

    async def turn() -> list[str]:
        calls = [runtime.call(ToolCall("slow", {})) for _ in range(12)]
        return [outcome.status for outcome in await asyncio.gather(*calls)]

    assert asyncio.run(turn()) == ["ok"] * 12
