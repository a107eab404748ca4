"""What `hermes run` and `hermes call` ask a person on a terminal."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import HERMES
from tests.interfaces.chat.conftest import Begin

from hermes.testing import Call, ScriptedModel, Turn


def remove(folder: str) -> Call:
    return Call("terminal", {"command": f"rm -rf {folder}"})


@pytest.fixture
def build(hermes: Any) -> Path:
    """A folder whose removal has to be approved."""
    folder = Path(hermes.folder / "build")
    folder.mkdir()
    return folder


@pytest.mark.parametrize("early", ["y\r", "y", "y\ry\ry"])
def test_what_was_typed_before_the_question_is_no_answer_and_that_is_said(
    model: ScriptedModel, begin: Begin, build: Path, early: str
) -> None:
    typed = threading.Event()

    def answer(_: dict[str, Any]) -> Turn:
        typed.wait(20)
        return Turn(calls=[remove("build")])

    model.add(answer, "I may not.")
    run = begin("run", "clean up", prompt="")

    run.type(early)
    typed.set()
    run.until("not taken as an answer")
    run.until("[N]o:")
    run.enter("")
    run.until("I may not.")

    assert run.closed() == 3
    assert build.exists()


def test_what_is_typed_after_it_is_one(model: ScriptedModel, begin: Begin, build: Path) -> None:
    model.add(Turn(calls=[remove("build")]), "Gone.")
    run = begin("run", "clean up", prompt="[N]o:")

    run.enter("y")
    text = run.until("Gone.")

    assert run.closed() == 0
    assert "no answer" not in text
    assert not build.exists()


def test_ctrl_c_says_no_and_the_next_question_gets_its_own_answer(
    model: ScriptedModel, begin: Begin, build: Path, hermes: Any
) -> None:
    other = hermes.folder / "other"
    other.mkdir()
    model.add(Turn(calls=[remove("build")]), Turn(calls=[remove("other")]), "One of two.")
    run = begin("run", "clean up", prompt="[N]o:")

    run.type("\x03")
    run.until(lambda text: text.count("[N]o:") == 2)
    run.enter("y")
    run.until("One of two.")

    assert run.closed() == 3
    assert (build.exists(), other.exists()) == (True, False)


def test_agents_that_ask_at_once_are_answered_one_by_one(
    model: ScriptedModel, begin: Begin, build: Path, hermes: Any
) -> None:
    other = hermes.folder / "other"
    other.mkdir()

    def child(request: dict[str, Any]) -> Turn | str:
        said = request["messages"]
        if said[-1]["role"] == "tool":
            return "done"
        goal = said[-1]["content"]
        return Turn(calls=[remove("build" if "build" in goal else "other")])

    tasks = [{"goal": "remove build"}, {"goal": "remove other"}]
    model.add(Turn(calls=[Call("delegate_task", {"tasks": tasks})]))
    model.add(child, child, child, child, "All done.")
    run = begin("run", "clean up", prompt="[N]o:")

    first = "build" if '"rm -rf build"' in run.text else "other"
    run.enter("y")
    run.until(lambda text: text.count("[N]o:") == 2)
    run.enter("n")
    run.until("All done.")
    run.closed()

    assert build.exists() == (first == "other")
    assert other.exists() == (first == "build")


def test_a_call_by_hand_is_asked_about_too(begin: Begin, build: Path) -> None:
    call = begin("call", "terminal", "command=rm -rf build", prompt="[N]o:")

    call.type("\x03")

    assert call.closed() == 130
    assert build.exists()


def test_a_call_by_hand_is_not_approved_by_what_was_typed_before_it_asked(
    begin: Begin, build: Path
) -> None:
    begun = 'until test -e go; do sleep 0.05; done; exec "$0" "$@"'
    call = begin(
        "call", "terminal", "command=rm -rf build", command=["sh", "-c", begun, str(HERMES)],
        prompt="",
    )  # fmt: skip

    call.type("y\r")
    (build.parent / "go").touch()
    call.until("not taken as an answer")
    call.until("[N]o:")
    call.enter("")

    assert call.closed() == 3
    assert build.exists()
