"""A search ends when its time is up or somebody wants it to, and says what it has."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from pathlib import Path

import psutil
import pytest
from tests.files.search.conftest import make, search

from hermes.core.context import Cancellation, CancelledError
from hermes.files.search.query import SearchDeadline

# Takes Python longer than anybody lives.
EVIL = r"(a+)+\1$"
VICTIM = "a" * 60 + "!\n"


_before: set[int] = set()


@pytest.fixture(autouse=True)
def before() -> None:
    """Other tests of this process may have started something that lives as long as it does."""
    _before.clear()
    _before.update(one.pid for one in psutil.Process().children(recursive=True))


def children() -> list[psutil.Process]:
    """What was started here and goes on."""
    started = psutil.Process().children(recursive=True)
    return [one for one in started if one.pid not in _before]


@pytest.mark.parametrize("pattern", [EVIL, "(a|aa)+$", "(.*)*x$"])
def test_a_pattern_that_would_take_years_is_stopped(tmp_path: Path, pattern: str) -> None:
    make(tmp_path, {"b.txt": "fine\n", "c.txt": VICTIM})

    found = search(tmp_path, pattern, engine="python", watch=SearchDeadline(0.6))

    assert not found.finished or not found.counts
    assert not children()


def test_time_that_is_up_gives_what_there_is(tmp_path: Path, engine: str) -> None:
    make(tmp_path, {f"{n}.txt": "needle\n" for n in range(50)})

    found = search(tmp_path, "needle", engine=engine, watch=SearchDeadline(1e-9))

    assert not found.finished
    assert found.scanned < 50


def test_a_search_that_is_cancelled_ends_at_once(tmp_path: Path) -> None:
    make(tmp_path, {"c.txt": VICTIM})
    cancellation = Cancellation()
    threading.Timer(0.3, cancellation.cancel).start()
    begun = time.monotonic()

    with pytest.raises(CancelledError):
        search(tmp_path, EVIL, engine="python", watch=SearchDeadline(60, cancellation=cancellation))

    assert time.monotonic() - begun < 30
    assert not children()


def test_a_search_by_ripgrep_that_was_cancelled_before_does_not_begin(tmp_path: Path) -> None:
    cancellation = Cancellation()
    cancellation.cancel()

    with pytest.raises(CancelledError):
        search(tmp_path, "a", engine="ripgrep", watch=SearchDeadline(60, cancellation=cancellation))

    assert not children()


@pytest.mark.parametrize("reason", ["time", "cancelled"])
def test_a_process_is_killed_when_it_is_to_stop(reason: str) -> None:
    cancellation = Cancellation()
    watch = SearchDeadline(0.2 if reason == "time" else 60, cancellation=cancellation)
    process = subprocess.Popen(["sleep", "60"], stdout=subprocess.PIPE)
    if reason == "cancelled":
        threading.Timer(0.2, cancellation.cancel).start()

    with watch.over(process):
        process.wait(30)

    assert process.returncode == -signal.SIGKILL


def test_what_there_is_no_time_to_judge_is_not_shown(tmp_path: Path, engine: str) -> None:
    make(tmp_path, {f"{n}.txt": "needle\n" for n in range(5)})
    watch = SearchDeadline(20)

    def slow(place: str) -> bool:
        watch._end = 0.0
        return True

    found = search(tmp_path, "needle", engine=engine, watch=watch, readable=slow)

    assert len(found.counts) == 1
    assert not found.finished
