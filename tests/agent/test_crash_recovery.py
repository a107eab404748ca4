"""An agent that is killed again and again: no word is lost, and nothing is done twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
from collections import Counter
from typing import Any

from tests.conftest import HERMES, CommandLine

from hermes.stores.sessions import Sessions
from hermes.testing import Call, ScriptedModel, Turn

KILLS = 50
# What a step takes when nothing hinders it; the kill comes at some moment of it.
STEP_SECONDS = 0.06


class Worker:
    """A model that wants one more line in a file at every step, whatever became of the last."""

    def __init__(self) -> None:
        self.finish = False
        self.asked = threading.Semaphore(0)
        self.conversations: list[list[dict[str, Any]]] = []

    def __call__(self, request: dict[str, Any]) -> Turn | str:
        said = request["messages"][1:]
        self.conversations.append(said)
        self.asked.release()
        if self.finish:
            return "All done."
        number = sum(message["role"] == "tool" for message in said)
        return Turn(calls=[Call("terminal", {"command": f"echo {number} >> lines"})])


def test_fifty_kills_lose_no_message_and_repeat_no_call(hermes: CommandLine) -> None:
    worker = Worker()
    chance = random.Random(11)
    with ScriptedModel(then=worker) as model:
        env = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "sk-x", "HERMES_MODEL": "gpt-4o"}
        for number in range(KILLS):
            again = ["--resume", "last"] if number else []
            process = subprocess.Popen(
                [str(HERMES), "run", *again, f"request {number}"],
                env=hermes.environment(**env),
                cwd=hermes.folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            try:
                for _ in range(chance.randint(1, 3)):
                    if not worker.asked.acquire(timeout=60):
                        assert process.stderr is not None
                        os.killpg(process.pid, signal.SIGKILL)
                        raise AssertionError(process.stderr.read().decode())
                threading.Event().wait(chance.random() * STEP_SECONDS)
            finally:
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
                assert process.stderr is not None
                process.stderr.close()
            while worker.asked.acquire(blocking=False):
                pass
        worker.finish = True
        done = hermes("run", "--resume", "last", "now finish", env=env)
    assert done.stdout == "All done.\n", done.stderr

    last = worker.conversations[-1]
    for said in worker.conversations:
        assert last[: len(said)] == said, "something that the model had read was lost"
    assert [m["content"] for m in last if m["role"] == "user"] == [
        *(f"request {number}" for number in range(KILLS)),
        "now finish",
    ]

    lines = Counter((hermes.folder / "lines").read_text().split())
    assert set(lines.values()) == {1}, "a call was carried out twice"
    with Sessions() as store:
        [listed] = store.list()
        session = store.open(listed.id)
        intents = session.intents()
        ended = {line.value.call_seq for line in session.journal() if line.kind == "outcome"}
    known = [intent for intent in intents if intent.seq in ended]
    assert len(known) >= KILLS // 2
    for intent in known:
        number = intent.arguments["command"].split()[1]
        assert lines[number] == 1, f"{number} is said to be done, and is not"
    unknown = [m for m in last if m["role"] == "tool" and "not known" in m["content"]]
    assert len(unknown) == len(intents) - len(known)
