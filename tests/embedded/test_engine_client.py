"""The child process, real, with a small engine of ours in place of the large one."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from hermes.core.model_protocol import ModelError
from hermes.embedded.download import EngineFiles
from hermes.embedded.engine_client import Completion, EngineClient

ENGINE = '''
import os, time
class Plain:
    def __setattr__(self, name, value): self.__dict__[name] = value
class CommonParams(Plain):
    def __init__(self):
        self.model, self.cpuparams, self.cpuparams_batch = Plain(), Plain(), Plain()
class Server:
    """Says the prompt word by word; some words mean something."""
    def __init__(self, params):
        if params.model.path == "broken":
            raise RuntimeError("these are no weights")
        if params.model.path == "huge":
            time.sleep(600)
        print("noise on stdout", flush=True)
        self.threads = params.cpuparams.n_threads
    def handle_completions(self, ask, heard):
        words = ask["prompt"].split()
        for word in words:
            if word == "die": os._exit(7)
            if word == "refuse":
                heard({"error": {"message": "no such grammar"}})
                return
            if word == "slow": time.sleep(0.05)
            if word == "stuck": time.sleep(600)
            text = str(self.threads) if word == "threads?" else word
            if heard({"choices": [{"text": text + " ", "finish_reason": None}]}):
                return
        heard({"choices": [{"text": "", "finish_reason": "stop"}],
               "timings": {"prompt_n": 2, "cache_n": 5, "predicted_n": len(words)}})
'''


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    package = tmp_path / "engine" / "xllamacpp"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(ENGINE)
    return package.parent


@pytest.fixture
def server(engine: Path) -> Iterator[EngineClient]:
    made = EngineClient(EngineFiles("weights", str(engine)), threads=3)
    yield made
    made.close()


async def said(server: EngineClient, prompt: str) -> tuple[list[str], Completion]:
    pieces: list[str] = []
    async for piece in server.ask({"prompt": prompt}):
        if isinstance(piece, Completion):
            return pieces, piece
        pieces.append(piece)
    raise AssertionError("no answer")


async def test_an_answer_comes_piece_by_piece_and_then_as_a_whole(server: EngineClient) -> None:
    pieces, answer = await said(server, "one two threads?")

    assert pieces == ["one ", "two ", "3 "]
    assert answer == Completion("one two 3 ", "stop", read=2, cached=5, written=3)


async def test_the_process_stays_for_the_next_question(server: EngineClient) -> None:
    await said(server, "a")
    first = server.pid
    await said(server, "b")

    assert first
    assert server.pid == first


def test_each_question_may_come_from_a_loop_of_its_own(server: EngineClient) -> None:
    asyncio.run(said(server, "a"))

    assert asyncio.run(said(server, "b"))[1].text == "b "


async def test_questions_at_the_same_time_are_answered_one_after_the_other(
    server: EngineClient,
) -> None:
    answers = await asyncio.gather(*(said(server, f"slow {n}") for n in range(4)))

    assert [answer.text for _, answer in answers] == [f"slow {n} " for n in range(4)]


async def test_a_cancelled_answer_stops_and_the_next_one_is_not_mixed_up(
    server: EngineClient,
) -> None:
    asking = asyncio.ensure_future(said(server, "slow " * 400))
    await asyncio.sleep(0.5)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking

    assert (await said(server, "next"))[1].text == "next "


async def test_a_process_that_does_not_listen_is_ended_and_started_again(
    server: EngineClient,
) -> None:
    await said(server, "a")
    first = server.pid
    asking = asyncio.ensure_future(said(server, "stuck"))
    await asyncio.sleep(0.2)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await asyncio.to_thread(psutil.wait_procs, [psutil.Process(first)], 20)

    assert (await said(server, "again"))[1].text == "again "


async def test_what_the_engine_refuses_is_an_error_and_nothing_ends(server: EngineClient) -> None:
    with pytest.raises(ModelError, match="no such grammar"):
        await said(server, "refuse")

    assert (await said(server, "fine"))[1].text == "fine "


async def test_a_process_that_dies_is_told_of_and_replaced(server: EngineClient) -> None:
    with pytest.raises(ModelError, match="its process ended"):
        await said(server, "one die two")

    assert (await said(server, "fine"))[1].text == "fine "


async def test_weights_that_do_not_load_are_told_in_one_line(engine: Path) -> None:
    server = EngineClient(EngineFiles("broken", str(engine)))

    with pytest.raises(ModelError, match="these are no weights") as trouble:
        await said(server, "a")

    assert "\n" not in str(trouble.value)
    assert trouble.value.hint


async def test_loading_can_be_cancelled(engine: Path) -> None:
    server = EngineClient(EngineFiles("huge", str(engine)))
    asking = asyncio.ensure_future(said(server, "a"))
    await asyncio.sleep(0.5)
    pid = server.pid
    asking.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asking

    assert pid
    assert server.pid == 0
    assert not psutil.pid_exists(pid)


async def test_an_engine_that_is_missing_is_told_of(tmp_path: Path) -> None:
    server = EngineClient(EngineFiles("weights", str(tmp_path)))

    with pytest.raises(ModelError, match="did not start"):
        await said(server, "a")


async def test_closing_ends_the_process(server: EngineClient) -> None:
    await said(server, "a")
    pid = server.pid
    server.close()

    assert not psutil.pid_exists(pid)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("busy", ["", "stuck"])
def test_the_process_does_not_outlive_us(how: int, busy: str, engine: Path, tmp_path: Path) -> None:
    script = tmp_path / "holder.py"
    script.write_text(
        "import asyncio\n"
        "from hermes.embedded.engine_client import EngineClient\n"
        "from hermes.embedded.download import EngineFiles\n"
        f"server = EngineClient(EngineFiles('weights', {str(engine)!r}))\n"
        "async def main():\n"
        "    async for _ in server.ask({'prompt': 'a'}): pass\n"
        "    print(server.pid, flush=True)\n"
        f"    async for _ in server.ask({{'prompt': {busy!r}}}): pass\n"
        "    await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    holder = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    child = psutil.Process(int(holder.stdout.readline()))

    os.kill(holder.pid, how)
    holder.communicate()

    assert _gone(child)


def _gone(process: psutil.Process) -> bool:
    end = time.monotonic() + 20
    while time.monotonic() < end:
        if not process.is_running() or process.status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.05)
    return False
