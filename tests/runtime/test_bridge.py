"""From sync code to async handlers, in the three places sync code can find itself."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import subprocess
import sys
import threading
import warnings
from typing import Any

import pytest

from hermes.core import ToolCall, ToolRegistry, tool
from hermes.runtime import Runtime, waits


async def this_loop() -> asyncio.AbstractEventLoop:
    await asyncio.sleep(0)
    return asyncio.get_running_loop()


def test_the_main_thread_has_one_loop_for_good() -> None:
    first = waits.run(this_loop())
    second = waits.run(this_loop())

    assert first is second
    assert not first.is_closed()


def test_each_thread_has_a_loop_of_its_own_that_ends_with_it() -> None:
    seen: list[tuple[Any, Any]] = []

    def work() -> None:
        seen.append((waits.run(this_loop()), waits.run(this_loop())))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        threads = [threading.Thread(target=work) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        gc.collect()

    assert all(first is second for first, second in seen)
    assert len({id(first) for first, _ in seen}) == 5
    assert all(first.is_closed() for first, _ in seen)


def test_inside_a_running_loop_a_helper_with_one_loop_does_it() -> None:
    async def scene() -> tuple[Any, Any, Any]:
        return waits.run(this_loop()), waits.run(this_loop()), asyncio.get_running_loop()

    first, second, own = asyncio.run(scene())
    third, _, _ = asyncio.run(scene())

    assert first is second is third
    assert first is not own
    assert not first.is_closed()


def test_inside_a_running_loop_the_wait_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    cancelled = threading.Event()

    async def slow() -> None:
        try:
            await asyncio.sleep(20)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async def scene() -> None:
        waits.run(slow(), limit=0.02)

    with pytest.raises(TimeoutError, match=r"0\.02 s"):
        asyncio.run(scene())
    assert cancelled.wait(10)

    monkeypatch.setattr(waits, "HELPER_LIMIT_SECONDS", 0.02)
    registry = ToolRegistry()
    tool("slow", registry=registry, effect="read")(slow)
    runtime = Runtime(registry)

    async def call() -> Any:
        return runtime.call_sync(ToolCall("slow", {}))

    outcome = asyncio.run(call())
    assert outcome.status == "timeout"
    assert "await runtime.call" in outcome.value["error"]


def test_a_timeout_of_the_coroutine_itself_is_its_own() -> None:
    async def fails() -> None:
        raise TimeoutError("mine")

    async def scene() -> None:
        waits.run(fails())

    for run in (lambda: waits.run(fails()), lambda: asyncio.run(scene())):
        with pytest.raises(TimeoutError, match="mine"):
            run()


def test_bridges_may_cross_bridges() -> None:
    async def nested(depth: int) -> int:
        await asyncio.sleep(0)
        return 0 if depth == 0 else 1 + waits.run(nested(depth - 1), limit=10)

    async def scene() -> int:
        return waits.run(nested(4), limit=10)

    assert waits.run(nested(4)) == 4
    assert asyncio.run(scene()) == 4


def test_context_variables_cross_in_all_three_places() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")
    seen: list[str] = []

    async def read() -> None:
        await asyncio.sleep(0)
        seen.append(variable.get("nothing"))
        variable.set("changed inside")

    async def scene() -> None:
        variable.set("loop")
        waits.run(read())

    def thread() -> None:
        variable.set("thread")
        waits.run(read())

    variable.set("main")
    waits.run(read())
    worker = threading.Thread(target=thread)
    worker.start()
    worker.join()
    asyncio.run(scene())

    assert seen == ["main", "thread", "loop"]
    assert variable.get() == "main"


class Client:
    """Keeps what belongs to a loop, as an HTTP pool does."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[int] | None = None
        self.lock = asyncio.Lock()
        self.loops: list[Any] = []

    async def use(self) -> int:
        """Use it."""
        if self.queue is None:
            self.queue = asyncio.Queue()
        self.loops.append(asyncio.get_running_loop())
        async with self.lock:
            getting = asyncio.ensure_future(self.queue.get())
            await asyncio.sleep(0)
            await self.queue.put(len(self.loops))
            return await getting


@pytest.mark.parametrize("place", ["main", "thread", "loop"])
def test_a_client_stays_alive_from_call_to_call(place: str) -> None:
    registry, client = ToolRegistry(), Client()
    registry.register("use", "own", {}, client.use, effect="read")
    runtime = Runtime(registry)
    said: list[str] = []

    def calls() -> None:
        said.extend(runtime.dispatch("use", {}) for _ in range(5))

    async def scene() -> None:
        calls()

    if place == "main":
        calls()
    elif place == "thread":
        thread = threading.Thread(target=calls)
        thread.start()
        thread.join()
    else:
        asyncio.run(scene())

    assert said == ["1", "2", "3", "4", "5"]
    assert len(set(map(id, client.loops))) == 1


def test_ctrl_c_while_waiting_for_the_helper_ends_the_work_there() -> None:
    code = """
import asyncio, signal, os, threading, time
from hermes.runtime import waits
cancelled = threading.Event()
async def slow():
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1)).start()
    try:
        await asyncio.sleep(20)
    finally:
        cancelled.set()
def interrupt(*_):
    raise KeyboardInterrupt
signal.signal(signal.SIGUSR1, interrupt)
async def scene():
    waits.run(slow())
try:
    asyncio.run(scene())
except KeyboardInterrupt:
    print("interrupted", cancelled.wait(10))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=20, check=False
    )

    assert done.stdout == "interrupted True\n"


def test_the_program_ends_cleanly_even_with_tasks_left_in_the_loop() -> None:
    code = """
import asyncio, threading
from hermes.runtime import waits
from hermes.runtime import loop_thread; loop_thread.CANCEL_SECONDS = 0.1
kept = []
async def leave(stubborn):
    async def forever():
        while True:
            try:
                await asyncio.sleep(20)
            except asyncio.CancelledError:
                if not stubborn:
                    raise
    kept.append(asyncio.ensure_future(forever()))
waits.run(leave(False))
thread = threading.Thread(target=lambda: waits.run(leave(False)))
thread.start()
thread.join()
if STUBBORN:
    waits.run(leave(True))
print("end", flush=True)
"""
    for stubborn in ("False", "True"):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", code.replace("STUBBORN", stubborn)],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
        assert (done.stdout, done.returncode) == ("end\n", 0)
        if stubborn == "False":
            assert done.stderr == ""
