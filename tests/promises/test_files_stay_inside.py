"""S-11 and S-12 through the file tools themselves: no name, link or archive leads out."""

from __future__ import annotations

import io
import json
import os
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.core import ToolCall, ToolOutcome
from hermes.runtime.app import App

CANARY = "c4n4ry"


class Person:
    """A home with a key in it, a workspace below it, and the tools of Hermes."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.key = home / ".ssh" / "id_ed25519"
        self.key.parent.mkdir(parents=True)
        self.key.write_text(f"{CANARY}\n")
        self.work = home / "work"
        self.work.mkdir()
        (home / "work-evil").mkdir()
        (home / "work-evil" / "x.txt").write_text("outside\n")
        self.app: App

    def call(self, tool: str, **arguments: Any) -> ToolOutcome:
        return self.app.runtime.call_sync(ToolCall(tool, arguments))


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Person]:
    home = tmp_path / "person"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "hermes"))
    made = Person(home)
    monkeypatch.chdir(made.work)
    made.app = App()
    yield made
    made.app.close()


def calls_on(path: str) -> list[tuple[str, dict[str, Any]]]:
    patch = f"*** Begin Patch\n*** Update File: {path}\n@@\n-{CANARY}\n+x\n*** End Patch\n"
    return [
        ("read_file", {"path": path}),
        ("write_file", {"path": path, "content": "x"}),
        ("patch", {"path": path, "old_string": CANARY, "new_string": "x"}),
        ("patch", {"mode": "patch", "patch": patch}),
        ("search_files", {"pattern": CANARY, "path": path}),
        ("directory_list", {"path": path}),
        ("file_diff", {"path": path, "text": "x"}),
        ("file_compress", {"action": "create", "archive": "out.zip", "sources": [path]}),
        ("file_watch", {"action": "wait", "path": path, "timeout": 0.1}),
    ]


@pytest.mark.parametrize(
    "spelling",
    [
        "notes.txt",
        "folder/id_ed25519",
        "~/.ssh/id_ed25519",
        "../.ssh/id_ed25519",
        "./a/../notes.txt",
    ],
)
def test_s11_a_guarded_place_is_out_of_reach_of_every_tool(person: Person, spelling: str) -> None:
    (person.work / "notes.txt").symlink_to(person.key)
    (person.work / "folder").symlink_to(person.key.parent)

    for tool, arguments in calls_on(spelling):
        outcome = person.call(tool, **arguments)

        assert outcome.status in ("refused", "error"), (tool, outcome)
        assert CANARY not in outcome.content.replace(json.dumps(arguments), "")
    assert person.key.read_text() == f"{CANARY}\n"
    assert not (person.work / "out.zip").exists()


def test_s11_searching_from_above_shows_nothing_of_a_guarded_place(person: Person) -> None:
    (person.home / "plain.txt").write_text(f"{CANARY} in the open\n")

    found = person.call("search_files", pattern=CANARY, path="..", hidden=True, ignored=True)
    counted = person.call(
        "search_files", pattern=CANARY, path="..", hidden=True, ignored=True, output="count"
    )

    assert "in the open" in found.content
    assert ".ssh" not in found.content
    assert json.loads(counted.content)["total_matches"] == 1


def test_s11_a_sibling_with_the_name_as_its_beginning_is_outside(person: Person) -> None:
    for tool, arguments in (
        ("write_file", {"path": "../work-evil/x.txt", "content": "y"}),
        ("patch", {"path": "../work-evil/x.txt", "old_string": "outside", "new_string": "y"}),
        ("file_compress", {"action": "create", "archive": "../work-evil/o.zip", "sources": ["."]}),
    ):
        assert person.call(tool, **arguments).status == "refused", tool
    assert (person.home / "work-evil" / "x.txt").read_text() == "outside\n"


@pytest.mark.parametrize("name", ["a\0b", "../../../../etc/hermes-x", "..\\..\\x", "/etc/hermes-x"])
def test_s12_names_that_lead_out_are_refused(person: Person, name: str) -> None:
    for tool, arguments in (
        ("write_file", {"path": name, "content": "x"}),
        ("file_compress", {"action": "extract", "archive": "a.zip", "target": name}),
    ):
        with zipfile.ZipFile(person.work / "a.zip", "w") as archive:
            archive.writestr("x", "x")

        assert person.call(tool, **arguments).status in ("refused", "error"), tool
    assert not os.path.exists("/etc/hermes-x")


def _tar(path: Path, *members: tarfile.TarInfo) -> None:
    with tarfile.open(path, "w") as archive:
        for member in members:
            archive.addfile(member, io.BytesIO(b"x" * member.size))


def _member(name: str, kind: bytes = tarfile.REGTYPE, **fields: Any) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type = kind
    for field, value in fields.items():
        setattr(member, field, value)
    return member


@pytest.mark.parametrize(
    "members",
    [
        [_member("../out.txt", size=1)],
        [_member("/tmp/hermes-out.txt", size=1)],
        [_member("link", tarfile.SYMTYPE, linkname="../.."), _member("link/out.txt", size=1)],
        [_member("hard", tarfile.LNKTYPE, linkname="../../.ssh/id_ed25519")],
        [_member("device", tarfile.CHRTYPE, devmajor=1, devminor=5)],
        [_member("pipe", tarfile.FIFOTYPE)],
    ],
)
def test_s12_hostile_archives_leave_nothing(person: Person, members: Any) -> None:
    _tar(person.work / "bad.tar", _member("good.txt", size=1), *members)

    outcome = person.call("file_compress", action="extract", archive="bad.tar", target="out")

    assert outcome.status == "error", outcome
    assert sorted(os.listdir(person.work)) == ["bad.tar"]
    assert sorted(os.listdir(person.home)) == [".ssh", "work", "work-evil"]
    assert not os.path.exists("/tmp/hermes-out.txt")
