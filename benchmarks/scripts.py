"""What a script costs, and the calls that it makes; what it saves in tokens."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.files import workspace
from benchmarks.measure import Row
from benchmarks.tokens import count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_ROUNDS = 25
_FILES = 30
_TIMED = """
import time
from hermes_tools import read_file
best = 1.0
for _ in range(400):
    began = time.perf_counter()
    read_file("0.txt")
    best = min(best, time.perf_counter() - began)
best * 1000
"""


def rows() -> Iterator[Row]:
    """An empty script, one call, ten thousand, and the tokens of a task."""
    with workspace("code: {max_calls: 20000}\n") as call:
        for number in range(_FILES):
            lines = "".join(f"line {n} of file {number}: some words\n" for n in range(60))
            Path(f"{number}.txt").write_text(lines)
        yield _empty(call)
        best = float(call("execute_code", code=_TIMED)["output"])
        yield Row("read_file in a script", best, "ms", 0.35)
        yield _many(call)
        yield _tokens(call)


def _empty(call: Callable[..., Any]) -> Row:
    # The interpreter that scripts run with here; a virtual environment has fewer packages to find.
    python = os.path.realpath(sys.executable)

    def by_hand() -> None:
        subprocess.run([python, "-c", "pass"], check=True)

    def ours() -> None:
        assert call("execute_code", code="pass")["output"] == ""

    best = {by_hand: float("inf"), ours: float("inf")}
    for _ in range(_ROUNDS):
        for work in best:
            began = time.perf_counter()
            work()
            best[work] = min(best[work], time.perf_counter() - began)
    return Row("empty script / python -c pass", best[ours] / best[by_hand], "×", 1.3)


def _many(call: Callable[..., Any]) -> Row:
    code = 'from hermes_tools import read_file\nfor _ in range({}): read_file("0.txt")'
    call("execute_code", code=code.format(1_000))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    call("execute_code", code=code.format(10_000))
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return Row("10,000 calls in one script, memory", grown, "MB", 5)


def _tokens(call: Callable[..., Any]) -> Row:
    """Count the lines of thirty files with a word: the request and the results."""
    code = (
        "from hermes_tools import read_file\n"
        f"print(sum(read_file(f'{{n}}.txt')['content'].count('words') for n in range({_FILES})))"
    )
    script = count([{"code": code}, call("execute_code", code=code)])
    paths = [f"{number}.txt" for number in range(_FILES)]
    direct = sum(count([{"path": path}, call("read_file", path=path)]) for path in paths)
    return Row("tokens of 30 reads by a script / one by one", script / direct, "×", 0.12)
