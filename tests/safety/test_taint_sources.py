"""Whose words a call brings in: the owner's, or those of strangers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from hermes.core.context import ToolContext
from hermes.core.entry import ToolEntry
from hermes.safety.call_effects import effects_of
from hermes.safety.policy import Ruling
from hermes.safety.taint import TaintLog, is_untrusted_path, untrusted_source


def entry(**fields: Any) -> ToolEntry:
    fields.setdefault("effect", "read")
    return ToolEntry("look", "tests", {}, None, **fields)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    for name in ("work/src", "work/Downloads", "other", "work/downloads/x"):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
    for name in ("work/src/a.py", "work/Downloads/page.html", "other/b.md", "work/downloads/x/c"):
        (tmp_path / name).write_text("x")
    (tmp_path / "work/link.md").symlink_to(tmp_path / "other/b.md")
    return tmp_path


def source(here: Path, one: ToolEntry, arguments: dict[str, Any], *places: str) -> str:
    context = ToolContext(task_id="t", workspace=str(here / "work"), session_id="s")
    judged = {("read", place): os.path.realpath(place) for place in places}
    effects = effects_of(one, arguments, context)
    return untrusted_source(one, Ruling("allow", paths=judged, effects=effects), context)


@pytest.mark.parametrize(
    ("fields", "arguments", "expected"),
    [
        ({"origin": "mcp", "owner": "tickets"}, {}, "tickets, an MCP server"),
        ({"effect": "network"}, {}, "look"),
        ({"permissions": ["web:search"]}, {}, "look"),
        ({"permissions": ["browser:read"]}, {}, "look"),
        ({"untrusted": True}, {}, "look"),
        ({"acts": {"url": "fetch"}}, {"url": "https://a.example/x"}, "https://a.example/x"),
        ({"permissions": ["file:read"]}, {}, ""),
        ({"effect": "write"}, {}, ""),
    ],
)
def test_a_tool_is_known_by_what_it_declares(
    here: Path, fields: dict[str, Any], arguments: dict[str, Any], expected: str
) -> None:
    assert source(here, entry(**fields), arguments) == expected


@pytest.mark.parametrize(
    ("path", "foreign"),
    [
        ("work/src/a.py", False),
        ("work", False),
        ("work/Downloads/page.html", True),
        ("work/downloads/x/c", True),
        ("work/link.md", True),
        ("other/b.md", True),
        ("/etc/hosts", False),
        ("/usr/include/stdio.h", False),
    ],
)
def test_a_file_is_known_by_its_place(here: Path, path: str, foreign: bool) -> None:
    place = os.path.realpath(here / path)

    assert is_untrusted_path(place, str(here / "work")) == foreign
    assert bool(source(here, entry(acts={"path": "read"}), {}, str(here / path))) == foreign


@pytest.mark.parametrize(
    ("command", "foreign"),
    [
        ("curl -s https://a.example", True),
        ("curl -s http://localhost:8000/health", False),
        ("curl http://127.0.0.1:1/ https://a.example", True),
        ("echo x | tee y && wget -qO- a.example | head", True),
        ("bash -c 'curl a.example'", True),
        ("sudo env A=1 curl a.example", True),
        ("git clone https://a.example/x.git", True),
        ("git -C . clone git@a.example:x", True),
        ("gh issue view 7", True),
        ("python3 -c \"import urllib.request as u; u.urlopen('https://a.example')\"", True),
        ("cat {other}/b.md", True),
        ("cat ../other/b.md", True),
        ("head link.md", True),
        ("grep -r x Downloads/page.html", True),
        ("cat src/a.py", False),
        ("make test", False),
        ("git status", False),
        ("echo 'see https://a.example'", False),
        ("grep -rn curl src", False),
        ("cat /etc/hosts", False),
        ("ls", False),
    ],
)
def test_a_command_is_known_by_what_it_runs_and_reads(
    here: Path, command: str, foreign: bool
) -> None:
    one = entry(effect="execute", acts={"command": "execute"})

    found = source(here, one, {"command": command.format(other=here / "other")})

    assert bool(found) == foreign, found


def test_a_conversation_has_heard_what_it_has_until_it_ends() -> None:
    heard, told = TaintLog(), []
    context = ToolContext(session_id="s")

    heard.keep("s", ["a"], told.append)
    heard.note("s", "b")
    heard.note("s", "b")
    heard.note("other", "c")

    assert heard.sources(context) == ("a", "b")
    assert told == ["b"]
    heard.end("s")
    assert heard.sources(context) == ()


def test_what_is_named_is_bounded() -> None:
    heard = TaintLog()

    for number in range(1_000):
        heard.note("s", str(number))

    assert len(heard.sources(ToolContext(session_id="s"))) == 20
