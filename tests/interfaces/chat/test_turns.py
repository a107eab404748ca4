"""A turn under way: approvals, questions, words in between, Ctrl-C."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.interfaces.chat.conftest import Begin

from hermes.testing import Call, ScriptedModel, Turn


def heard(request: dict[str, Any]) -> str:
    """What the model was told last, said back."""
    return f"I heard: {request['messages'][-1]['content']}"


@pytest.fixture
def build(hermes: Any) -> Path:
    """A folder whose removal has to be approved."""
    folder = Path(hermes.folder / "build")
    folder.mkdir()
    return folder


REMOVE = Turn(calls=[Call("terminal", {"command": "rm -rf build"})])


def test_what_and_why_is_shown_and_a_yes_runs_it(
    model: ScriptedModel, begin: Begin, build: Path
) -> None:
    model.add(REMOVE, "It is gone.")
    chat = begin()

    chat.enter("clean up")
    text = chat.until("[N]o")
    there = build.exists()
    chat.enter("y")
    chat.until("It is gone.")

    assert "deletes a directory with everything in it" in text
    assert 'command = "rm -rf build"' in text
    assert "delete.recursive" in text
    assert (there, build.exists()) == (True, False)


@pytest.mark.parametrize("said", ["", "n", "/deny", "\x03"])
def test_anything_but_a_yes_is_a_no(
    model: ScriptedModel, begin: Begin, build: Path, said: str
) -> None:
    model.add(REMOVE, "I may not.")
    chat = begin(columns=40)

    chat.enter("clean up")
    chat.until("[N]o")
    chat.type(said) if said == "\x03" else chat.enter(said)
    chat.until("I may not.")

    assert build.exists()


def test_what_was_typed_before_the_question_is_no_answer(
    model: ScriptedModel, begin: Begin, build: Path
) -> None:
    model.add(Turn("Now then.", delay=0.3, calls=REMOVE.calls), "I may not.")
    chat = begin()
    chat.enter("clean up")
    chat.until("thinking")

    chat.type("y")
    chat.until("[N]o")
    chat.enter("es, and then some")
    chat.until("that is no answer")
    chat.enter("no")
    text = chat.until(lambda text: text.endswith("❯ y"))

    assert "→ no" in text
    assert build.exists()


def test_a_yes_for_the_session_is_not_asked_again(
    model: ScriptedModel, begin: Begin, build: Path
) -> None:
    model.add(REMOVE, "Once.", REMOVE, "Twice.")
    chat = begin()

    chat.enter("clean up")
    chat.until("[N]o")
    chat.enter("/approve session")
    chat.until("Once.")
    build.mkdir()
    chat.enter("again")
    text = chat.until("Twice.")

    assert text.count('command = "rm -rf build"') == 1
    assert not build.exists()


def test_the_agent_may_ask(model: ScriptedModel, begin: Begin) -> None:
    question = {"question": "Which colour?", "choices": ["red", "blue"]}
    model.add(Turn(calls=[Call("clarify", question)]), heard)
    chat = begin()

    chat.enter("paint it")
    chat.until("2. blue")
    chat.until("a number, or words")
    chat.enter("2")

    chat.until('I heard: {"answer":"blue"}')


def test_outside_of_the_chat_it_may_ask_on_a_terminal_too(
    model: ScriptedModel, begin: Begin
) -> None:
    question = {"question": "Which colour?", "choices": ["red", "blue"]}
    model.add(Turn(calls=[Call("clarify", question)]), heard)
    run = begin("run", "paint it", prompt="Your answer:")

    run.enter("1")

    run.until('I heard: {"answer":"red"}')


def test_a_word_during_a_turn_reaches_the_model_at_its_next_step(
    model: ScriptedModel, begin: Begin, hermes: Any
) -> None:
    model.add(Turn(calls=[Call("terminal", {"command": "until [ -e go ]; do sleep 0.1; done"})]))
    model.add(heard)
    chat = begin()

    chat.enter("wait")
    chat.until("until [ -e go ]")
    chat.enter("in green, please")
    chat.until("↪ in green, please")
    (hermes.folder / "go").touch()

    chat.until("I heard: in green, please")


def test_the_first_ctrl_c_stops_the_call_and_the_model_is_told(
    model: ScriptedModel, begin: Begin
) -> None:
    model.add(Turn(calls=[Call("terminal", {"command": "sleep 6151"})]), heard)
    chat = begin()

    chat.enter("wait")
    chat.until("sleep 6151")
    chat.type("\x03")
    chat.until(lambda text: "stopped" in text.rpartition("I heard")[2])

    assert not running("sleep 6151")


def test_the_second_ctrl_c_ends_the_turn_and_the_session_goes_on(
    model: ScriptedModel, begin: Begin
) -> None:
    stubborn = "trap '' INT TERM; while :; do sleep 0.2; done"
    model.add(Turn(calls=[Call("terminal", {"command": stubborn})]), "Here I am.")
    chat = begin()

    chat.enter("wait")
    chat.until("trap")
    chat.type("\x03\x03")
    chat.until("interrupted; the session goes on")
    chat.enter("are you there")
    chat.until("Here I am.")

    said = [message["content"] for message in model.requests[-1]["messages"]]
    assert "wait" in said
    assert said[-1] == "are you there"


def test_ctrl_c_while_the_model_speaks_ends_the_turn(model: ScriptedModel, begin: Begin) -> None:
    model.add(Turn("First.\n\nThen nothing more.", piece=4, stall_after=5), "Back again.")
    chat = begin()

    chat.enter("speak")
    chat.until("First.")
    chat.type("\x03")
    chat.until("interrupted; the session goes on")
    chat.enter("and now")

    chat.until("Back again.")


def test_another_agent_works_in_the_background(model: ScriptedModel, begin: Begin) -> None:
    model.add("The work is done.")
    chat = begin()

    chat.enter("/background count the files")
    text = chat.until("The work is done.")
    chat.enter("/agents")
    chat.until("completed")

    assert "has ended" in text


def test_why_one_in_the_background_failed_is_said(model: ScriptedModel, begin: Begin) -> None:
    model.add(Turn(status=400, error="no such thing"))
    chat = begin()

    chat.enter("/background count the files")

    chat.until("has ended: failed (openai answered 400: no such thing)")


def running(command: str) -> bool:
    words = command.split()
    return any(process.info["cmdline"] == words for process in psutil.process_iter(["cmdline"]))
