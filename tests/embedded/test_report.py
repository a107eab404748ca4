"""The last words of a turn, and how far a download is."""

from __future__ import annotations

import io

import pytest

from hermes.embedded.download import DownloadProgress
from hermes.embedded.file_guard import FileChange
from hermes.embedded.task import claims, report


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_an_answer_alone_stays_as_it_is() -> None:
    assert report(" It has 3 lines. ", []) == "It has 3 lines."


def test_what_was_done_comes_after_it() -> None:
    done = [
        FileChange("b.txt", "deleted"),
        FileChange("a.txt", "made"),
        FileChange("c.txt", "made"),
    ]

    assert report("Done.", done) == "Done.\n\nMade: a.txt, c.txt\nDeleted: b.txt"


def test_many_files_are_counted() -> None:
    text = report("", [FileChange(f"{n}.txt", "changed") for n in range(40)])

    assert text.startswith("Changed: 0.txt, 1.txt")
    assert text.endswith("and 28 more")


def test_what_did_not_work_is_said() -> None:
    assert (
        report("Sorry.", [], failed=["patch: not found"]) == "Not done: patch: not found\n\nSorry."
    )


def test_an_empty_claim_is_answered() -> None:
    assert report("I saved it.", []).endswith("No file was changed.")
    assert "No file" not in report("I saved it.", [FileChange("a", "made")])


@pytest.mark.parametrize(
    "reply",
    [
        "I have created todo.md for you.",
        "I've just saved it.",
        "todo.md was successfully updated.",
        "It's now written to todo.md.",
        "Done. Moved a.txt to b.txt.",
        "No problem. The word has been replaced.",
    ],
)
def test_words_for_something_done_are_a_claim(reply: str) -> None:
    assert claims(reply)


@pytest.mark.parametrize(
    "reply",
    [
        "The most recently changed file is a.txt.",
        "No file was changed.",
        "The word could not be replaced.",
        "The text speaks of a garden made of stone.",
        "It has 3 added lines.",
    ],
)
def test_other_words_are_none(reply: str) -> None:
    assert not claims(reply)


def test_elsewhere_than_on_a_terminal_there_are_few_lines() -> None:
    stream = io.StringIO()
    tell = DownloadProgress(stream)

    for count in range(1000):
        tell("fetching the model", count, 1000)
    tell.end()

    lines = stream.getvalue().splitlines()
    assert len(lines) == 2
    assert "hermes setup" in lines[0]
    assert "\x1b" not in stream.getvalue()


def test_on_a_terminal_there_is_a_bar_that_goes_away() -> None:
    stream = Screen()
    tell = DownloadProgress(stream)

    tell("fetching the model", 500_000_000, 1_000_000_000)
    tell.end()

    assert "[############------------]" in stream.getvalue()
    assert " 50% of 1.0 GB" in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[K")


def test_nothing_to_fetch_is_nothing_to_say() -> None:
    stream = Screen()

    DownloadProgress(stream).end()

    assert stream.getvalue() == ""
