"""`hermes run`, as a person or a script uses it: the real program against a scripted model."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.conftest import HERMES, CommandLine

from hermes.stores.sessions import Sessions
from hermes.stores.sessions.session_db import locked_session
from hermes.testing import Call, ScriptedModel, Turn


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        yield model


@pytest.fixture
def run(hermes: CommandLine, model: ScriptedModel) -> Any:
    def run(*words: str, **more: Any) -> subprocess.CompletedProcess[str]:
        env = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "sk-x", "HERMES_MODEL": "gpt-4o"}
        return hermes(*words, env=env, **more)

    return run


def test_a_text_with_a_space_is_a_request(model: ScriptedModel, run: Any) -> None:
    model.add("hello to you")

    done = run("say hello")

    assert (done.returncode, done.stdout) == (0, "hello to you\n")


def test_the_request_may_come_from_stdin(model: ScriptedModel, run: Any) -> None:
    model.add("read it")

    done = run("run", stdin="from a pipe\n")

    assert done.stdout == "read it\n"
    assert model.requests[0]["messages"][-1]["content"] == "from a pipe\n"


def test_one_unknown_word_is_a_mistyped_command(run: Any) -> None:
    done = run("tolls")

    assert done.returncode == 2
    assert "tools" in done.stderr
    assert "hermes run tolls" in done.stderr


def test_what_was_refused_shows_in_the_exit_code(
    model: ScriptedModel, run: Any, hermes: CommandLine
) -> None:
    (hermes.folder / "build").mkdir()
    model.add(Turn(calls=[Call("terminal", {"command": "rm -rf build"})]), "I may not.")

    done = run("run", "--json", "clean up")

    answer = json.loads(done.stdout)
    assert done.returncode == 3
    assert (answer["text"], answer["ended"]) == ("I may not.", "answered")
    assert "nobody can be asked" in answer["refused"][0]
    assert (hermes.folder / "build").is_dir()


def test_a_rule_can_be_approved_beforehand(
    model: ScriptedModel, run: Any, hermes: CommandLine
) -> None:
    (hermes.folder / "build").mkdir()
    model.add(Turn(calls=[Call("terminal", {"command": "rm -rf build"})]), "Gone.")

    done = run("run", "--yes-to", "delete.recursive", "clean up")

    assert done.returncode == 0, done.stderr
    assert not (hermes.folder / "build").exists()


def test_the_budget_shows_in_the_exit_code(model: ScriptedModel, run: Any) -> None:
    model.add(*(Turn(calls=[Call("terminal", {"command": f"echo {n}"})]) for n in range(5)))

    assert run("run", "--max-steps", "2", "go on").returncode == 4


def test_events_come_as_json_lines(model: ScriptedModel, run: Any) -> None:
    model.add(Turn(calls=[Call("system_info", {})]), "done")

    done = run("run", "--stream-json", "look around")

    kinds = [json.loads(line)["type"] for line in done.stdout.splitlines()]
    assert kinds[0] == "call"
    assert kinds[-1] == "result"
    assert {"outcome", "TextDelta"} <= set(kinds)


def test_a_session_goes_on(model: ScriptedModel, run: Any) -> None:
    model.add("first answer", "second answer")
    run("first question")

    run("run", "--resume", "last", "second question")

    said = [message["content"] for message in model.requests[1]["messages"][1:]]
    assert said == ["first question", "first answer", "second question"]


def test_a_run_that_could_not_begin_leaves_no_session_that_would_be_the_last(
    model: ScriptedModel, run: Any
) -> None:
    model.add("first answer", "second answer")
    run("first question")

    assert run("run", "--toolsets", "fiel", "second question").returncode == 1
    done = run("run", "--resume", "last", "second question")

    assert done.stdout == "second answer\n"
    with Sessions() as sessions:
        assert [info.messages for info in sessions.list()] == [4]


def test_a_run_that_goes_on_with_a_session_that_is_open_elsewhere_has_a_copy(
    model: ScriptedModel, run: Any
) -> None:
    model.add("first answer", "second answer")
    run("first question")
    with Sessions() as sessions, ExitStack() as elsewhere:
        session, _ = locked_session(sessions.open("last"), elsewhere)

        done = run("run", "--json", "--resume", "last", "second question")

        answer = json.loads(done.stdout)
        assert (done.returncode, answer["text"]) == (0, "second answer")
        assert answer["session"] != session.id
        assert f"session {session.id} is open in another process ({os.getpid()})" in done.stderr
        assert len(session.messages()) == 2
        assert len(sessions.open(answer["session"]).messages()) == 4


def test_a_model_that_is_not_there_is_one_line(run: Any, hermes: CommandLine) -> None:
    env = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_API_KEY": "sk-x"}

    done = hermes("run", "hello", env=env)

    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "127.0.0.1:9" in done.stderr


def test_the_first_interrupt_stops_the_call_and_the_model_is_told(
    model: ScriptedModel, hermes: CommandLine
) -> None:
    model.add(
        Turn(calls=[Call("terminal", {"command": "echo begun > mark; sleep 600"})]), "stopped"
    )
    variables = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "sk-x", "HERMES_MODEL": "gpt-4o"}
    program = subprocess.Popen(
        [HERMES, "run", "wait"],
        cwd=hermes.folder,
        env=hermes.environment(**variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    _until((hermes.folder / "mark").exists)

    program.send_signal(signal.SIGINT)
    out, _ = program.communicate(timeout=30)

    assert out == "stopped\n"
    assert "cancelled" in model.requests[1]["messages"][-1]["content"]
    assert not _sleeping("sleep 600", hermes.folder)


def test_a_second_interrupt_ends_the_turn_and_leaves_nothing(
    model: ScriptedModel, hermes: CommandLine
) -> None:
    model.add(Turn("thinking", stall_after=1))
    variables = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "sk-x", "HERMES_MODEL": "gpt-4o"}
    program = subprocess.Popen(
        [HERMES, "run", "wait"],
        cwd=hermes.folder,
        env=hermes.environment(**variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    _until(lambda: bool(model.requests))
    time.sleep(0.3)

    program.send_signal(signal.SIGINT)
    _, err = program.communicate(timeout=30)

    assert program.returncode == 130
    assert "interrupted" in err


def test_told_to_end_it_says_how_far_it_got_and_leaves_nothing(
    model: ScriptedModel, hermes: CommandLine
) -> None:
    model.add(Turn(calls=[Call("terminal", {"command": "echo begun > mark; sleep 6952"})]))
    variables = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "sk-x", "HERMES_MODEL": "gpt-4o"}
    program = subprocess.Popen(
        [HERMES, "run", "--json", "wait"],
        cwd=hermes.folder,
        env=hermes.environment(**variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    _until((hermes.folder / "mark").exists)

    program.send_signal(signal.SIGTERM)
    out, _ = program.communicate(timeout=30)

    answer = json.loads(out)
    assert (program.returncode, answer["ended"]) == (130, "interrupted")
    assert "sleep 6952" in answer["reason"]
    assert not _sleeping("sleep 6952", hermes.folder)


def _until(holds: Any, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def _sleeping(command: str, folder: Path) -> list[int]:
    found = []
    for process in psutil.process_iter():
        try:
            if " ".join(process.cmdline()) == command and process.cwd() == str(folder):
                found.append(process.pid)
        except (psutil.Error, OSError):
            continue
    return [pid for pid in found if os.path.exists(f"/proc/{pid}")]


def test_agents_in_the_background_that_end_with_the_run_are_named(
    model: ScriptedModel, run: Any
) -> None:
    def answer(request: dict[str, Any]) -> Turn | str:
        said = request["messages"]
        if "linger" in said[1]["content"]:
            return Turn(calls=[Call("sleep", {"seconds": 30})])
        if said[-1]["role"] == "tool":
            return "started"
        return Turn(calls=[Call("delegate_task", {"goal": "linger", "background": True})])

    model.add(*[answer] * 6)

    done = run("run", "begin something")

    assert done.stdout == "started\n"
    assert "root/1 ends with this run" in done.stderr


@pytest.mark.parametrize("option", ["--json", "--stream-json"])
def test_programs_get_json_when_the_model_fails(
    model: ScriptedModel, run: Any, option: str
) -> None:
    model.add(Turn(status=401, error="that key is wrong"))

    done = run("run", option, "hello")

    answer = json.loads(done.stdout)
    assert done.returncode == 1
    assert (answer["type"], answer["ended"], answer["text"]) == ("result", "failed", "")
    assert "that key is wrong" in answer["reason"]
    assert "that key is wrong" in done.stderr


def test_programs_get_json_before_there_is_an_agent(run: Any) -> None:
    done = run("run", "--json", "--resume", "nothing-like-it", "hello")

    answer = json.loads(done.stdout)
    assert (done.returncode, answer["ended"], answer["session"]) == (1, "failed", None)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--json", "--max-stps", "3"), "did you mean --max-steps?"),
        (("--stream-json", "--max-usd", "much"), "'much' is no number above 0"),
        (("--max-steps", "--json"), "expected one argument"),
    ],
)
def test_programs_get_json_when_the_options_are_wrong(
    run: Any, words: tuple[str, ...], why: str
) -> None:
    done = run("run", "hello", *words)

    answer = json.loads(done.stdout)
    assert (done.returncode, answer["type"], answer["ended"]) == (2, "result", "failed")
    assert why in answer["reason"]
    assert why in done.stderr


def test_an_option_after_the_last_one_is_text_and_asks_for_nothing(run: Any) -> None:
    done = run("run", "--max-stps", "--", "--json")

    assert (done.returncode, done.stdout) == (2, "")


def test_programs_get_json_when_the_settings_are_broken(run: Any, home: Path) -> None:
    home.mkdir()
    (home / "config.yaml").write_text("{{{")

    done = run("run", "--json", "hello")

    answer = json.loads(done.stdout)
    assert (done.returncode, answer["ended"]) == (1, "failed")
    assert "config.yaml" in answer["reason"]


def test_programs_get_json_when_it_is_told_to_end_before_it_began(hermes: CommandLine) -> None:
    program = subprocess.Popen(
        [HERMES, "run", "--json"],
        cwd=hermes.folder,
        env=hermes.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    # Whoever hears the signal reads the request, which does not come.
    _until(lambda: _heeds(program.pid, signal.SIGTERM))

    program.send_signal(signal.SIGTERM)
    out, _ = program.communicate(timeout=30)

    answer = json.loads(out)
    assert (program.returncode, answer["ended"]) == (130, "interrupted")


def _heeds(pid: int, number: int) -> bool:
    with open(f"/proc/{pid}/status") as file:
        caught = next(line.split()[1] for line in file if line.startswith("SigCgt"))
    return bool(int(caught, 16) & 1 << (number - 1))


def test_programs_hear_that_what_came_so_far_is_void(model: ScriptedModel, run: Any) -> None:
    model.add(Turn("One line.\nAnd half of", piece=8, break_after=3), "The whole.")

    done = run("run", "--stream-json", "speak")

    events = [json.loads(line) for line in done.stdout.splitlines()]
    kinds = [event["type"] for event in events]
    after = events[kinds.index("Discarded") :]
    assert "".join(event["text"] for event in after if event["type"] == "TextDelta") == "The whole."
    assert events[-1]["text"] == "The whole."


def test_no_event_has_a_secret_in_it(model: ScriptedModel, run: Any) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    model.add(Turn(f"It is {token}, keep it.", reasoning=f"so {token} then", piece=5))

    done = run("run", "--stream-json", "speak")

    events = [json.loads(line) for line in done.stdout.splitlines()]
    said = "".join(event["text"] for event in events if event["type"] == "TextDelta")
    assert (said[:6], said[-8:]) == ("It is ", "keep it.")
    assert token not in done.stdout


def test_a_run_that_nobody_reads_is_ended_and_says_so(
    model: ScriptedModel, hermes: CommandLine
) -> None:
    model.add(Turn("Lines.\n" * 50, delay=0.05, piece=7), "never")
    env = hermes.environment(
        OPENAI_BASE_URL=model.url, OPENAI_API_KEY="sk-x", HERMES_MODEL="gpt-4o"
    )

    done = subprocess.run(
        ["bash", "-c", f'{HERMES} run --stream-json "speak" | head -n 1; echo ${{PIPESTATUS[0]}}'],
        env=env, cwd=hermes.folder, capture_output=True, text=True, timeout=60, check=True,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip

    first, code = done.stdout.splitlines()
    assert json.loads(first)["type"] == "TextDelta"
    assert code == "130"
    assert done.stderr.startswith("hermes: stdout was closed")


def test_remarks_that_nobody_reads_end_nothing(model: ScriptedModel, hermes: CommandLine) -> None:
    model.add(Turn(calls=[Call("terminal", {"command": "touch done"})]), "Done.")
    env = hermes.environment(
        OPENAI_BASE_URL=model.url, OPENAI_API_KEY="sk-x", HERMES_MODEL="gpt-4o"
    )
    reader, writer = os.pipe()
    os.close(reader)

    done = subprocess.run(
        [str(HERMES), "run", "go"],
        env=env, cwd=hermes.folder, stdout=subprocess.PIPE, stderr=writer, timeout=60, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(writer)

    assert (done.returncode, done.stdout) == (0, b"Done.\n")
    assert (hermes.folder / "done").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("--max-steps", "0"),
        ("--max-steps", "-3"),
        ("--max-tokens", "many"),
        ("--max-usd", "-0.5"),
        ("--max-seconds", "nan"),
        ("--toolsets", " , "),
    ],
)
def test_a_limit_that_limits_nothing_is_a_mistake(run: Any, words: tuple[str, str]) -> None:
    done = run("run", *words, "hello")

    assert done.returncode == 2
    assert words[0] in done.stderr


def test_a_profile_that_is_not_there_is_said_at_once(model: ScriptedModel, run: Any) -> None:
    done = run("run", "--profile", "readonly_reserch", "hello")

    assert done.returncode == 1
    assert "readonly_research" in done.stderr
    assert model.requests == []


def test_bytes_that_are_no_text_are_no_reason_to_read_nothing(
    model: ScriptedModel, run: Any
) -> None:
    model.add("read it")

    done = run("run", stdin=b"caf\xe9 \xff")

    assert done.stdout == "read it\n"
    assert model.requests[0]["messages"][-1]["content"] == "caf\ufffd \ufffd"
