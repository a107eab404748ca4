"""The parts of the chat that need no terminal: mentions, completion, commands, history, questions."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import hermes.interfaces.chat.history as history
from hermes.core.context import ApprovalRequest
from hermes.interfaces.chat.mentions import mention_of, mentioned, missing
from hermes.interfaces.chat.slash_commands import command_in, completions, nearest
from hermes.interfaces.chat.view import Call, expanded, finished_lines
from hermes.interfaces.cli.approval_prompt import Question, QuestionQueue
from hermes.interfaces.cli.terminal import columns


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see @a.txt", ["a.txt"]),
        ("see @a.txt.", ["a.txt"]),
        ("(@a.txt), or @a.txt?", ["a.txt"]),
        ('@"b c.txt" and @b\\ c.txt', ["b c.txt"]),
        ("mail me@a.txt", []),
        ("@missing.txt @folder @", []),
        ("@./a.txt @folder/d.md", ["./a.txt", "folder/d.md"]),
        ("@\x00 @" + "x" * 5000, []),
    ],
)
def test_files_that_are_there_are_mentioned(tmp_path: Path, text: str, found: list[str]) -> None:
    (tmp_path / "a.txt").touch()
    (tmp_path / "b c.txt").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "d.md").touch()

    assert mentioned(text, str(tmp_path)) == found


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("see @a.txt and @notse.txt.", ["@notse.txt is not there"]),
        ('see @"my notse"', ["@my notse is not there"]),
        ("see @src/x.py, @src/", ["@src/x.py is not there", "@src/ is a folder"]),
        ("me@x.org, @someone: @pytest.fixture @app.route('/x') @", []),
    ],
)
def test_a_file_that_is_mentioned_and_not_there_is_told_of(
    tmp_path: Path, text: str, told: list[str]
) -> None:
    (tmp_path / "a.txt").touch()
    (tmp_path / "src").mkdir()

    assert [line.partition(":")[0] for line in missing(text, str(tmp_path))] == told


def test_a_pasted_path_of_a_picture_becomes_a_mention(tmp_path: Path) -> None:
    (tmp_path / "a.png").touch()
    (tmp_path / "b c.JPG").touch()
    (tmp_path / "d.txt").touch()

    assert mention_of(f"{tmp_path}/a.png\n") == f"@{tmp_path}/a.png"
    assert mention_of(f"file://{tmp_path}/b%20c.JPG") == f'@"{tmp_path}/b c.JPG"'
    assert mention_of(f"'{tmp_path}/b c.JPG'") == f'@"{tmp_path}/b c.JPG"'
    for other in (f"{tmp_path}/d.txt", f"{tmp_path}/no.png", "a.png is nice", "", "x\ny.png"):
        assert mention_of(other) == ""


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("/help", ("help", "")),
        ("/TOOLS show x", ("tools", "show x")),
        ("/q", ("quit", "")),
        ("/background a\nb", ("background", "a\nb")),
        ("/etc/hosts", None),
        ("/", None),
        ("// a comment", None),
        (" /help", None),
        ("what about /help", None),
    ],
)
def test_a_line_is_a_command_or_a_message(line: str, command: tuple[str, str] | None) -> None:
    assert command_in(line) == command


def test_the_nearest_command_is_found() -> None:
    assert nearest("tols") == "tools"
    assert nearest("sess") == "sessions"
    assert nearest("exti") == "quit"
    assert nearest("zzzzzz") == ""


def test_half_a_word_is_completed(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "one two.py").touch()
    (tmp_path / ".hidden").touch()

    def found(before: str) -> list[str]:
        arguments = {"resume": lambda: [("id-1", "a title"), ("other", "")]}
        return [half.text for half in completions(before, str(tmp_path), arguments)]

    assert found("/to") == ["/tools", "/toolsets"]
    assert found("/resume i") == ["id-1"]
    assert found("look at @s") == ["src/"]
    assert found("look at @src/o") == ['"src/one two.py"']
    assert found("@.") == [".hidden"]
    assert found("mail me@s") == []
    assert found("@/nowhere/x") == []


def test_what_was_typed_comes_back_line_ends_and_all() -> None:
    history.append("one\ntwo")
    history.append("half \ud800 of a pair")
    with open(history.history_path(), "ab") as file:
        file.write(b"no json\n\xff\xfe\n")
    history.append("last")

    assert history.load() == ["one\ntwo", "half ? of a pair", "last"]
    assert os.stat(history.history_path()).st_mode & 0o777 == 0o600


def test_history_does_not_grow_without_end() -> None:
    for number in range(60):
        history.append(f"{number} " + "x" * 50_000)

    assert os.path.getsize(history.history_path()) < 3_000_000
    assert history.load()[-1].startswith("59 ")


class Asked:
    """Takes note of what is being asked."""

    def __init__(self) -> None:
        self.seen: list[Question | None] = []
        self.questions = QuestionQueue(self.seen.append, lambda _: {"timeout": 180})


async def until(there: Callable[[], bool]) -> None:
    for _ in range(1_000):
        if there():
            return
        await asyncio.sleep(0.01)


def request(**arguments: object) -> ApprovalRequest:
    return ApprovalRequest("terminal", arguments, reason="it deletes", rule="delete.all")


def test_one_question_at_a_time_and_each_has_its_own_answer() -> None:
    asked = Asked()

    async def both() -> list[str | None]:
        work = asyncio.gather(
            asked.questions.approve(request(command="a")),
            asked.questions.approve(request(command="b")),
        )
        await until(lambda: bool(asked.seen))
        first = asked.seen[0]
        assert asked.questions.reply("perhaps", first).startswith("that is no answer")
        asked.questions.reply("s", first)
        await until(lambda: asked.seen[-1] is not asked.seen[0])
        assert asked.questions.reply("y", first) == "nothing is being asked"
        asked.questions.reply("", asked.seen[-1])
        return list(await work)

    assert asyncio.run(both()) == ["session", "deny"]
    assert asked.seen[-1] is None


def test_a_call_that_is_stopped_is_not_asked_about_any_more() -> None:
    asked = Asked()

    async def stopped() -> None:
        work = asyncio.ensure_future(asked.questions.approve(request(command="a")))
        await until(lambda: bool(asked.seen))
        work.cancel()
        await asyncio.wait([work])

    asyncio.run(stopped())

    assert asked.questions.current is None
    assert asked.questions.reply("y", asked.seen[0]) != "→ yes, this once"


def test_a_question_of_the_agent_waits_for_words() -> None:
    asked = Asked()
    answers: list[str | None] = []
    waiting = threading.Thread(
        target=lambda: answers.append(asked.questions.ask_person("which?", ["a"]))
    )
    waiting.start()
    while asked.questions.current is None:
        waiting.join(0.01)

    asked.questions.reply("the other one", asked.questions.current)
    waiting.join()

    assert answers == ["the other one"]


def test_what_is_asked_shows_what_is_unusual_and_hides_nothing_in_it() -> None:
    asked = Asked()

    async def ask() -> None:
        unusual = {"command": "rm \x1b[2K \u202e x", "timeout": 180, "env": None}
        work = asyncio.ensure_future(asked.questions.approve(request(**unusual)))
        await until(lambda: bool(asked.seen))
        asked.questions.refuse()
        await work

    asyncio.run(ask())

    assert asked.seen[0] is not None
    shown = "\n".join(asked.seen[0].lines)
    assert "\\u202e" in shown
    assert "timeout" not in shown
    assert "env" not in shown


@pytest.mark.parametrize("width", [10, 40, 80])
def test_a_call_is_one_line_that_fits(width: int) -> None:
    from hermes.core.entry import ToolOutcome

    call = Call(3, "terminal", "💻", "a very long command\nwith 中文 " * 20)
    call.outcome = ToolOutcome("c1", "terminal", '{"output": "x\\u001b[31m\\ny"}', seconds=75.0)

    (line,) = finished_lines(call, call.outcome, width)

    assert columns(line.replace("\x1b[32m", "").replace("\x1b[0m", "")) < width
    assert all("\x1b[31m" not in line for line in expanded(call, width))
