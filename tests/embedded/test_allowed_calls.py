"""What may stand where: names that the request gives."""

from __future__ import annotations

import pytest

from hermes.embedded.checks import destinations, signatures
from hermes.embedded.file_guard import NamedFiles
from hermes.embedded.task import Task
from hermes.embedded.tools import TOOLS

FILES = ["report.pdf", "archive/old.pdf", "notes/june.txt"]


@pytest.mark.parametrize(
    ("request_text", "wanted"),
    [
        ("Move report.pdf into the archive folder", ["archive"]),
        ("Rename report.pdf to final.pdf", ["final.pdf"]),
        ("Rename june.txt to july.txt", ["july.txt", "notes/july.txt"]),
        ("Copy report.pdf to archive as new.pdf", ["new.pdf", "archive", "archive/new.pdf"]),
        ("Move old.pdf out of archive", ["archive", "."]),
        ("Replace report.pdf by june.txt", ["report.pdf", "june.txt"]),
        ("Move report.pdf to a folder that I will need", []),
    ],
)
def test_a_file_goes_where_the_request_says(request_text: str, wanted: list[str]) -> None:
    task = task_of(request_text)

    assert destinations(task) == wanted
    assert signatures(task)["move_file"]["to"] == (wanted or "string")


def test_a_folder_may_have_any_name() -> None:
    assert signatures(task_of("Make a folder"))["make_folder"] == {"path": "string"}


def task_of(text: str) -> Task:
    return Task(text, NamedFiles(text, FILES), FILES, {tool.name: tool for tool in TOOLS})
