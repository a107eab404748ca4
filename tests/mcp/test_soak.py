"""Hours of use in a minute: calls, changes, cancellations and lost connections, and nothing grows."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from tests.mcp.client.conftest import Desk, eventually, marked_processes, tool

from hermes.core import ToolCall
from hermes.core.context import Cancellation

SECONDS = 60.0 if os.environ.get("CI") == "true" else 4.0
WORKERS = 4
# What the allocator keeps for itself; a leak of one result for each call would be far more.
ROOM = 24 * 1024 * 1024
TOOLS = ("echo", "sleep", "changed", "pid", "huge")


@pytest.fixture
def desk(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.setattr("hermes.mcp.client.connection.PAUSE_SECONDS", 0.02)
    made = Desk(home, tmp_path)
    yield made
    made.close()
    assert not marked_processes(os.getpid())


class Soak:
    """Uses one server in every way, from several threads."""

    def __init__(self, desk: Desk, script: Path) -> None:
        self.desk = desk
        self.script = script
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._lock = threading.Lock()
        self.list(0)

    def list(self, extra: int) -> None:
        """Have the server list something else from now on."""
        tools = [tool(name) for name in (*TOOLS, *(f"extra{n}" for n in range(extra)))]
        draft = self.script.with_suffix(".new")
        with self._lock:
            draft.write_text(json.dumps({"tools": tools}))
            draft.replace(self.script)

    def work(self, seed: int, seconds: float) -> None:
        chance = random.Random(seed)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            kind = chance.choices(
                ("call", "large", "cancel", "change", "reconnect", "kill"), (80, 4, 8, 4, 2, 2)
            )[0]
            getattr(self, f"_{kind}")(chance)
            with self._lock:
                self.counts[kind] += 1

    def _call(self, chance: random.Random) -> None:
        number = chance.randrange(1_000_000)
        outcome = self.desk.outcome("mcp-box:echo", number=number)
        # Lost on the way is said; the answer to another call is never taken for this one's.
        if outcome.ok and json.loads(outcome.value)["arguments"] != {"number": number}:
            self.wrong.append(outcome.content)

    def _large(self, chance: random.Random) -> None:
        self.desk.outcome("mcp-box:huge", size=chance.randrange(10_000, 40_000))

    def _cancel(self, chance: random.Random) -> None:
        assert self.desk.app is not None
        runtime = self.desk.app.runtime
        cancellation = Cancellation()
        context = runtime.context()
        context.cancellation = cancellation
        timer = threading.Timer(chance.random() / 20, cancellation.cancel, ["enough"])
        timer.start()
        outcome = runtime.call_sync(ToolCall("mcp-box:sleep", {"seconds": 5}), context)
        timer.join()
        if outcome.ok:
            self.wrong.append("a cancelled call went on to its end")

    def _change(self, chance: random.Random) -> None:
        self.list(chance.randrange(5))
        self.desk.outcome("mcp-box:changed")

    def _reconnect(self, chance: random.Random) -> None:
        assert self.desk.servers is not None
        self.desk.servers.reconnect("box")

    def _kill(self, chance: random.Random) -> None:
        assert self.desk.servers is not None
        link = self.desk.servers.states["box"].connection
        pid = link.pid if link is not None else 0
        if pid:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                return


def run(soak: Soak, seconds: float) -> None:
    with ThreadPoolExecutor(WORKERS) as pool:
        for ended in [pool.submit(soak.work, seed, seconds) for seed in range(WORKERS)]:
            ended.result()
    soak.list(0)
    eventually(lambda: soak.desk.outcome("mcp-box:echo").ok, 30)


def held(desk: Desk) -> tuple[int, int, int]:
    """Processes of servers, threads and open files."""
    files = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    return len(marked_processes(os.getpid())), threading.active_count(), files


def test_use_without_end_leaves_no_more_behind_than_a_little_use(
    desk: Desk, tmp_path: Path
) -> None:
    script = tmp_path / "script.json"
    soak = Soak(desk, script)
    peer = {"command": sys.executable, "args": [desk.peer()["args"][0], str(script)]}
    desk.open(box=peer)
    run(soak, max(2.0, SECONDS / 10))
    eventually(lambda: held(desk)[0] == 1, 20)
    processes, threads, files = held(desk)
    memory = psutil.Process().memory_info().rss

    run(soak, SECONDS)

    assert not soak.wrong, soak.wrong[:3]
    assert soak.counts["call"] > 20
    assert all(soak.counts[kind] for kind in ("call", "cancel", "change"))
    eventually(lambda: held(desk)[0] == processes == 1, 20)
    eventually(lambda: held(desk)[1] <= threads + 2, 20)
    eventually(lambda: held(desk)[2] <= files + 4, 20)
    assert psutil.Process().memory_info().rss - memory < ROOM
