"""A turn says what was done as it was done, and nothing that no tool said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.embedded.scripted import ScriptedSmall, agent, call, reply


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "archive").mkdir(parents=True)
    (folder / "report.pdf").write_text("report\n")
    (folder / "archive" / "old.pdf").write_text("old\n")
    (folder / "sizes.txt").write_text("lamp 40\ndesk 155")
    return folder


def turn(work: Path, model: ScriptedSmall, text: str, **options: Any) -> Any:
    with agent(work, model, **options) as one:
        return one.turn(text)


def test_a_number_that_no_tool_said_is_asked_about_once_and_then_left_out(work: Path) -> None:
    wrong = reply("The desk is big. It is 1555 wide.")
    model = ScriptedSmall(call("read_file", path="sizes.txt"), wrong, wrong)

    result = turn(work, model, "How wide is the desk in sizes.txt?")

    assert "1555 is in no result" in model.asked[2][-1][1]
    # Said again it would be the same: it has to be worked out first.
    assert "reply" not in model.grammars[2]
    assert "calculate" in model.grammars[2]
    assert "read_file" not in model.grammars[2]
    assert result.text.startswith("The desk is big.\n\nLeft out: 1555, which is in no result.")
    assert "desk 155" in result.text
    assert "1555 wide" not in result.text


def test_a_number_that_was_corrected_is_the_answer(work: Path) -> None:
    model = ScriptedSmall(call("read_file", path="sizes.txt"), reply("1555."), reply("155."))

    assert turn(work, model, "How wide is the desk in sizes.txt?").text == "155."


def test_what_was_said_in_an_earlier_turn_may_be_said_again(work: Path) -> None:
    model = ScriptedSmall(
        call("read_file", path="sizes.txt"),
        reply("It is 155."),
        "task",
        call("count_lines", paths=["sizes.txt"]),
        reply("It was 155."),
    )

    with agent(work, model) as one:
        one.turn("How wide is the desk in sizes.txt?")
        result = one.turn("How wide was that again?")

    assert result.text == "It was 155."


def test_what_was_written_may_be_said(work: Path) -> None:
    action = call("write_file", path="year.txt", content="1969")
    model = ScriptedSmall("task", action, action, reply("1969 is in year.txt."))

    result = turn(work, model, "Write the year of the first moon landing into year.txt")

    assert result.text == (
        "1969 is in year.txt.\n\nNot checked: 1969 in year.txt, which is in no result.\n\n"
        "Made: year.txt"
    )


def test_a_number_that_was_made_up_is_not_worked_with_even_by_a_model_that_insists(
    work: Path,
) -> None:
    wrong = call("calculate", expression="1555 * 2")
    model = ScriptedSmall(
        call("read_file", path="sizes.txt"), wrong, wrong, reply("It is 3110."), reply("Unknown.")
    )

    result = turn(work, model, "What is twice the width of the desk in sizes.txt?")

    assert "1555 is in no result" in model.asked[2][-1][1]
    assert result.text == "Unknown."


def test_an_answer_about_the_machine_has_figures(work: Path) -> None:
    model = ScriptedSmall("task", call("system_info"), reply("Yes, it is busy."))

    result = turn(work, model, "Is this machine busy?")

    assert result.text.startswith("Yes, it is busy.\n\nCPU: ")


def test_what_was_measured_on_the_way_is_not_told(work: Path) -> None:
    model = ScriptedSmall(
        "task",
        call("system_info"),
        call("write_file", path="note.txt", content="busy"),
        reply("It is busy."),
    )

    result = turn(work, model, "Write into note.txt whether this machine is busy")

    assert result.text == "It is busy.\n\nMade: note.txt"


def test_a_folder_is_made_and_told_of(work: Path) -> None:
    model = ScriptedSmall(
        "task", call("make_folder", path="backup"), reply("The folder was created.")
    )

    result = turn(work, model, "make a new folder called backup")

    assert (work / "backup").is_dir()
    assert result.text == "The folder was created.\n\nMade: backup/"


@pytest.mark.parametrize("to", ["archive", "done"])
def test_a_file_that_moved_was_not_deleted(work: Path, to: str) -> None:
    model = ScriptedSmall(call("move_file", path="report.pdf", to=to), reply("It is there."))

    result = turn(work, model, f"Move report.pdf into the {to} folder")

    assert (work / to / "report.pdf").read_text() == "report\n"
    assert result.text == f"It is there.\n\nMoved: report.pdf to {to}/report.pdf"


def test_a_file_that_the_request_describes_may_be_moved(work: Path) -> None:
    model = ScriptedSmall(
        "task",
        call("search_files", text="desk"),
        call("move_file", path="sizes.txt", to="archive"),
        reply("It is in archive."),
    )

    result = turn(work, model, "Find the file that mentions the desk and move it to archive")

    assert result.text == "It is in archive.\n\nMoved: sizes.txt to archive/sizes.txt"


@pytest.mark.parametrize("text", ["lamp", "report"])
def test_a_file_that_it_does_not_describe_stays(work: Path, text: str) -> None:
    (work / "other.txt").write_text("desk lamp report\n")
    move = call("move_file", path="sizes.txt", to="archive")
    search = call("search_files", text=text)
    model = ScriptedSmall("task", search, move, move, *[reply("Moved.")] * 2)

    result = turn(work, model, "Move the file that mentions the desk to archive")

    assert (work / "sizes.txt").exists()
    assert result.text.count("the request does not name sizes.txt") == 1
    assert result.refused


def test_files_that_are_named_are_not_only_looked_at_where_things_are_changed(work: Path) -> None:
    model = ScriptedSmall(
        call("make_folder", path="done"),
        reply("The folder was made."),
        call("move_file", path="report.pdf", to="done"),
        reply("Both done."),
    )

    result = turn(work, model, "create a folder named done and put report.pdf in it")

    assert "Nothing was done with report.pdf yet." in model.asked[2][-1][1]
    assert "move_file" in model.grammars[2]
    assert result.text == "Both done.\n\nMoved: report.pdf to done/report.pdf"


def test_what_the_model_was_told_is_not_written_into_a_file(work: Path) -> None:
    model = ScriptedSmall(
        call("move_file", path="report.pdf", to="archive/old.pdf"),
        call("write_file", path="report.pdf", content="the request does not name archive/old.pdf"),
        call("move_file", path="report.pdf", to="archive"),
        reply("Moved."),
    )

    result = turn(work, model, "Move report.pdf into the archive folder")

    assert "Write to" not in model.asked[1][-1][1]
    assert "no text for a file" in model.asked[2][-1][1]
    assert result.text == "Moved.\n\nMoved: report.pdf to archive/report.pdf"
    assert not result.refused


def test_an_answer_from_another_file_says_so(work: Path) -> None:
    model = ScriptedSmall(
        "task",
        call("read_file", path="budget.xlsx"),
        call("search_files", text="desk"),
        reply("The budget for the desk is 155."),
    )

    result = turn(work, model, "What does budget.xlsx say about the desk?")

    assert result.text == (
        "Not done: read_file budget.xlsx: budget.xlsx is not there\n\n"
        "The budget for the desk is 155.\n\nThis is from sizes.txt."
    )


def test_a_reminder_is_not_an_answer(work: Path) -> None:
    model = ScriptedSmall(
        "task",
        call("search_files", text="lamp"),
        reply("The lamp was moved to 40."),
        reply("No file was changed or made yet."),
    )

    result = turn(work, model, "Where is the lamp?")

    assert result.text.startswith("The lamp was moved to 40.")


def test_words_that_were_read_are_no_claim(work: Path) -> None:
    model = ScriptedSmall(
        "task", call("directory_list", path="."), reply("report.pdf was changed last.")
    )

    assert turn(work, model, "What did I change last?").text == "report.pdf was changed last."


@pytest.mark.parametrize(
    ("action", "shown"),
    [
        (call("count_lines", paths=["sizes.txt"]), "wc -lw -- sizes.txt"),
        (
            call("append_file", path="sizes.txt", content="bed 90"),
            "printf '%s\\n' '\nbed 90' >> sizes.txt",
        ),
        (call("calculate", expression="155 * 2"), "python3 -c 'print(155 * 2)'"),
    ],
)
def test_small_tools_show_as_plain_commands(work: Path, action: str, shown: str) -> None:
    model = ScriptedSmall(
        call("read_file", path="sizes.txt"), action, *[reply("So it is: 310.")] * 2
    )

    with agent(work, model) as one:
        one.turn("What about sizes.txt, 155 * 2 and bed 90?")
        called = [use.arguments for said in one.conversation.messages for use in said.calls]

    assert json.loads(called[1])["command"] == shown
