"""Worker threads: bounded, never short of a wake-up, given up on when stuck."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from typing import Any

import pytest

from hermes.core import Cancellation, CancelledError
from hermes.runtime import workers as module
from hermes.runtime.workers import StoppedLateError, Workers


def run(workers: Workers, work: Any, seconds: float | None = 20, **more: Any) -> Any:
    more.setdefault("cancellation", Cancellation())
    more.setdefault("grace", 0.01)
    return workers.run(work, seconds=seconds, **more)


def eventually(holds: Any) -> bool:
    for _ in range(1000):
        if holds():
            return True
        time.sleep(0.005)
    return False


def test_work_gives_its_result_or_raises_its_error() -> None:
    workers = Workers()

    assert run(workers, lambda: 5) == 5
    with pytest.raises(ZeroDivisionError):
        run(workers, lambda: 1 / 0)
    assert workers.submit(lambda: 6).wait(10)


def test_context_variables_come_along() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")
    variable.set("here")

    assert run(Workers(), variable.get) == "here"


def test_no_more_than_size_run_at_once_and_all_are_done() -> None:
    workers = Workers(size=4)
    lock = threading.Lock()
    now, most, done = 0, 0, 0

    def work() -> None:
        nonlocal now, most, done
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.0005)
        with lock:
            now -= 1
            done += 1

    jobs = [workers.submit(work) for _ in range(500)]

    assert all(job.wait(20) for job in jobs)
    assert done == 500
    assert 1 < most <= 4
    assert workers._threads <= 4


def test_threads_are_made_only_as_they_are_needed() -> None:
    workers = Workers(size=8)

    for _ in range(50):
        run(workers, lambda: None)
        assert eventually(lambda: workers._idle == workers._threads)

    assert workers._threads == 1


def test_submitting_from_many_threads_loses_no_job() -> None:
    workers = Workers(size=6)
    results: list[int] = []
    lock = threading.Lock()

    def submit(start: int) -> None:
        for number in range(start, start + 100):
            value = run(workers, lambda number=number: number)
            with lock:
                results.append(value)

    threads = [threading.Thread(target=submit, args=(n * 100,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(results) == list(range(1600))
    assert workers._threads <= 6
    assert eventually(lambda: workers._idle == workers._threads)


def test_a_stress_of_everything_at_once_leaves_the_pool_whole() -> None:
    workers = Workers(size=4)
    outcomes: list[str] = []
    lock = threading.Lock()
    release = threading.Event()

    def one(number: int) -> str:
        cancellation = Cancellation()
        try:
            if number % 5 == 0:
                run(workers, lambda: release.wait(20), 0.01, grace=0.001)
            elif number % 5 == 1:
                timer = threading.Timer(0.005, cancellation.cancel)
                timer.start()
                run(workers, lambda: cancellation.wait(20), cancellation=cancellation, grace=10)
            elif number % 5 == 2:
                run(workers, lambda: 1 / 0)
            else:
                run(workers, lambda: number)
        except StoppedLateError:
            return "late"
        except CancelledError:
            return "cancelled"
        except ZeroDivisionError:
            return "error"
        return "ok"

    def many(start: int) -> None:
        for number in range(start, start + 25):
            said = one(number)
            with lock:
                outcomes.append(said)

    threads = [threading.Thread(target=many, args=(n * 25,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    release.set()

    assert len(outcomes) == 200
    assert outcomes.count("late") == 40
    assert outcomes.count("error") == 40
    assert run(workers, lambda: "still works") == "still works"
    assert eventually(lambda: 0 <= workers._idle == workers._threads <= 4)


def test_a_stuck_thread_is_replaced_and_its_result_thrown_away() -> None:
    workers = Workers(size=1)
    release, ended = threading.Event(), threading.Event()

    def stuck() -> str:
        release.wait(20)
        ended.set()
        return "late"

    with pytest.raises(StoppedLateError) as caught:
        run(workers, stuck, 0.02)

    assert caught.value.stuck
    assert run(workers, lambda: "next") == "next"
    release.set()
    assert ended.wait(10)
    assert eventually(lambda: workers._threads == 1)


def test_work_that_never_began_never_will() -> None:
    workers = Workers(size=1, queue_seconds=0)
    release, ran = threading.Event(), threading.Event()
    begun = threading.Event()
    first = workers.submit(lambda: (begun.set(), release.wait(20)))
    assert begun.wait(10)

    with pytest.raises(StoppedLateError) as caught:
        run(workers, ran.set, 0.02)
    release.set()
    assert first.wait(10)
    assert run(workers, lambda: 5) == 5

    assert not caught.value.stuck
    assert not ran.is_set()
    assert workers._threads == 1


def test_queued_work_goes_on_when_a_stuck_thread_is_given_up_on() -> None:
    workers = Workers(size=1)
    release, begun = threading.Event(), threading.Event()
    stuck = workers.submit(lambda: (begun.set(), release.wait(20)))
    assert begun.wait(10)
    queued = workers.submit(lambda: 7)

    workers.abandon(stuck)

    assert queued.wait(10)
    assert queued.result() == 7
    release.set()


def test_work_may_wait_for_work_of_the_same_pool() -> None:
    workers = Workers(size=2)

    def nested(depth: int) -> int:
        return 0 if depth == 0 else 1 + run(workers, lambda: nested(depth - 1))

    async def from_a_loop() -> int:
        return await workers.run_async(
            lambda: nested(3), seconds=None, cancellation=Cancellation(), grace=0
        )

    jobs = [workers.submit(lambda: nested(5)) for _ in range(6)]
    jobs.append(workers.submit(lambda: asyncio.run(from_a_loop())))

    assert [job.wait(20) and job.result() for job in jobs] == [5] * 6 + [3]
    assert eventually(lambda: workers._threads <= 2 and workers._waiting == 0)


def test_a_thread_with_nothing_to_do_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "IDLE_SECONDS", 0.01)
    workers = Workers()

    assert run(workers, lambda: 1) == 1
    assert eventually(lambda: workers._threads == 0)
    assert workers._idle == 0
    assert run(workers, lambda: 2) == 2


def test_what_was_cancelled_may_say_what_it_had_done() -> None:
    cancellation = Cancellation()
    begun = threading.Event()

    def work() -> str:
        begun.set()
        cancellation.wait(20)
        return "three of five"

    threading.Thread(target=lambda: begun.wait(10) and cancellation.cancel("stop")).start()

    assert run(Workers(), work, None, cancellation=cancellation, grace=10) == "three of five"


def test_what_was_cancelled_and_raises_is_cancelled_with_the_reason() -> None:
    cancellation = Cancellation()
    begun = threading.Event()

    def work() -> None:
        begun.set()
        cancellation.wait(20)
        cancellation.check()

    threading.Thread(target=lambda: begun.wait(10) and cancellation.cancel("lunch")).start()

    with pytest.raises(CancelledError, match="lunch"):
        run(Workers(), work, None, cancellation=cancellation, grace=10)


@pytest.mark.parametrize("error", [SystemExit(3), asyncio.CancelledError(), GeneratorExit()])
def test_what_would_end_the_waiting_thread_is_the_works_own_error(error: BaseException) -> None:
    def work() -> None:
        raise error

    with pytest.raises(RuntimeError, match=type(error).__name__):
        run(Workers(), work)


def test_the_same_holds_inside_a_loop() -> None:
    workers = Workers(size=2)
    release = threading.Event()

    async def scene() -> list[str]:
        def run_async(work: Any, seconds: float | None = 20, cancellation: Any = None) -> Any:
            return workers.run_async(
                work,
                seconds=seconds,
                cancellation=cancellation or Cancellation(),
                grace=0.01,
            )

        async def attempt(awaitable: Any) -> str:
            try:
                return str(await awaitable)
            except (StoppedLateError, CancelledError, ZeroDivisionError, RuntimeError) as error:
                return type(error).__name__

        stopped, begun = Cancellation(), threading.Event()
        threading.Thread(target=lambda: begun.wait(10) and stopped.cancel()).start()
        return [
            await attempt(run_async(lambda: 5)),
            await attempt(run_async(lambda: 1 / 0)),
            await attempt(run_async(lambda: release.wait(20), 0.01)),
            await attempt(run_async(lambda: (begun.set(), release.wait(20)), None, stopped)),
            *await asyncio.gather(*[attempt(run_async(lambda n=n: n)) for n in range(50)]),
        ]

    said = asyncio.run(scene())
    release.set()

    assert said[:4] == ["5", "ZeroDivisionError", "StoppedLateError", "StuckError"]
    assert said[4:] == [str(n) for n in range(50)]


def test_a_cancelled_waiter_gives_its_work_up() -> None:
    workers = Workers(size=1)
    begun, cancellation = threading.Event(), Cancellation()
    release = threading.Event()

    async def scene() -> None:
        task = asyncio.ensure_future(
            workers.run_async(
                lambda: (begun.set(), release.wait(20)),
                seconds=None,
                cancellation=cancellation,
                grace=0,
            )
        )
        assert await asyncio.to_thread(begun.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scene())

    assert cancellation.cancelled
    assert run(workers, lambda: "free") == "free"
    release.set()
