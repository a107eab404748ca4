"""An event loop in a thread: started by its first use, closed with what is left in it."""

from __future__ import annotations

import asyncio
import threading

import pytest

from hermes.runtime import loop_thread
from hermes.runtime.loop_thread import LoopThread


async def name() -> str:
    return threading.current_thread().name


def test_nothing_is_started_before_the_first_use() -> None:
    thread = LoopThread("idle")

    assert not thread.started
    thread.close()


def test_coroutines_run_in_the_thread_and_a_closed_one_starts_anew() -> None:
    thread = LoopThread("worker")

    first = thread.submit(name()).result(5)
    loop = thread.loop
    thread.close()
    second = thread.submit(name()).result(5)

    assert (first, second) == ("worker", "worker")
    assert loop.is_closed()
    thread.close()


def test_closing_runs_the_last_coroutine_and_cancels_the_rest() -> None:
    thread = LoopThread("worker")
    events: list[str] = []

    async def endless() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            events.append("cancelled")
            raise

    async def last() -> None:
        events.append("last")

    thread.submit(endless())
    thread.submit(asyncio.sleep(0)).result(5)
    thread.close(last())

    assert events == ["last", "cancelled"]


def test_a_task_that_ignores_its_end_is_given_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_thread, "CANCEL_SECONDS", 0.05)
    thread = LoopThread("stubborn")

    async def stubborn() -> None:
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                continue

    thread.submit(stubborn())
    loop = thread.loop
    thread.close(seconds=0.05)

    assert loop.is_closed()


def test_a_thread_with_a_main_coroutine_ends_with_it() -> None:
    ended = threading.Event()

    async def main() -> None:
        ended.set()

    thread = LoopThread("main", main=main, before=lambda: True)
    thread.start()
    thread.join(5)

    assert ended.is_set()
    assert thread.loop.is_closed()


def test_a_thread_that_is_not_wanted_any_more_makes_no_loop() -> None:
    thread = LoopThread("unwanted", before=lambda: False)
    thread.start()
    thread.join(5)

    with pytest.raises(RuntimeError, match="unwanted has ended"):
        _ = thread.loop
