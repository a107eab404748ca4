"""Processes are killed at any instant, and nothing that was kept is lost."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from pathlib import Path

from hermes.core.model_protocol import Message
from hermes.stores.sessions import Sessions

# Says what was kept only once it was: whatever was said must be found afterwards.
WRITER = """
import sys
from hermes.core.model_protocol import Message, ToolUse, Usage
from hermes.stores.sessions import Sessions

path, name, delete = sys.argv[1:4]
store = Sessions(path)
session = store.begin(workspace="/w", model="m", front_door=name)
print("session", session.id, flush=True)
for number in range(1_000_000):
    text = f"{name} wrote {number} " + "word " * (number % 50)
    kept = session.append(Message("user", text), usage=Usage(1, 1), turn=str(number))
    print("kept", kept, number, flush=True)
    call = session.intend(str(number), f"c{number}", "sleep", {"n": number}, "write")
    print("begun", call, number, flush=True)
    done = session.outcome(call, "ok", text * 3, 0.1)
    print("done", call, number, flush=True)
    session.append(Message("tool", text * 3, call_id=f"c{number}"))
    if delete == "yes" and number % 20 == 19:
        extra = store.begin(workspace="/w", model="m", front_door="gone")
        extra.append(Message("user", "gone soon " * 20))
        store.delete(extra.id)
"""


class Writer:
    """A process that writes until it is killed; what it said is read as it comes."""

    def __init__(self, path: str, name: str, *, delete: bool = False) -> None:
        self.name = name
        self.said: list[list[str]] = []
        self._process = subprocess.Popen(
            [sys.executable, "-c", WRITER, path, name, "yes" if delete else "no"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            # A line that was cut off was not said.
            if line.endswith("\n"):
                self.said.append(line.split())

    def wait_for_start(self) -> None:
        """Until it has begun its session: on a busy machine a process starts slowly."""
        until = time.monotonic() + 60
        while not self.said and self._process.poll() is None and time.monotonic() < until:
            time.sleep(0.01)

    def kill(self) -> None:
        """End it as a crash would."""
        self._process.kill()
        self._reader.join()
        assert self._process.stderr is not None
        trouble = self._process.stderr.read()
        self._process.stderr.close()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process.wait()
        assert not trouble

    def check(self, store: Sessions) -> None:
        """Everything that it said is there."""
        if not self.said:
            return
        session = store.open(self.said[0][1])
        journal = {entry.seq: entry for entry in session.journal()}
        open_calls = {intent.seq for intent in session.unfinished()}
        done = {int(words[1]) for words in self.said[1:] if words[0] == "done"}
        for kind, seq, number in self.said[1:]:
            entry = journal[int(seq)]
            if kind == "kept":
                assert entry.value.text.startswith(f"{self.name} wrote {number} ")
                assert entry.usage is not None
            else:
                assert entry.value.arguments == {"n": int(number)}
        assert not open_calls & done
        assert len(open_calls) <= 1
        assert len(session.messages()) == sum(
            isinstance(entry.value, Message) for entry in journal.values()
        )


def test_a_process_killed_at_random_points_loses_nothing_that_it_kept(tmp_path: Path) -> None:
    path = str(tmp_path / "state.db")
    chance = random.Random(5)
    writers = []
    for number in range(8):
        writer = Writer(path, f"writer{number}", delete=number % 2 == 0)
        if number % 4:
            writer.wait_for_start()
            time.sleep(0.1)
        time.sleep(chance.random() * 0.4)
        writer.kill()
        writers.append(writer)

    with Sessions(path) as store:
        health = store.doctor(repair=False)
        assert not [line for line in health.problems if "index" not in line]
        for writer in writers:
            writer.check(store)
    assert sum(len(writer.said) for writer in writers) > 50


def test_six_processes_with_random_kills_leave_a_sound_store(tmp_path: Path) -> None:
    path = str(tmp_path / "state.db")
    chance = random.Random(7)
    running = [Writer(path, f"p{number}", delete=number == 0) for number in range(6)]
    ended: list[Writer] = []
    backups: list[Path] = []
    with Sessions(path) as store:
        until = time.monotonic() + 4
        while time.monotonic() < until:
            time.sleep(chance.random() * 0.5)
            victim = running.pop(chance.randrange(6))
            victim.kill()
            ended.append(victim)
            running.append(Writer(path, f"p{6 + len(ended)}"))
            store.doctor()
            store.search("wrote")
            backups.append(tmp_path / f"backup{len(backups)}.db")
            store.backup(backups[-1])
            store.prune()
        for writer in running:
            writer.kill()

        health = store.doctor()

        assert health.ok, health
        for writer in (*ended, *running):
            writer.check(store)
        for writer in running:
            if len(writer.said) > 1:
                found = store.search(f'"{writer.name} wrote"', limit=100_000)
                written = {int(words[1]) for words in writer.said if words[0] == "kept"}
                assert written <= {hit.seq for hit in found.hits}
    for backup in backups:
        with Sessions(backup) as copy:
            assert copy.doctor(repair=False).ok
