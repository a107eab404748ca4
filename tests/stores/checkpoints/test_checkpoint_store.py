"""The store itself: private, shared by processes, within its limits, honest about what it drops."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.stores.checkpoints.conftest import Agent, picture

from hermes.environments.disk.local_disk import LocalDisk
from hermes.stores.checkpoints import (
    ABSENT,
    Author,
    CheckpointError,
    Checkpoints,
    Planned,
    digest_of,
)
from hermes.stores.checkpoints.path_locks import BusyError
from hermes.testing import FakeClock

DAY = 86_400


def test_only_its_owner_can_look_into_the_store(agent: Agent, root: Path, home: Path) -> None:
    old = os.umask(0)
    try:
        (root / "large").write_bytes(os.urandom(300_000))
        agent.write("a", b"one")
        agent.run("rm large")
        with agent.store.lock(str(root / "a")):
            agent.store.undo(turn="one", dry_run=True)
    finally:
        os.umask(old)

    found = [home / "checkpoints", *(home / "checkpoints").rglob("*")]
    assert len(found) > 5
    assert [path for path in found if stat.S_IMODE(path.stat().st_mode) & 0o077] == []


def test_the_same_bytes_are_kept_once(agent: Agent, root: Path) -> None:
    data = os.urandom(500_000)
    for number in range(5):
        (root / f"f{number}").write_bytes(data)

    agent.run("rm f*")

    assert agent.store.usage().bytes < 2 * len(data)


def test_text_is_kept_compressed(agent: Agent, root: Path) -> None:
    (root / "a").write_bytes(b"the same line again\n" * 100_000)

    agent.remove("a")
    agent.store.undo(turn="one")

    assert (root / "a").stat().st_size == 2_000_000
    assert agent.store.usage().bytes < 500_000


def test_a_file_past_the_limit_is_refused_not_left_unprotected(home: Path, root: Path) -> None:
    (root / "a").write_bytes(b"x" * 100)
    with Checkpoints(max_file_bytes=99) as store:
        with pytest.raises(CheckpointError, match="100 bytes"):
            Agent(store, root).remove("a")

    assert (root / "a").exists()


def test_whoever_made_a_state_is_known(agent: Agent, root: Path) -> None:
    agent.write("a", b"one", "t1")
    agent.write("a", b"two", "t2")
    agent.remove("a", "t3")
    place = str(root / "a")

    one = agent.store.last_writer(place, digest=digest_of(b"one"))
    gone = agent.store.last_writer(place, digest="")

    assert one is not None
    assert one.turn == "t1"
    assert gone is not None
    assert gone.turn == "t3"
    assert agent.store.last_writer(place, digest=digest_of(b"three")) is None


def test_a_lock_keeps_others_off_and_names_its_holder(store: Checkpoints, root: Path) -> None:
    place = str(root / "a")
    with store.lock(place, author=Author("s", "t", "c7", "patch")):
        with pytest.raises(BusyError, match="c7"), store.lock(place, seconds=0):
            pass
        with store.lock(str(root / "b"), seconds=0):
            pass
    with store.lock(place, seconds=0):
        pass


def test_the_lock_of_a_killed_process_is_free(store: Checkpoints, root: Path) -> None:
    script = """
import os, signal, sys
from hermes.stores.checkpoints import Checkpoints
with Checkpoints().lock(sys.argv[1]):
    os.kill(os.getpid(), signal.SIGKILL)
"""
    place = str(root / "a")
    subprocess.run([sys.executable, "-c", script, place], check=False)

    with store.lock(place, seconds=0):
        pass


def test_threads_that_count_under_a_lock_lose_nothing(store: Checkpoints, root: Path) -> None:
    file = root / "count"
    file.write_text("0")

    def count() -> None:
        for _ in range(25):
            with store.lock(str(file)):
                file.write_text(str(int(file.read_text()) + 1))

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert file.read_text() == "100"


def test_several_processes_record_at_once(store: Checkpoints, root: Path) -> None:
    script = """
import sys
from hermes.environments.disk.local_disk import LocalDisk
from hermes.stores.checkpoints import Author, Checkpoints, Planned, file_state
root, me = sys.argv[1:]
with Checkpoints() as store:
    for number in range(25):
        place = f"{root}/{me}-{number}"
        author = Author(me, "t", str(number), "write_file")
        store.before(author, LocalDisk(), [Planned(place, file_state(b"x"))])
        LocalDisk().write(place, b"x")
"""
    before = picture(root)
    processes = [
        subprocess.Popen([sys.executable, "-W", "error", "-c", script, str(root), f"p{n}"])
        for n in range(3)
    ]
    assert [process.wait() for process in processes] == [0, 0, 0]

    assert store.usage().changes == 75
    for number in range(3):
        assert store.undo(turn=f"p{number}/t").complete
    assert picture(root) == before


def test_a_forked_child_has_a_connection_of_its_own(agent: Agent, root: Path) -> None:
    agent.write("a", b"one")

    child = os.fork()
    if child == 0:
        code = 1
        try:
            agent.write("b", b"two", "two")
            code = 0
        finally:
            os._exit(code)

    assert os.waitpid(child, 0)[1] == 0
    assert {turn.name for turn in agent.store.turns()} == {"one", "two"}


def aged(home: Path, root: Path, clock: FakeClock, told: list[str], **limits: float) -> Checkpoints:
    """A store with three turns, ten days apart."""
    store = Checkpoints(clock=clock, notice=told.append, **limits)  # type: ignore[arg-type]
    agent = Agent(store, root)
    for number in range(3):
        (root / f"f{number}").write_bytes(os.urandom(400_000))
        agent.remove(f"f{number}", f"turn{number}")
        clock.advance(10 * DAY)
    return store


def test_what_is_past_its_time_is_dropped_and_said(home: Path, root: Path) -> None:
    told: list[str] = []
    with aged(home, root, FakeClock(1e9), told) as store:
        report = store.prune(keep_days=15)

        assert [turn.name for turn in report.turns] == ["turn0", "turn1"]
        assert [turn.name for turn in store.turns()] == ["turn2"]
        assert report.freed > 700_000
        assert store.undo(turn="turn2").complete


def test_the_oldest_goes_first_when_there_is_too_much(home: Path, root: Path) -> None:
    with aged(home, root, FakeClock(1e9), []) as store:
        planned = store.prune(max_bytes=1_000_000, dry_run=True)
        report = store.prune(max_bytes=1_000_000)

        assert [turn.name for turn in report.turns] == ["turn0"]
        assert planned.turns == report.turns
        assert store.usage().bytes <= 1_000_000


def test_the_newest_turn_and_the_last_day_stay_whatever_the_limit(home: Path, root: Path) -> None:
    clock = FakeClock(1e9)
    with aged(home, root, clock, []) as store:
        alone = store.prune(max_bytes=0, keep_days=0)
        agent = Agent(store, root)
        for number in range(3):
            clock.advance(3600)
            agent.write(f"young{number}", b"x", f"young{number}")
        young = store.prune(max_bytes=0, keep_days=0)

        assert [turn.name for turn in alone.turns] == ["turn0", "turn1"]
        assert "over its limit" in alone.notes[0]
        assert [turn.name for turn in young.turns] == ["turn2"]
        assert len(store.turns()) == 3


def test_what_is_wanted_survives_when_its_pack_is_mostly_dead(home: Path, root: Path) -> None:
    clock = FakeClock(1e9)
    with Checkpoints(clock=clock) as store:
        agent = Agent(store, root)
        for number in range(10):
            (root / f"f{number}").write_bytes(os.urandom(300_000))
        kept = (root / "f7").read_bytes()
        # One pack for all of them, and one of them wanted for longer.
        agent.run("rm f0 f1 f2 f3 f4 f5 f6 f8 f9", "old")
        clock.advance(40 * DAY)
        agent.remove("f7", "young")

        report = store.prune()

        assert [turn.name for turn in report.turns] == ["old"]
        assert store.usage().bytes < 1_000_000
        assert len(list((home / "checkpoints" / "packs").iterdir())) == 1
        assert store.undo(turn="young").complete
    assert (root / "f7").read_bytes() == kept


def test_dropping_by_itself_is_told(home: Path, root: Path) -> None:
    told: list[str] = []
    clock = FakeClock(1e9)
    aged(home, root, clock, []).close()
    clock.advance(25 * DAY)

    with Checkpoints(clock=clock, notice=told.append) as store:
        Agent(store, root).write("a", b"x", "new")

        assert [turn.name for turn in store.turns()] == ["new"]
    assert "3 checkpoints" in told[0]


def test_nothing_that_is_being_kept_is_dropped(home: Path, root: Path) -> None:
    (root / "a").write_bytes(os.urandom(300_000))
    clock = FakeClock(1e9)
    with Checkpoints(clock=clock) as store:
        agent = Agent(store, root)
        before = store.snapshot(str(root), agent.author("one", "terminal"))
        clock.advance(100 * DAY)
        store.prune(max_bytes=0, keep_days=0)
        (root / "a").unlink()
        store.after_command(before)

        assert store.undo(turn="one").complete


def test_texts_that_a_model_made_up_do_no_harm(store: Checkpoints, root: Path) -> None:
    odd = "\ud800'; DROP TABLE changes; --\0"
    author = Author(odd, odd, odd, odd, odd, odd)

    store.before(author, LocalDisk(), [Planned(str(root / "a"), ABSENT)])
    snapshot = store.snapshot(str(root), author)
    (root / "b").write_text("x")
    store.after_command(snapshot)

    assert len(store.turns()) == 1
    assert store.undo(below=str(root)).complete


def test_nothing_heavy_is_loaded_before_it_is_used() -> None:
    script = (
        "import sys, hermes.stores.checkpoints; from hermes.stores.checkpoints import Checkpoints;"
        "Checkpoints(); print('sqlite3' in sys.modules, 'msgspec' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)

    assert done.stdout.split() == ["False", "False"]


def test_a_disk_that_takes_no_more_is_a_clear_error(agent: Agent, root: Path) -> None:
    agent.write("b", b"x", "one")
    (root / "big").write_bytes(os.urandom(2_000_000))
    script = """
import resource, signal, sys
from hermes.environments.disk.local_disk import LocalDisk
from hermes.stores.checkpoints import ABSENT, Author, Checkpoints, CheckpointError, Planned
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
try:
    Checkpoints().before(Author(), LocalDisk(), [Planned(sys.argv[1], ABSENT)])
except CheckpointError as error:
    print(error)
"""

    done = subprocess.run(
        [sys.executable, "-c", script, str(root / "big")], capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr
    assert "no room for a checkpoint" in done.stdout
    assert agent.store.usage().turns == 1
