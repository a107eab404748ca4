"""What fails is started again, as often as was asked; what ends well or is killed is not."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from hermes.environments.background import Restarts
from hermes.environments.host.host_environment import LocalEnvironment


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalEnvironment]:
    made = LocalEnvironment(str(tmp_path))
    yield made
    made.cleanup()


@pytest.fixture
def restarts() -> Iterator[Restarts]:
    made = Restarts()
    yield made
    made.close()


def eventually(holds: Callable[[], bool], seconds: float = 15.0) -> bool:
    until = time.monotonic() + seconds
    while not holds() and time.monotonic() < until:
        time.sleep(0.02)
    return holds()


def watched(local: LocalEnvironment, restarts: Restarts, command: str, most: int = 3) -> None:
    begin = partial(local.start, command, name="it")
    restarts.watch(begin(), begin, most=most, first_seconds=0.01)


def test_it_is_started_again_until_it_ends_well(
    local: LocalEnvironment, restarts: Restarts, tmp_path: Path
) -> None:
    watched(local, restarts, "echo x >> tries; [ $(wc -l < tries) -ge 3 ]")

    assert eventually(lambda: "did not fail" in restarts.shown("it")["restart"])
    assert restarts.shown("it")["restarts"] == 2
    assert (tmp_path / "tries").read_text() == "x\n" * 3
    assert [one.exit_code for one in local.processes()] == [1, 1, 0]


def test_it_is_given_up_after_so_many_failures(local: LocalEnvironment, restarts: Restarts) -> None:
    watched(local, restarts, "exit 3", most=2)

    assert eventually(lambda: restarts.shown("it")["restart"] == "given up after 2 in a row")
    assert len(local.processes()) == 3


def test_what_was_killed_on_purpose_stays_dead(local: LocalEnvironment, restarts: Restarts) -> None:
    watched(local, restarts, "sleep 1000")

    local.processes()[0].kill("the test")

    assert eventually(lambda: "did not fail" in restarts.shown("it")["restart"])
    assert len(local.processes()) == 1


def test_a_crash_by_a_signal_is_a_failure(local: LocalEnvironment, restarts: Restarts) -> None:
    watched(local, restarts, "kill -SEGV $$", most=1)

    assert eventually(lambda: restarts.shown("it")["restart"] == "given up after 1 in a row")


def test_nothing_is_started_after_the_end(local: LocalEnvironment) -> None:
    restarts = Restarts()
    begin = partial(local.start, "exit 1", name="it")
    restarts.watch(begin(), begin, most=100, first_seconds=30.0)
    assert eventually(lambda: restarts.shown("it")["restart"] == "in 30 s")

    restarts.close()

    assert len(local.processes()) == 1
    assert restarts.shown("it")["restart"] == "switched off"
