"""The short list of tools: what the real ones answer, in words."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.core.entry import ToolCall
from hermes.core.registry import ToolRegistry
from hermes.embedded.tools import TOOLS, adjusted, available_tools, with_disk_facts
from hermes.runtime.app import App

BY_NAME = {tool.name: tool for tool in TOOLS}


class Workshop:
    """Uses a small tool as the conversation does."""

    def __init__(self, work: Path) -> None:
        self.work = work
        self.runtime = App(ToolRegistry(), project=str(work)).runtime
        self.runtime.task("t", workspace=str(work))

    def __call__(self, name: str, **given: Any) -> str:
        tool = BY_NAME[name]
        context = self.runtime.context("t", session_id="s")
        given = adjusted(context, tool, given)
        call = ToolCall(tool.real, tool.call(given), id=name)
        data = json.loads(self.runtime.call_sync(call, context).content)
        if tool.after is not None:
            more = ToolCall(tool.real, tool.after(given), id="after")
            data |= json.loads(self.runtime.call_sync(more, self.runtime.context("t")).content)
        data = with_disk_facts(context, tool, given, data)
        return str(data["error"]) if "error" in data else tool.show(data, given, "")


@pytest.fixture
def use(tmp_path: Path) -> Iterator[Workshop]:
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    (work / "a.txt").write_text("one two\nthree")
    (work / "sub" / "b.py").write_text("x = 1\n")
    made = Workshop(work)
    yield made
    made.runtime.close_task("t")


def test_every_tool_of_the_list_is_a_real_one(use: Workshop) -> None:
    names = {entry.name for entry in App(ToolRegistry(), project=str(use.work)).registry.entries()}

    assert set(available_tools(names)) == set(BY_NAME)
    assert not available_tools([])


def test_lists_are_counted(use: Workshop) -> None:
    os.utime(use.work / "sub" / "b.py", (0, time.mktime((2024, 5, 6, 7, 8, 0, 0, 0, -1))))
    os.utime(use.work / "a.txt", (0, time.mktime((2023, 1, 2, 3, 4, 0, 0, 0, -1))))

    shown = use("directory_list", path=".")

    assert shown == (
        "2 files, 1 folder: sub/\n1 .py: sub/b.py\n1 .txt: a.txt\n"
        "(The largest: a.txt 13B, sub/b.py 6B)\n"
        "(The newest, changed last: sub/b.py 2024-05-06 07:08, a.txt 2023-01-02 03:04)"
    )
    assert use("directory_list", path="sub") == "1 file, 0 folders\n1 .py: b.py"


def test_of_more_files_than_are_listed_only_those_are_compared(use: Workshop) -> None:
    for number in range(410):
        (use.work / f"{number}.txt").touch()

    shown = use("directory_list", path=".")

    assert shown.startswith("412 files")
    assert "(The largest of the first 399 files: " in shown
    assert "(The newest of the first 399 files, changed last: " in shown


def test_files_are_shown_without_numbers_and_counted_after(use: Workshop) -> None:
    assert use("read_file", path="a.txt") == "one two\nthree\n\n(a.txt has 2 lines, 3 words.)"


def test_searches_are_plain_text_in_any_case_and_counted(use: Workshop) -> None:
    (use.work / "c.txt").write_text("f(x) = One.\n")

    assert "(Found 2 times in 2 files.)" in use("search_files", text="ONE")
    assert "c.txt" in use("search_files", text="f(x)")
    assert use("search_files", text="nowhere") == "No file contains 'nowhere'."


def test_text_is_written_with_its_last_line_ended(use: Workshop) -> None:
    assert use("write_file", path="n.txt", content="hi") == "n.txt was made, 1 line."
    assert (use.work / "n.txt").read_text() == "hi\n"


@pytest.mark.parametrize("text", ["it's 'so'", '$HOME `id` "x" \\n', "two\nlines", "-n", "ü€"])
def test_text_is_added_as_it_is_on_a_line_of_its_own(use: Workshop, text: str) -> None:
    use("append_file", path="a.txt", content=text)

    assert (use.work / "a.txt").read_text() == f"one two\nthree\n{text}\n"


def test_text_is_added_through_a_link_and_to_nothing_but_a_file(use: Workshop) -> None:
    (use.work / "link.txt").symlink_to("a.txt")

    use("append_file", path="link.txt", content="four")

    assert (use.work / "a.txt").read_text() == "one two\nthree\nfour\n"
    assert "failed" in use("append_file", path="sub", content="four")


def test_edits_show_what_changed(use: Workshop) -> None:
    assert use("patch", path="a.txt", old="two", new="2") == "a.txt was changed:\n-one two\n+one 2"


def test_an_edit_gets_no_full_stop_of_its_own(use: Workshop) -> None:
    use("patch", path="a.txt", old="one two", new="one 2.")
    use("patch", path="a.txt", old="three", new="three.")

    assert (use.work / "a.txt").read_text() == "one 2\nthree."


def test_numbers_are_worked_out(use: Workshop) -> None:
    assert use("calculate", expression="487 * 36") == "17532"
    assert use("calculate", expression="2^10") == "1024"
    assert use("calculate", expression="average(12, 18, 33)") == "21"
    assert use("calculate", expression="sum(1, 2, 3) + max(4, 5)") == "11"
    assert use("calculate", expression="15% * 2480") == "372"
    assert use("calculate", expression="2480 * 2.5%") == "62"
    assert use("calculate", expression="17 % 5") == "2"
    assert use("calculate", expression="factorial(12)") == "479001600"
    assert "can't be worked out: ZeroDivisionError" in use("calculate", expression="1 / 0")


def test_lines_are_counted_with_a_last_one_that_has_no_end(use: Workshop) -> None:
    (use.work / "it's odd.csv").write_text("name,age\nAda,36\nBob,41\n")

    assert use("count_lines", paths=["a.txt"]) == "a.txt: 2 lines, 3 words"
    some = use("count_lines", paths=["sub/b.py", "it's odd.csv", "sub/b.py"])
    assert some == (
        "sub/b.py: 1 line, 3 words\n"
        "it's odd.csv: 3 lines, 3 words; the first line is a heading, 2 rows follow\n"
        "All 2 files together: 4 lines.\n"
        "The most in it's odd.csv, the fewest in sub/b.py."
    )
    (use.work / "c.py").write_text("y = 2\n")
    assert "d.py: No such file" in use("count_lines", paths=["c.py", "d.py"])
    same = use("count_lines", paths=["sub/b.py", "c.py"])
    assert "All 2 .py files together: 2 lines.\nAll have as many lines." in same


def test_commands_say_how_they_ended(use: Workshop) -> None:
    assert use("terminal", command="echo hi") == "hi"
    assert use("terminal", command="true") == "(It printed nothing.)"
    assert "(It failed with exit code 3.)" in use("terminal", command="echo no; exit 3")


def test_the_machine_is_measured_in_words(use: Workshop) -> None:
    shown = use("system_info")

    assert "load average" in shown
    assert "GB free" in shown
    assert "None" not in shown


def test_folders_are_packed_and_unpacked(use: Workshop) -> None:
    (use.work / "sub" / "deeper").mkdir()
    (use.work / "sub" / "deeper" / "c.txt").write_text("c\n")

    shown = use("file_compress", sources=["sub", "a.txt"], archive="s.zip")

    assert "s.zip was made from sub, a.txt" in shown
    assert "It holds 3 files." in shown
    assert "3 files unpacked into out" in use("file_extract", archive="s.zip", folder="out")
