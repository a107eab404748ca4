"""The recipe around the model, with the real tools and a scripted model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.embedded.scripted import ScriptedSmall, agent, call, reply

from hermes.core.model_protocol import TextDelta
from hermes.embedded.conversation import STEPS
from hermes.stores.sessions import Sessions

FILES = {
    "readme.md": "# Hello\n\nThis is teh start.\n",
    "notes/june.txt": "boat\ncar\n",
    "list.csv": "a,b\n1,2\n",
}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "work" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "work"


def contents(work: Path) -> dict[str, str]:
    return {
        str(path.relative_to(work)): path.read_text() for path in work.rglob("*") if path.is_file()
    }


def test_chat_is_answered_in_words_and_sees_no_tools(work: Path) -> None:
    model = ScriptedSmall("chat", "Rain on the roof.")
    pieces: list[str] = []

    with agent(work, model, on_event=lambda e: pieces.append(getattr(e, "text", ""))) as one:
        result = one.turn("Write a line about rain")

    assert result.text == "Rain on the roof."
    assert "Rain on the roof." in pieces
    assert "write_file" not in str(model.asked[1])
    assert model.grammars[1] == ""
    assert contents(work) == FILES


def test_a_request_that_names_a_file_is_a_task_without_asking(work: Path) -> None:
    model = ScriptedSmall(call("read_file", path="list.csv"), reply("It has 2 lines."))

    with agent(work, model) as one:
        result = one.turn("How many lines has list.csv?")

    assert result.text == "It has 2 lines."
    assert result.ended == "answered"
    shown = model.asked[1][-1][1]
    assert "a,b\n1,2" in shown
    assert "2 lines" in shown
    assert "How many lines has list.csv?" in shown


def test_the_prompt_of_a_turn_only_grows_at_its_end(work: Path) -> None:
    model = ScriptedSmall(
        call("directory_list", path="."),
        call("search_files", text="boat"),
        call("read_file", path="notes/june.txt"),
        reply("Yes."),
    )

    with agent(work, model) as one:
        one.turn("Is there a boat in notes/june.txt?")

    for before, after in zip(model.asked, model.asked[1:], strict=False):
        assert after[: len(before)] == before


def test_the_request_and_the_files_there_are_come_with_it(work: Path) -> None:
    model = ScriptedSmall("task", call("directory_list", path="."), reply("Nothing."))

    with agent(work, model) as one:
        one.turn("What is here?")

    assert model.asked[1][-1][1] == (
        "What is here?\n(Files here: list.csv, readme.md, notes/june.txt)"
    )


def test_the_report_says_what_was_really_done(work: Path) -> None:
    model = ScriptedSmall(
        call("patch", path="readme.md", old="teh", new="the"),
        call("write_file", path="done.txt", content="yes"),
        reply("All good."),
    )

    with agent(work, model) as one:
        result = one.turn("Fix teh in readme.md and write yes into done.txt")

    assert result.text == "All good.\n\nMade: done.txt\nChanged: readme.md"
    assert (work / "readme.md").read_text() == FILES["readme.md"].replace("teh", "the")
    assert (work / "done.txt").read_text() == "yes\n"


def test_a_claim_that_nothing_bears_out_is_answered(work: Path) -> None:
    claim = reply("I have created todo.md for you.")
    model = ScriptedSmall(call("read_file", path="list.csv"), claim, claim)

    with agent(work, model) as one:
        result = one.turn("Make todo.md from list.csv")

    assert "There is no todo.md yet." in model.asked[2][-1][1]
    assert "No file was changed." in result.text


@pytest.mark.parametrize(
    "action",
    [
        call("write_file", path="readme.md", content="x"),
        call("append_file", path="list.csv", content="x"),
        call("patch", path="readme.md", old="Hello", new="x"),
        call("terminal", command="echo x > readme.md"),
        call("terminal", command="rm list.csv"),
        call("terminal", command="python3 -c \"open('list.csv', 'w').write('x')\""),
        call("terminal", command="mv readme.md other.md"),
        call("terminal", command="sed -i s/a/b/ list.csv readme.md"),
        call("file_compress", sources=["notes"], archive="list.csv"),
        call("delete_file", path="list.csv"),
        call("move_file", path="list.csv", to="todo.md"),
        call("copy_file", path="readme.md", to="list.csv"),
        call("write_file", path="else.txt", content="x"),
        call("terminal", command="sort list.csv > else.txt"),
        call("terminal", command="mkdir -p more && cp list.csv else.txt"),
    ],
)
def test_no_file_is_changed_that_the_request_does_not_name(work: Path, action: str) -> None:
    model = ScriptedSmall("task", action, *[reply("Done.")] * 3)

    with agent(work, model) as one:
        result = one.turn("Create todo.md with the word milk")

    now = contents(work)
    assert {name: now[name] for name in FILES} == FILES
    assert "else.txt" not in now
    assert "reply" not in model.grammars[2] or "put back" in model.asked[2][-1][1]
    assert "Not done" in result.text or "put back" in model.asked[2][-1][1]


def test_the_model_hears_why_a_write_was_refused(work: Path) -> None:
    model = ScriptedSmall(
        "task",
        call("write_file", path="readme.md", content="milk"),
        call("write_file", path="todo.md", content="milk"),
        reply("Done."),
    )

    with agent(work, model) as one:
        result = one.turn("Create todo.md with the word milk")

    assert "does not name readme.md" in model.asked[2][-1][1]
    assert result.text == "Done.\n\nMade: todo.md"
    assert not result.refused


def test_a_program_that_was_asked_for_may_change_what_it_likes(work: Path) -> None:
    (work / "build.sh").write_text("echo built >> list.csv\n")
    model = ScriptedSmall(call("terminal", command="sh build.sh"), reply("Built."))

    with agent(work, model) as one:
        result = one.turn("Run build.sh")

    assert (work / "list.csv").read_text().endswith("built\n")
    assert "Changed: list.csv" in result.text


def test_a_task_is_not_answered_before_anything_was_looked_at(work: Path) -> None:
    model = ScriptedSmall(call("read_file", path="list.csv"), reply("Two."))

    with agent(work, model) as one:
        one.turn("How many lines has list.csv?")

    assert "reply" not in model.grammars[0]
    assert "reply" in model.grammars[1]


def test_one_search_in_vain_is_not_all_there_is_to_try(work: Path) -> None:
    model = ScriptedSmall(
        call("search_files", text="the number of lines"),
        call("read_file", path="list.csv"),
        reply("Two."),
    )

    with agent(work, model) as one:
        one.turn("What is the number of lines in list.csv?")

    assert "Read list.csv" in model.asked[1][-1][1]
    assert "reply" not in model.grammars[1]
    assert "reply" in model.grammars[2]


def test_an_answer_that_was_copied_from_the_example_is_replaced_by_what_came_back(
    work: Path,
) -> None:
    copied = reply("The blue boat is on land.")
    model = ScriptedSmall(call("read_file", path="list.csv"), copied, copied)

    with agent(work, model) as one:
        result = one.turn("What is in list.csv?")

    assert "boat" not in result.text
    assert "1,2" in result.text


def test_the_same_call_is_not_run_twice_and_then_only_a_reply_is_allowed(work: Path) -> None:
    again = call("append_file", path="list.csv", content="3,4")
    model = ScriptedSmall(again, again, reply("Added."))

    with agent(work, model) as one:
        one.turn("Add 3,4 to list.csv")

    assert (work / "list.csv").read_text() == "a,b\n1,2\n3,4\n"
    assert "append_file" in model.grammars[1]
    assert "append_file" not in model.grammars[2]
    assert "reply" in model.grammars[2]


def test_a_task_ends_after_some_steps_with_a_reply(work: Path) -> None:
    steps = [call("search_files", text=f"word {n}") for n in range(STEPS - 1)]
    model = ScriptedSmall(*steps, reply("I found nothing."))

    with agent(work, model) as one:
        result = one.turn("Look for words in list.csv")

    assert result.text == "I found nothing."
    assert "tool" not in model.grammars[-1]


def test_half_a_call_is_not_carried_out(work: Path) -> None:
    model = ScriptedSmall(
        '{"tool": "write_file", "args": {"path": "long.txt", "content": "once upon…',
        call("write_file", path="long.txt", content="short"),
        reply("Done."),
    )

    with agent(work, model) as one:
        one.turn("Write the story of the readme into long.txt")

    assert (work / "long.txt").read_text() == "short\n"
    assert "cut off" in model.asked[1][-1][1]


def test_a_failed_patch_shows_the_text_as_it_is(work: Path) -> None:
    model = ScriptedSmall(
        call("patch", path="readme.md", old="no such words at all", new="x"),
        reply("It is not there."),
    )

    with agent(work, model) as one:
        result = one.turn("Replace no such words at all by x in readme.md")

    assert "This is teh start." in model.asked[1][-1][1]
    assert "Not done: patch" in result.text


def test_what_is_said_meanwhile_is_read_at_the_next_step(work: Path) -> None:
    model = ScriptedSmall(call("read_file", path="list.csv"), reply("Fine."))

    with agent(work, model) as one:
        one.conversation.steer("and be brief")
        one.turn("What is in list.csv?")

    assert "and be brief" in model.asked[1][-1][1]


def test_what_is_added_during_the_last_answer_is_done_as_well(work: Path) -> None:
    class Interrupted(ScriptedSmall):
        async def ask(self, *said: Any, **more: Any) -> AsyncIterator[Any]:
            if len(self.asked) == 1:
                one.conversation.steer("and of readme.md")
            async for piece in super().ask(*said, **more):
                yield piece

    model = Interrupted(
        call("read_file", path="list.csv"),
        reply("Two lines."),
        call("read_file", path="readme.md"),
        reply("Two and three."),
    )

    with agent(work, model) as one:
        result = one.turn("How many lines are in list.csv?")

    assert result.text == "Two and three."


def test_earlier_turns_are_remembered_and_it_may_be_what_was_spoken_of(work: Path) -> None:
    model = ScriptedSmall(
        call("write_file", path="shop.txt", content="milk"),
        reply("Written."),
        "task",
        call("append_file", path="shop.txt", content="bread"),
        reply("Added."),
    )

    with agent(work, model) as one:
        one.turn("Write milk into shop.txt, not into the list")
        one.turn("Now add bread to it, too")

    assert (work / "shop.txt").read_text() == "milk\nbread\n"
    assert ("user", "Write milk into shop.txt, not into the list") in model.asked[3]


def test_intents_and_outcomes_are_in_the_journal(work: Path) -> None:
    model = ScriptedSmall(call("read_file", path="list.csv"), reply("It has 2 lines."))

    with Sessions() as sessions:
        journal = sessions.begin(workspace=str(work), front_door="test", model="")
        with agent(work, model, journal=journal) as one:
            result = one.turn("How many lines has list.csv?")
        kept = journal.messages()

    assert [message.role for message in kept] == ["user", "assistant", "tool", "assistant"]
    assert kept[1].calls[0].name == "read_file"
    assert result.usage.input == 14


def test_a_budget_that_is_spent_ends_the_turn(work: Path) -> None:
    model = ScriptedSmall(call("read_file", path="list.csv"), reply("never asked"))

    with agent(work, model, max_steps=1) as one:
        result = one.turn("What is in list.csv?")

    assert result.ended == "spent"


def test_text_is_told_once_it_is_certain(work: Path) -> None:
    model = ScriptedSmall(call("read_file", path="list.csv"), reply("Two."))
    told: list[str] = []

    def hear(event: object) -> None:
        if isinstance(event, TextDelta):
            told.append(event.text)

    with agent(work, model, on_event=hear) as one:
        one.turn("How many lines has list.csv?")

    assert told == ["Two."]


def test_every_file_that_is_named_is_looked_at(work: Path) -> None:
    model = ScriptedSmall(
        call("count_lines", paths=["list.csv"]),
        reply("list.csv has 2."),
        call("count_lines", paths=["readme.md"]),
        reply("list.csv has 2, readme.md has 3."),
    )

    with agent(work, model) as one:
        result = one.turn("How many lines have list.csv and readme.md?")

    assert "Nothing was done with readme.md yet." in model.asked[2][-1][1]
    assert "reply" not in model.grammars[2]
    assert "write_file" not in model.grammars[2]
    assert result.text == "list.csv has 2, readme.md has 3."


def test_a_reminder_comes_once(work: Path) -> None:
    model = ScriptedSmall("task", call("directory_list", path="."), reply("No."), reply("No."))

    with agent(work, model) as one:
        result = one.turn("Is there a file plan.txt here?")

    assert result.text == "No.\n\nThere is no plan.txt."
    assert result.ended == "answered"
    assert contents(work) == FILES


def test_a_text_is_not_replaced_unseen(work: Path) -> None:
    action = call("write_file", path="list.csv", content="3,4")
    model = ScriptedSmall(
        action, call("append_file", path="list.csv", content="3,4"), reply("Added.")
    )

    with agent(work, model) as one:
        one.turn("Add the row 3,4 to list.csv")

    assert "a,b\n1,2" in model.asked[1][-1][1]
    assert (work / "list.csv").read_text() == "a,b\n1,2\n3,4\n"


def test_a_text_is_replaced_by_a_model_that_insists(work: Path) -> None:
    action = call("write_file", path="list.csv", content="3,4")
    model = ScriptedSmall(action, action, reply("Replaced."))

    with agent(work, model) as one:
        result = one.turn("Let list.csv hold nothing but 3,4")

    assert (work / "list.csv").read_text() == "3,4\n"
    assert result.text == "Replaced.\n\nChanged: list.csv"


def test_a_number_is_worked_out_before_it_is_written(work: Path) -> None:
    model = ScriptedSmall(
        "task",
        call("write_file", path="sum.txt", content="4711"),
        call("calculate", expression="487 * 36"),
        call("write_file", path="sum.txt", content="17532"),
        reply("Saved."),
    )

    with agent(work, model) as one:
        one.turn("Multiply 487 by 36 and save it as sum.txt")

    assert "4711 is in no result" in model.asked[2][-1][1]
    assert (work / "sum.txt").read_text() == "17532\n"


def test_a_search_for_the_name_of_a_file_says_that_there_is_one(work: Path) -> None:
    model = ScriptedSmall(
        "task",
        call("search_files", text="june"),
        call("read_file", path="notes/june.txt"),
        reply("A boat."),
    )

    with agent(work, model) as one:
        one.turn("What did I write in June?")

    assert "Read notes/june.txt" in model.asked[2][-1][1]


def test_what_a_command_printed_is_told_as_it_is(work: Path) -> None:
    model = ScriptedSmall(
        "task", call("terminal", command="echo salut; exit 3"), reply("It says hello.")
    )

    with agent(work, model) as one:
        result = one.turn("Run echo salut and so on")

    assert result.text == (
        "It says hello.\n\n`echo salut; exit 3` printed:\nsalut\n"
        "`echo salut; exit 3` ended with code 3."
    )
    assert result.ended == "answered"


def test_a_script_that_may_not_be_run_by_its_name_is_run_all_the_same(work: Path) -> None:
    (work / "check.sh").write_text("echo checked; exit 4\n")
    model = ScriptedSmall(call("terminal", command="./check.sh"), reply("It ended with 4."))

    with agent(work, model) as one:
        result = one.turn("Run check.sh")

    assert "`bash ./check.sh` printed:\nchecked" in result.text


def test_what_could_not_be_done_is_said_and_the_turn_did_not_go_well(work: Path) -> None:
    model = ScriptedSmall(
        "task",
        call("read_file", path="plan.txt"),
        call("directory_list", path="."),
        reply("The plan is fine."),
    )

    with agent(work, model) as one:
        result = one.turn("What does plan.txt say?")

    assert "Not done: read_file plan.txt" in result.text
    assert result.ended == "stopped"
    # What is not there is not made up.
    assert "reply" not in model.grammars[2]
    assert "write_file" not in model.grammars[2]


def test_a_refusal_that_nothing_made_up_for_is_one_of_the_turn(work: Path) -> None:
    bad = call("write_file", path="readme.md", content="milk")
    model = ScriptedSmall("task", bad, *[reply("Done.")] * 3)

    with agent(work, model) as one:
        result = one.turn("Create todo.md with the word milk")

    assert "does not name readme.md" in result.text
    assert result.refused


def test_a_text_that_is_nowhere_is_looked_for_word_by_word(work: Path) -> None:
    model = ScriptedSmall(
        "task", call("search_files", text="my small boat"), reply("In notes/june.txt.")
    )

    with agent(work, model) as one:
        result = one.turn("Where do I speak of my small boat?")

    shown = model.asked[2][-1][1]
    assert "'my small boat' as a whole is nowhere. Some of its words:" in shown
    assert "notes/june.txt:1: boat" in shown
    assert result.text == "In notes/june.txt."


def test_nothing_is_worked_out_where_there_are_no_numbers_yet(work: Path) -> None:
    model = ScriptedSmall(
        "task",
        call("system_info"),
        call("write_file", path="load7.txt", content="high"),
        reply("Written."),
    )

    with agent(work, model) as one:
        one.turn("Put the average load into load7.txt")

    assert "calculate" not in model.grammars[1]
    assert "calculate" in model.grammars[2]


def test_files_that_are_named_come_before_what_is_worked_out_or_measured(work: Path) -> None:
    model = ScriptedSmall(call("read_file", path="list.csv"), reply("3."))

    with agent(work, model) as one:
        one.turn("Add 1 to the second number in list.csv")

    assert "calculate" not in model.grammars[0]
    assert "system_info" not in model.grammars[0]
    assert "calculate" in model.grammars[1]


def test_a_tool_that_failed_twice_is_not_offered_for_a_third_try(work: Path) -> None:
    model = ScriptedSmall(
        call("patch", path="readme.md", old="no such words", new="x"),
        call("patch", path="readme.md", old="nor these words", new="x"),
        call("read_file", path="readme.md"),
        reply("It is not there."),
    )

    with agent(work, model) as one:
        result = one.turn("Replace the missing words in readme.md by x")

    assert "patch" in model.grammars[1]
    assert "patch" not in model.grammars[2]
    assert "patch" in model.grammars[3]
    assert "Not done: patch readme.md" in result.text


def test_an_edit_is_not_taken_back(work: Path) -> None:
    model = ScriptedSmall(
        call("patch", path="readme.md", old="teh", new="the"),
        call("patch", path="readme.md", old="the", new="teh"),
        reply("Fixed."),
    )

    with agent(work, model) as one:
        result = one.turn("readme.md says teh, it must say the")

    assert "would undo" in model.asked[2][-1][1]
    assert (work / "readme.md").read_text() == FILES["readme.md"].replace("teh", "the")
    assert result.text == "Fixed.\n\nChanged: readme.md"


def test_another_file_does_not_stand_in_for_the_one_that_was_named(work: Path) -> None:
    model = ScriptedSmall(
        "task",
        call("read_file", path="plan.txt"),
        call("read_file", path="notes/june.txt"),
        reply("A boat."),
    )

    with agent(work, model) as one:
        result = one.turn("What does plan.txt say?")

    assert "Not done: read_file plan.txt: plan.txt is not there" in result.text
    assert result.ended == "stopped"


def test_the_same_name_in_another_folder_does(work: Path) -> None:
    model = ScriptedSmall(
        call("read_file", path="june.txt"),
        call("read_file", path="notes/june.txt"),
        reply("A boat."),
    )

    with agent(work, model) as one:
        result = one.turn("What does june.txt say?")

    assert result.text == "A boat."
    assert result.ended == "answered"


def test_a_file_that_lies_here_does_not_stand_in_for_a_program(work: Path) -> None:
    (work / "git").write_text("touch taken\n")
    model = ScriptedSmall("task", call("terminal", command="git status"), reply("Clean."))
    with agent(work, model) as one:
        one.turn("What does git status say here?")
    assert "taken" not in contents(work)


def test_a_text_is_not_run_as_a_script(work: Path) -> None:
    (work / "orders.txt").write_text("touch taken\n")
    model = ScriptedSmall(call("terminal", command="orders.txt"), reply("Done."))
    with agent(work, model) as one:
        one.turn("Show orders.txt")
    assert "taken" not in contents(work)


def test_a_full_stop_may_be_what_something_is_replaced_by(work: Path) -> None:
    (work / "prices.csv").write_text("milk;1,50\n")
    model = ScriptedSmall(
        call("read_file", path="prices.csv"),
        call("patch", path="prices.csv", old=",", new="."),
        reply("Done."),
    )
    with agent(work, model) as one:
        one.turn('Replace every "," by "." in prices.csv')
    assert contents(work)["prices.csv"] == "milk;1.50\n"
