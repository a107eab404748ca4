"""A chat is kept from its first message on: resumed, left, cut off, taken back."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from tests.interfaces.chat.conftest import Begin
from tests.interfaces.chat.screen import Screen

from hermes.stores.sessions import Sessions
from hermes.testing import Call, ScriptedModel, Turn


def test_a_session_is_resumed_with_its_last_exchange(model: ScriptedModel, begin: Begin) -> None:
    model.add("The answer is **42**.", "As I said.")
    chat = begin()
    chat.enter("what is the answer")
    chat.until("The answer is 42.")
    chat.type("\x04")
    assert chat.closed() == 0
    again = chat.text.rpartition("hermes resume ")[2].strip()

    resumed = begin("resume", again)
    resumed.until("The answer is 42.")
    resumed.enter("say it again")
    resumed.until("As I said.")

    said = [message["content"] for message in model.requests[1]["messages"][1:]]
    assert said == ["what is the answer", "The answer is **42**.", "say it again"]


def test_nothing_is_kept_of_a_chat_without_a_message(begin: Begin) -> None:
    chat = begin()

    chat.enter("/tools show read_file")
    chat.until("Read a text file")
    chat.type("\x04")

    assert chat.closed() == 0
    assert "hermes resume" not in chat.text
    with Sessions() as sessions:
        assert sessions.list() == []


def test_what_was_cut_off_is_said_to_be_unknown(model: ScriptedModel, begin: Begin) -> None:
    model.add(Turn(calls=[Call("terminal", {"command": "sleep 599"})]))
    chat = begin()
    chat.enter("wait")
    chat.until("sleep 599")
    chat.process.kill(signal.SIGKILL)

    resumed = begin("resume")
    text = resumed.until("not known")

    assert "cut off during terminal" in text
    assert "❯ wait" in text


def test_a_change_is_taken_back(model: ScriptedModel, begin: Begin, hermes: Any) -> None:
    file = hermes.folder / "a.txt"
    file.write_text("before\n")
    edit = {"path": "a.txt", "old_string": "before", "new_string": "after"}
    model.add(Turn(calls=[Call("patch", edit)]), "Changed.", "I see.")
    chat = begin()
    chat.enter("change it")
    chat.until("Changed.")
    assert file.read_text() == "after\n"

    chat.enter("/undo")
    chat.until("1 restored")
    chat.enter("look again")
    chat.until("I see.")

    assert file.read_text() == "before\n"
    assert "/undo" in model.requests[-1]["messages"][-1]["content"]


def test_undo_leaves_the_work_of_other_sessions_alone(begin: Begin, hermes: Any) -> None:
    (hermes.folder / "a.txt").write_text("before\n")
    hermes("call", "write_file", "path=b.txt", "content=x")
    chat = begin()

    chat.enter("/new")
    chat.until("new session")
    chat.enter("/undo --dry-run")
    chat.until("would undo")

    assert (hermes.folder / "b.txt").read_text() == "x"


def test_a_new_session_knows_nothing_of_the_old(model: ScriptedModel, begin: Begin) -> None:
    model.add("One.", "Two.")
    chat = begin()
    chat.enter("first")
    chat.until("One.")

    chat.enter("/new")
    chat.until("a new session begins")
    chat.enter("second")
    chat.until("Two.")

    said = [message["content"] for message in model.requests[1]["messages"][1:]]
    assert said == ["second"]


def test_another_model_is_asked_from_now_on(model: ScriptedModel, begin: Begin) -> None:
    model.add("One.", "Two.")
    chat = begin()
    chat.enter("first")
    chat.until("One.")

    chat.enter("/model openai/gpt-4.1")
    chat.until("gpt-4.1 at openai is asked")
    chat.enter("second")
    chat.until("Two.")

    assert [request["model"] for request in model.requests] == ["gpt-4o", "gpt-4.1"]
    assert len(model.requests[1]["messages"]) == 4


def test_what_it_cost_and_making_it_shorter(model: ScriptedModel, begin: Begin) -> None:
    model.add("One.", "Goal: to say one.")
    chat = begin()
    chat.enter("first")
    chat.until("One.")

    chat.enter("/cost")
    chat.until("gpt-4o")
    chat.until("$")
    chat.enter("/compress")

    chat.until("it can't be made shorter")


@pytest.fixture
def long_chat(model: ScriptedModel, begin: Begin) -> Screen:
    """A chat that can be made shorter."""
    chat = begin()
    for number in range(4):
        model.add(f"Answer {number}. " + "Many words. " * 400)
        chat.enter(f"question {number}")
        chat.until(lambda text, number=number: f"Answer {number}" in text and text.endswith("❯"))
    return chat


def test_what_is_said_while_it_is_made_shorter_is_not_lost(
    model: ScriptedModel, long_chat: Screen
) -> None:
    model.add(Turn("A summary.", delay=0.5), "Here I am.")

    long_chat.enter("/compress")
    long_chat.until("making it shorter")
    long_chat.enter("still there?")
    text = long_chat.until("Here I am.")

    assert "messages became" in text
    said = [message["content"] for message in model.requests[-1]["messages"]]
    assert said[-1] == "still there?"
    assert "Summary" in said[1]


def test_what_was_said_to_a_conversation_that_ends_is_not_done_in_another(
    model: ScriptedModel, long_chat: Screen
) -> None:
    model.add(Turn("A summary.", stall_after=1), "Done.")

    long_chat.enter("/compress")
    long_chat.until(lambda text: "making it shorter" in text and len(model.requests) == 5)
    long_chat.enter("make the file")
    long_chat.enter("/new")
    long_chat.until("not sent: make the file")
    long_chat.until("session begins")
    assert len(model.requests) == 5


def test_ctrl_c_ends_making_it_shorter_and_nothing_is_changed(
    model: ScriptedModel, long_chat: Screen
) -> None:
    model.add(Turn("A summary.", stall_after=1), "Here I am.")

    long_chat.enter("/compress")
    long_chat.until(lambda text: "making it shorter" in text and len(model.requests) == 5)
    long_chat.type("\x03")
    long_chat.until("was ended")
    long_chat.enter("still there?")
    long_chat.until("Here I am.")

    said = [message["content"] for message in model.requests[-1]["messages"]]
    assert (said[1], said[-1]) == ("question 0", "still there?")


def test_who_opens_a_session_a_second_time_is_told(model: ScriptedModel, begin: Begin) -> None:
    model.add("One.", "Two.")
    first = begin()
    first.enter("hello")
    first.until("One.")

    second = begin("resume")
    text = second.until("One.")
    first.enter("/quit")
    first.closed()
    second.enter("/quit")
    second.closed()
    third = begin("resume")

    assert "is open elsewhere, too" in " ".join(text.split())
    assert "elsewhere" not in third.until("One.")
