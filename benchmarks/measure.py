"""How we measure: CPU time, the least of several runs, children included where there are any."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence


class Row(NamedTuple):
    """One measurement: what, how much, and how much it may be."""

    what: str
    value: float
    unit: str
    limit: float | None = None

    @property
    def holds(self) -> bool:
        """Whether it is within its limit."""
        return self.limit is None or self.value <= self.limit


def usual_environment(changes: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a usual machine, where Python keeps what it has compiled."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, **(changes or {})}


def process_ms(
    command: Sequence[str], *, runs: int = 15, env: dict[str, str] | None = None
) -> float:
    """CPU milliseconds of a whole process, the least of several runs."""
    best = float("inf")
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True, env=usual_environment(env))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        best = min(best, used)
    return best * 1000


def python_ms(code: str, **more: object) -> float:
    """CPU milliseconds of `python -c code`."""
    return process_ms([sys.executable, "-c", code], **more)  # type: ignore[arg-type]


def each_us(work: Callable[[], object], *, runs: int = 25, times: int = 2_048) -> float:
    """CPU microseconds of one call of `work`, the least of several rounds."""
    return alternately_us({"": work}, runs=runs, times=times)[""]


def alternately_us(
    works: Mapping[str, Callable[[], object]], *, runs: int = 60, times: int = 2_048
) -> dict[str, float]:
    """The same for several, in turns: a machine that is slow for a while is so for all of them.

    A round is long enough for what happens only now and then, such as a flush, to be in it.
    """
    best = dict.fromkeys(works, float("inf"))
    for _ in range(runs):
        for name, work in works.items():
            begun = time.process_time()
            for _ in range(times):
                work()
            best[name] = min(best[name], time.process_time() - begun)
    return {name: seconds / times * 1e6 for name, seconds in best.items()}


async def each_us_async(
    work: Callable[[], Awaitable[object]], *, runs: int = 60, times: int = 2_048
) -> float:
    """The same for something to be awaited in the running loop."""
    best = float("inf")
    for _ in range(runs):
        begun = time.process_time()
        for _ in range(times):
            await work()
        best = min(best, time.process_time() - begun)
    return best / times * 1e6
