"""What a tool is about to change is kept at once, and made small when that delays nobody."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.stores.checkpoints.conftest import Agent

from hermes.stores.checkpoints import Checkpoints, State, digest_of
from hermes.testing import FakeClock

DAY = 86_400
LINES = "".join(f"line {number} of a text\n" for number in range(20_000)).encode()

# Ends itself at the n-th change that it makes to the disk while it compresses.
STEPWISE = """
import os, signal, sys
from hermes.stores.checkpoints.blobs import Contents
from hermes.stores.checkpoints.checkpoint_db import Database

left = int(sys.argv[2])

def counted(function):
    def call(*arguments, **options):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **options)
    return call

for name in ("unlink", "fsync", "open"):
    setattr(os, name, counted(getattr(os, name)))
Contents(Database(sys.argv[1])).compress()
"""


def texts(agent: Agent, root: Path, count: int) -> list[bytes]:
    """Large texts that a tool has replaced, and that undo will be asked for."""
    known = []
    for number in range(count):
        known.append(b"%d\n" % number + LINES)
        (root / f"f{number}").write_bytes(known[-1])
        agent.write(f"f{number}", b"new", f"turn{number}")
    return known


def given_back(store: Checkpoints, known: list[bytes]) -> bool:
    """Whether the store gives every one of them back."""
    return all(store.content(State("file", digest_of(one))) == one for one in known)


def test_what_was_kept_in_a_hurry_is_small_when_the_store_is_closed(
    agent: Agent, root: Path
) -> None:
    known = texts(agent, root, 3)
    at_first = agent.store.usage().bytes
    agent.store.close()

    assert at_first > 3 * len(LINES)
    assert agent.store.usage().bytes < len(LINES)
    assert given_back(agent.store, known)


def test_only_so_much_lies_there_uncompressed(
    agent: Agent, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes.stores.checkpoints.checkpoint_store.MOST_FRESH", 3 * len(LINES))
    sizes = []
    for number in range(12):
        (root / "a").write_bytes(b"%d\n" % number + LINES)
        agent.write("a", b"new")
        sizes.append(agent.store.usage().bytes)

    assert max(sizes) < 6 * len(LINES)


def test_a_kill_at_any_step_of_compressing_loses_nothing(
    agent: Agent, root: Path, home: Path
) -> None:
    known = texts(agent, root, 2)
    folder = str(home / "checkpoints")
    steps = 0
    while True:
        steps += 1
        done = subprocess.run([sys.executable, "-c", STEPWISE, folder, str(steps)], check=False)
        assert given_back(agent.store, known)
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL
        # Compressed by now or not: the next is fresh again.
        (root / "more").write_bytes(b"%d more\n" % steps + LINES)
        agent.write("more", b"new", f"more{steps}")
    assert steps > 4

    agent.store.prune()
    assert agent.store.usage().bytes < 2 * len(LINES)
    assert given_back(agent.store, known)
    # What was left by the killed ones is gone.
    assert len(list((home / "checkpoints" / "packs").iterdir())) <= 2


def test_others_read_and_write_while_it_is_compressed(agent: Agent, root: Path) -> None:
    known = texts(agent, root, 2)
    done = threading.Event()

    def read() -> int:
        rounds = 0
        with Checkpoints() as store:
            while not done.is_set():
                assert given_back(store, known)
                rounds += 1
        return rounds

    with ThreadPoolExecutor() as pool:
        readers = [pool.submit(read) for _ in range(2)]
        try:
            for number in range(8):
                (root / "b").write_bytes(b"%d b\n" % number + LINES)
                agent.write("b", b"new", "two")
                known.append(b"%d b\n" % number + LINES)
                agent.store.close()
        finally:
            done.set()

    assert all(reader.result() for reader in readers)
    assert given_back(agent.store, known)


def test_nothing_is_dropped_for_room_that_compressing_gives(home: Path, root: Path) -> None:
    clock = FakeClock(1e9)
    with Checkpoints(clock=clock) as store:
        known = texts(Agent(store, root), root, 4)
        clock.advance(5 * DAY)
        report = store.prune(max_bytes=2 * len(LINES))

        assert report.turns == []
        assert report.freed > 2 * len(LINES)
        assert given_back(store, known)


def test_the_same_text_is_written_once_before_it_is_compressed(
    agent: Agent, root: Path, home: Path
) -> None:
    for number in range(5):
        (root / "a").write_bytes(LINES)
        agent.write("a", b"new %d" % number)

    (pack,) = (home / "checkpoints" / "packs").iterdir()
    assert pack.stat().st_size == len(LINES)
