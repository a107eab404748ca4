"""What can be typed: several lines, pastes, files, pictures, /commands; and what is remembered."""

from __future__ import annotations

import base64
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.interfaces.chat.conftest import Begin

from hermes.testing import Call, ScriptedModel, Turn

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def last(model: ScriptedModel) -> Any:
    """What the model was sent last."""
    return model.requests[-1]["messages"][-1]["content"]


def test_a_paste_of_many_lines_is_one_message(model: ScriptedModel, begin: Begin) -> None:
    model.add("Got it.")
    chat = begin()
    lines = "\n".join(f"line {number}" for number in range(60))

    chat.paste(lines)
    chat.until("line 59")
    chat.type("\r")
    chat.until("Got it.")

    assert last(model) == lines


@pytest.mark.parametrize("more", ["\\\r", "\x1b\r"])
def test_a_message_may_have_several_lines(model: ScriptedModel, begin: Begin, more: str) -> None:
    model.add("Got it.")
    chat = begin()

    chat.type(f"one{more}two{more}three")
    chat.until("three")
    chat.type("\r")
    chat.until("Got it.")

    assert last(model) == "one\ntwo\nthree"


def test_a_mentioned_file_goes_along_as_data(
    model: ScriptedModel, begin: Begin, hermes: Any
) -> None:
    (hermes.folder / "my notes.txt").write_text("alpha\nbeta\n")
    model.add("Got it.")
    chat = begin()

    chat.enter('what is in @"my notes.txt"?')
    chat.until("Got it.")

    assert last(model).startswith('what is in @"my notes.txt"?')
    assert "1|alpha\n2|beta" in last(model)


def test_a_file_that_may_not_be_read_stays_where_it_is(
    model: ScriptedModel, begin: Begin, home: Path
) -> None:
    home.mkdir(parents=True)
    (home / ".env").write_text("TOKEN=very-secret-value\n")
    model.add("Got it.")
    chat = begin()

    chat.enter(f"use @{home}/.env")
    text = chat.until("Got it.")

    assert "is not sent" in " ".join(text.split())
    assert "very-secret-value" not in last(model)


def test_a_picture_goes_along_as_a_picture(model: ScriptedModel, begin: Begin, hermes: Any) -> None:
    (hermes.folder / "a b.png").write_bytes(PIXEL)
    model.add("I see one.", "I see another.")
    chat = begin()

    chat.paste(str(hermes.folder / "a b.png").replace(" ", "\\ "))
    chat.enter("what is this")
    chat.until("I see one.")
    first = last(model)
    chat.enter('/image "a b.png"')
    chat.until("is attached")
    chat.enter("and this")
    chat.until("I see another.")

    for content in (first, last(model)):
        url = next(part["image_url"]["url"] for part in content if part["type"] == "image_url")
        assert url == f"data:image/png;base64,{base64.b64encode(PIXEL).decode()}"


def test_a_model_that_sees_nothing_is_told_so_and_the_person_too(
    model: ScriptedModel, begin: Begin, hermes: Any
) -> None:
    (hermes.folder / "a.png").write_bytes(PIXEL)
    model.add("I see nothing.")
    chat = begin(env={"HERMES_MODEL": "openai/gpt-3.5-turbo"})

    chat.enter("look at @a.png")
    text = chat.until("I see nothing.")

    assert "can't see images" in text


def test_a_mistyped_command_is_met_with_the_nearest(begin: Begin) -> None:
    chat = begin()

    chat.enter("/toolz")
    chat.until("did you mean /tools?")
    chat.enter("/xyzzy")
    chat.until("/help lists them")


def test_a_path_at_the_beginning_is_no_command(model: ScriptedModel, begin: Begin) -> None:
    model.add("Got it.")
    chat = begin()

    chat.enter("/etc/hosts looks odd")
    chat.until("Got it.")

    assert last(model) == "/etc/hosts looks odd"


def test_help_about_a_command_that_is_not_there_says_so(begin: Begin) -> None:
    chat = begin()

    chat.enter("/help undoo")
    chat.until("no command is called /undoo (Did you mean /undo?)")
    chat.enter("/help /q")
    text = chat.until("/quit  leave")

    assert "start a new session" not in text


def test_commands_of_the_command_line_work_here(begin: Begin) -> None:
    chat = begin()

    chat.enter("/tools show read_file")
    chat.until("Read a text file")
    chat.enter("/tools --nonsense")
    chat.until("unrecognized arguments")
    chat.enter("/toolsets --help")
    chat.until("usage: /toolsets")
    chat.enter('/config get "tools.parallel')
    chat.until("quotes do not match")
    chat.enter("/help")
    text = chat.until("Ctrl-R")

    assert "/undo" in text


def test_every_command_that_is_asked_for_is_there() -> None:
    from hermes.interfaces.chat.slash_commands import COMMANDS

    wanted = (
        "help new resume sessions undo tools toolsets model cost compress approve deny stop "
        "background agents memory skills permissions config doctor quit"
    )
    assert set(wanted.split()) <= set(COMMANDS)


def test_commands_and_files_are_completed(begin: Begin, hermes: Any) -> None:
    (hermes.folder / "a long name.txt").touch()
    chat = begin()

    chat.type("/perm\t")
    chat.until("❯ /permissions")
    chat.type("\x03")
    chat.until(lambda text: text.endswith("❯"))
    chat.type("see @a\t")

    chat.until('❯ see @"a long name.txt"')


def test_what_was_typed_is_remembered_for_its_owner_only(
    model: ScriptedModel, begin: Begin, home: Path
) -> None:
    model.add("One.")
    chat = begin()
    chat.enter("a question to remember")
    chat.until("One.")
    chat.type("\x04")
    assert chat.closed() == 0

    again = begin()
    again.type("\x1b[A")

    again.until("❯ a question to remember")
    assert (home / "chat_history").stat().st_mode & 0o777 == 0o600


def test_ctrl_c_clears_the_line_and_then_says_how_to_leave(begin: Begin) -> None:
    chat = begin()

    chat.type("half a thought")
    chat.until("❯ half a thought")
    chat.type("\x03")
    chat.until(lambda text: text.endswith("❯"))
    chat.type("\x03")
    chat.until("leaves the chat")
    chat.enter("/quit")

    assert chat.closed() == 0


def test_a_dumb_terminal_gets_plain_lines(model: ScriptedModel, begin: Begin, hermes: Any) -> None:
    (hermes.folder / "build").mkdir()
    model.add(Turn(calls=[Call("terminal", {"command": "rm -rf build"})]), "It is **gone**.")
    chat = begin(env={"TERM": "dumb"}, prompt="\n>")

    chat.enter("clean up")
    chat.until("[N]o:")
    chat.enter("y")
    chat.until("It is gone.")
    chat.enter("/nope")
    chat.until("no command is called /nope")
    chat.type("\x04")

    assert chat.closed() == 0
    assert b"\x1b" not in chat.raw
    assert not (hermes.folder / "build").exists()


def test_a_dumb_terminal_shows_what_is_typed_once_and_the_prompt_last(
    model: ScriptedModel, begin: Begin
) -> None:
    model.add(Turn("A word.\n\nAnd then nothing more.", piece=4, stall_after=5), "Back again.")
    chat = begin(env={"TERM": "dumb"}, prompt="\n>")

    chat.enter("speak to me")
    chat.until("A word.")
    chat.type("\x03")
    chat.until(lambda text: "interrupted; the session goes on" in text and text.endswith("\n>"))
    chat.enter("and now")
    text = chat.until("Back again.")

    assert (text.count("speak to me"), text.count("and now")) == (1, 1)


def test_without_the_library_it_is_said_once_and_lines_work(
    model: ScriptedModel, begin: Begin
) -> None:
    model.add("Still *here*.")
    without = (
        "import sys; sys.modules.update(prompt_toolkit=None, rich=None);"
        "from hermes.__main__ import main; sys.exit(main())"
    )
    chat = begin(command=[sys.executable, "-c", without], prompt="\n>")

    chat.enter("hello")
    text = chat.until("Still *here*.")

    assert text.count("hermes-tools[chat]") == 1
