"""What a command costs through the whole pipeline, beside starting it by hand."""

from __future__ import annotations

import os
import resource
import subprocess
import time
from typing import TYPE_CHECKING

from benchmarks.files import workspace
from benchmarks.measure import Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

# The system counts the time of ended processes in hundredths of a second: many for each figure.
_ROUNDS, _EACH = 5, 150


def rows() -> Iterator[Row]:
    """`true`, and a flood of output."""
    with workspace() as call:
        yield _true(call)
        yield from _flood(call)


def _true(call: Callable[..., Any]) -> Row:
    def by_hand() -> None:
        subprocess.run(["bash", "-c", "true"], capture_output=True, check=True)

    def ours() -> None:
        assert call("terminal", command="true")["exit_code"] == 0

    ours()
    best = {by_hand: float("inf"), ours: float("inf")}
    for _ in range(_ROUNDS):
        for work in best:
            began = _cpu()
            for _ in range(_EACH):
                work()
            best[work] = min(best[work], _cpu() - began)
    return Row("terminal, `true` / bash -c true", best[ours] / best[by_hand], "× CPU", 1.5)


def _flood(call: Callable[..., Any]) -> Iterator[Row]:
    with open("flood", "wb") as file:
        for _ in range(100):
            file.write((b"x" * 99 + b"\n") * 10_486)

    def plain() -> float:
        began = time.perf_counter()
        subprocess.run("cat flood | cat > /dev/null", shell=True, check=True)
        return time.perf_counter() - began

    def ours() -> float:
        began = time.perf_counter()
        assert call("terminal", command="cat flood")["exit_code"] == 0
        return time.perf_counter() - began

    ours()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times = [(ours(), plain()) for _ in range(5)]
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    ratio = min(ours for ours, _ in times) / min(plain for _, plain in times)
    yield Row("terminal, 100 MB of output / cat to a pipe", ratio, "×", 2)
    yield Row("terminal, 100 MB of output, memory", grown, "MB", 50)


def _cpu() -> float:
    """Of everything that was started here and of who watches over it."""
    total = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        used = resource.getrusage(who)
        total += used.ru_utime + used.ru_stime
    return total + _guardian_cpu()


def _guardian_cpu() -> float:
    from hermes.environments.host.guardian_client import guardian

    if not guardian.pid:
        return 0.0
    with open(f"/proc/{guardian.pid}/schedstat") as file:
        its_own = int(file.read().split()[0]) / 1e9
    with open(f"/proc/{guardian.pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    # Those of its children that have ended: user, system.
    return its_own + sum(map(int, fields[13:15])) / os.sysconf("SC_CLK_TCK")
