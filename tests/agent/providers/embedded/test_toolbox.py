"""The short list of tools: what the real ones answer, in words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.agent.providers.embedded.toolbox import MOST, TOOLS, cut, offered
from hermes.core.entry import ToolCall
from hermes.core.registry import ToolRegistry
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
        call = ToolCall(tool.real, tool.call(given), id=name)
        outcome = self.runtime.call_sync(call, self.runtime.context("t", session_id="s"))
        data = json.loads(outcome.content)
        return str(data["error"]) if "error" in data else tool.show(data, given)


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

    assert set(offered(names)) == set(BY_NAME)
    assert not offered([])


def test_lists_are_counted(use: Workshop) -> None:
    shown = use("directory_list", path=".")

    assert shown.startswith("2 files (")
    assert "1 .py" in shown
    assert "1 .txt" in shown
    assert "1 folder" in shown


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


def test_edits_show_what_changed(use: Workshop) -> None:
    assert use("patch", path="a.txt", old="two", new="2") == "a.txt was changed:\n-one two\n+one 2"


def test_numbers_are_worked_out(use: Workshop) -> None:
    assert use("calculate", expression="487 * 36") == "17532"
    assert use("calculate", expression="2^10") == "1024"
    assert use("calculate", expression="average(12, 18, 33)") == "21.0"
    assert use("calculate", expression="sum(1, 2, 3) + max(4, 5)") == "11"
    assert "failed" in use("calculate", expression="1 / 0")


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
    assert "s.zip was made" in use("file_compress", source="sub", archive="s.zip")
    assert "1 file unpacked into out" in use("file_extract", archive="s.zip", folder="out")


def test_long_texts_lose_their_middle() -> None:
    short = cut("x" * 10_000)

    assert len(short) < MOST + 100
    assert "7600 characters left out" in short
