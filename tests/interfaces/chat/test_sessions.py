"""A chat is kept from its first message on: resumed, left, cut off, taken back."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from typing import Any

import pytest
from tests.conftest import HERMES
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
    chat.until("starts a new session")
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
    chat.until("now using gpt-4.1 at openai")
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

    chat.until("can't be shortened")


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
    long_chat.until("compressing")
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
    long_chat.until(lambda text: "compressing" in text and len(model.requests) == 5)
    long_chat.enter("make the file")
    long_chat.enter("/new")
    long_chat.until("not sent: make the file")
    long_chat.until("starts a new session")
    assert len(model.requests) == 5


def test_ctrl_c_ends_making_it_shorter_and_nothing_is_changed(
    model: ScriptedModel, long_chat: Screen
) -> None:
    model.add(Turn("A summary.", stall_after=1), "Here I am.")

    long_chat.enter("/compress")
    long_chat.until(lambda text: "compressing" in text and len(model.requests) == 5)
    long_chat.type("\x03")
    long_chat.until("interrupted; the session")
    long_chat.enter("still there?")
    long_chat.until("Here I am.")

    said = [message["content"] for message in model.requests[-1]["messages"]]
    assert (said[1], said[-1]) == ("question 0", "still there?")


@pytest.mark.parametrize(("term", "prompt"), [("xterm-256color", "❯"), ("dumb", ">")])
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_told_to_end_twice_it_keeps_how_far_the_call_got(
    model: ScriptedModel, begin: Begin, hermes: Any, number: int, term: str, prompt: str
) -> None:
    model.add(Turn(calls=[Call("terminal", {"command": "echo begun > mark; sleep 598"})]))
    chat = begin(env={"TERM": term}, prompt=prompt)
    chat.enter("wait")
    chat.until(lambda _: (hermes.folder / "mark").exists())

    # As when a window is closed: the system tells it, and the shell does.
    chat.process.kill(number)
    chat.process.kill(number)

    assert chat.closed() == 0
    with Sessions() as sessions:
        session = sessions.open("last")
        assert session.unfinished() == []
        assert "stopped with the turn" in session.messages()[-1].text


def test_a_terminal_that_goes_away_ends_the_chat_in_order(
    model: ScriptedModel, hermes: Any
) -> None:
    model.add(Turn(calls=[Call("terminal", {"command": "echo begun > mark; sleep 597"})]))
    ours, theirs = os.openpty()
    variables = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "sk-x", "HERMES_MODEL": "gpt-4o"}
    program = subprocess.Popen(
        [HERMES, "chat", "wait"],
        cwd=hermes.folder,
        env=hermes.environment(TERM="xterm", **variables),
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    os.close(theirs)
    while not (hermes.folder / "mark").exists():
        if select.select([ours], [], [], 0.1)[0]:
            os.read(ours, 65_536)

    os.close(ours)
    _, said = program.communicate(timeout=30)

    assert b"Traceback" not in said
    with Sessions() as sessions:
        assert sessions.open("last").unfinished() == []


def test_who_opens_a_session_a_second_time_goes_on_with_a_copy(
    model: ScriptedModel, begin: Begin
) -> None:
    model.add("One.", "Two, here.", "Two, there.")
    sessions = Sessions()

    def kept(*messages: int) -> bool:
        # What is shown may not be kept yet.
        return sorted(info.messages for info in sessions.list()) == list(messages)

    first = begin()
    first.enter("hello")
    first.until(lambda text: "One." in text and kept(2))

    second = begin("resume")
    text = " ".join(second.until("One.").split())
    second.enter("and there?")
    second.until(lambda text: "Two, here." in text and kept(2, 4))
    first.enter("and here?")
    first.until(lambda text: "Two, there." in text and kept(4, 4))

    assert "is open in another process" in text
    said = [[one["content"] for one in seen["messages"][1:]] for seen in model.requests[1:]]
    assert said == [["hello", "One.", "and there?"], ["hello", "One.", "and here?"]]
    ends = [[m.text for m in sessions.open(info.id).messages()] for info in sessions.list()]
    sessions.close()
    assert sorted(ends) == [
        ["hello", "One.", "and here?", "Two, there."],
        ["hello", "One.", "and there?", "Two, here."],
    ]


def test_a_session_is_free_again_when_its_chat_has_ended(
    model: ScriptedModel, begin: Begin
) -> None:
    model.add("One.")
    first = begin()
    first.enter("hello")
    with Sessions() as sessions:
        # What is shown may not be kept yet.
        first.until(lambda text: "One." in text and sessions.info("last").messages == 2)
    first.process.kill(signal.SIGKILL)
    first.closed()

    second = begin("resume")

    assert "elsewhere" not in second.until("One.")


def test_what_is_said_with_a_session_to_resume_is_said_in_it(
    model: ScriptedModel, begin: Begin
) -> None:
    model.add("One.", "Two.")
    first = begin("chat", "hello")
    first.until("One.")
    first.enter("/quit")
    first.closed()

    second = begin("chat", "--resume", "last", "and now?")
    second.until("Two.")

    said = [message["content"] for message in model.requests[1]["messages"][1:]]
    assert said == ["hello", "One.", "and now?"]
    with Sessions() as sessions:
        assert len(sessions.list()) == 1


def test_what_is_typed_after_new_is_said_in_the_new_session(
    model: ScriptedModel, begin: Begin
) -> None:
    model.add("One.", "Two.")
    chat = begin()
    chat.enter("hello")
    chat.until("One.")

    # At once, as a person does who knows what comes.
    chat.type("/new\rfrom the start\r")
    chat.until("Two.")

    said = [message["content"] for message in model.requests[1]["messages"][1:]]
    assert said == ["from the start"]
