"""The audit log: complete, chained, masked, shared by processes, and honest about damage."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

from hermes.core.entry import ToolCall
from hermes.core.registry import ToolRegistry
from hermes.runtime.audit import AuditLog, verify
from hermes.runtime.pipeline import Runtime

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

SCHEMA = {"properties": {"text": {"type": "string"}}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit" / "audit.jsonl"


def call(path: Path, *texts: Any, effect: str = "read") -> list[str]:
    """Make calls as a program would; how each ended."""
    registry = ToolRegistry()
    registry.register("say", "t", SCHEMA, lambda text="": text, effect=effect, origin="plugin")
    with Runtime(registry, audit=AuditLog(str(path))) as runtime:
        return [runtime.call_sync(ToolCall("say", {"text": text})).status for text in texts]


def written(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().rstrip("\n").split("\n")]


def test_every_call_leaves_one_line_in_order(path: Path) -> None:
    call(path, "a", "b", "c")

    lines = written(path)

    assert [line["arguments"]["text"] for line in lines] == ["a", "b", "c"]
    assert {line["status"] for line in lines} == {"ok"}
    assert {line["tool"] for line in lines} == {"say"}
    assert verify(str(path)) == (3, None)


def test_programs_one_after_the_other_go_on_with_one_chain(path: Path) -> None:
    for text in "abc":
        call(path, text)

    assert verify(str(path)) == (3, None)


def test_only_the_owner_may_read_it(path: Path) -> None:
    call(path, "a")

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def _changed(lines: list[str]) -> list[str]:
    return [*lines[:2], lines[2].replace("text2", "other"), *lines[3:]]


TAMPERING: dict[str, Callable[[list[str]], list[str]]] = {
    "a changed argument": _changed,
    "a changed status": lambda lines: [*lines[:2], lines[2].replace('"ok"', '"no"'), *lines[3:]],
    "a removed line": lambda lines: [*lines[:2], *lines[3:]],
    "a removed first line": lambda lines: lines[1:],
    "two lines in the other order": lambda lines: [*lines[:2], lines[3], lines[2], *lines[4:]],
    "a line twice": lambda lines: [*lines[:3], *lines[2:]],
    "a line of one's own": lambda lines: [*lines[:2], '{"hash":"00","tool":"x"}', *lines[2:]],
    "an empty line": lambda lines: [*lines[:2], "", *lines[2:]],
    "a removed last line": lambda lines: lines[:-1],
}


@pytest.mark.parametrize("tamper", TAMPERING.values(), ids=TAMPERING)
def test_tampering_is_seen(path: Path, tamper: Callable[[list[str]], list[str]]) -> None:
    call(path, *(f"text{number}" for number in range(6)))
    lines = path.read_text().rstrip("\n").split("\n")
    path.write_text("".join(f"{line}\n" for line in tamper(lines)))

    holding, problem = verify(str(path))

    assert problem
    assert holding < 6


def test_secrets_in_arguments_are_masked(path: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 3 + "a1B2c3"
    call(path, f"token {secret} here", "password=hunter2hunter2 x", "plain")

    text = path.read_text()

    assert secret not in text
    assert "hunter2hunter2" not in text
    assert written(path)[2]["arguments"] == {"text": "plain"}
    assert verify(str(path)) == (3, None)


@pytest.mark.parametrize(
    "text", ["\n\r\x00\x1b", "\u2028\u0085", "é😀", "\ud800", '"}{', "x" * 100_000, "\\"]
)
def test_any_text_keeps_the_log_one_line_per_call(path: Path, text: str) -> None:
    call(path, text, "after")

    assert len(written(path)) == 2
    assert verify(str(path)) == (2, None)


def test_a_name_that_is_no_proper_text_does_not_stop_the_log(path: Path) -> None:
    registry = ToolRegistry()
    registry.register("say", "t", SCHEMA, lambda text="": text, effect="read")
    with Runtime(registry, audit=AuditLog(str(path))) as runtime:
        runtime.call_sync(ToolCall("say\ud800", {}, id="call\ud800"))
        runtime.call_sync(ToolCall("say", {"text": "after"}))

    assert len(written(path)) == 2


def test_a_refused_call_is_on_disk_at_once(path: Path) -> None:
    registry = ToolRegistry()
    registry.register("say", "t", SCHEMA, lambda text="": text, effect="write", origin="plugin")
    runtime = Runtime(registry, audit=AuditLog(str(path)))

    runtime.call_sync(ToolCall("say", {"text": "a"}))

    assert [line["status"] for line in written(path)] == ["refused"]
    runtime.close()


PROGRAM = """
from hermes.core.entry import ToolCall
from hermes.core.registry import ToolRegistry
from hermes.runtime.audit import AuditLog
from hermes.runtime.pipeline import Runtime
import sys

registry = ToolRegistry()
registry.register("say", "t", {"properties": {"text": {"type": "string"}}},
                  lambda text="": text, effect="read")
runtime = Runtime(registry, audit=AuditLog(sys.argv[1]))
for number in range(int(sys.argv[2])):
    runtime.call_sync(ToolCall("say", {"text": f"{sys.argv[3]} {number}"}))
    if number % 40 == 39:
        runtime.audit.flush()
"""


def start(path: Path, count: int, name: str) -> subprocess.Popen[bytes]:
    program = textwrap.dedent(PROGRAM)
    return subprocess.Popen([sys.executable, "-c", program, str(path), str(count), name])


def test_processes_at_once_keep_one_valid_chain(path: Path) -> None:
    runs = [start(path, 400, name) for name in "abcd"]

    assert [run.wait(60) for run in runs] == [0] * 4
    assert verify(str(path)) == (1600, None)
    for name in "abcd":
        own = [text for line in written(path) if (text := line["arguments"]["text"])[0] == name]
        assert own == [f"{name} {number}" for number in range(400)]


def test_lines_are_complete_after_a_normal_end_without_close(path: Path) -> None:
    assert start(path, 5, "x").wait(60) == 0

    assert verify(str(path)) == (5, None)


def test_a_line_cut_short_by_a_crash_is_seen_and_the_log_goes_on(path: Path) -> None:
    call(path, "a", "b")
    os.truncate(path, path.stat().st_size - 20)

    call(path, "c")

    holding, problem = verify(str(path))
    assert holding == 1
    assert problem
    assert written_last(path)["arguments"] == {"text": "c"}


def written_last(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text().rstrip("\n").split("\n")[-1])
    return found


def test_a_crash_before_the_head_was_noted_is_no_tampering(path: Path) -> None:
    call(path, "a")
    head = path.with_name("audit.jsonl.head").read_bytes()
    call(path, "b")
    path.with_name("audit.jsonl.head").write_bytes(head)

    assert verify(str(path)) == (2, None)


def _rechained(path: Path) -> None:
    path.unlink()
    path.with_name("audit.jsonl.head").rename(path.with_name("kept"))
    call(path, "a", "other", "c")
    path.with_name("kept").rename(path.with_name("audit.jsonl.head"))


BREAKS: dict[str, Callable[[Path], object]] = {
    "deleted": lambda path: path.unlink(),
    "emptied": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(b"".join(path.read_bytes().splitlines(True)[:2])),
    "written anew": _rechained,
}


@pytest.mark.parametrize("damage", BREAKS.values(), ids=BREAKS)
def test_a_break_is_seen_at_once_and_recorded_by_the_next_writer(
    path: Path, damage: Callable[[Path], object]
) -> None:
    call(path, "a", "b", "c")
    assert verify(str(path)) == (3, None)

    damage(path)

    assert verify(str(path))[1]
    call(path, "after")
    call(path, "more")
    _, problem = verify(str(path))
    assert problem is not None
    assert problem.startswith("1 breaks were recorded")


def test_a_log_written_anew_with_its_head_is_noticed_by_the_program_that_wrote_it(
    path: Path,
) -> None:
    registry = ToolRegistry()
    registry.register("say", "t", SCHEMA, lambda text="": text, effect="read", origin="plugin")
    with Runtime(registry, audit=AuditLog(str(path))) as runtime:
        runtime.call_sync(ToolCall("say", {"text": "the truth"}))
        assert runtime.audit is not None
        runtime.audit.flush()
        path.unlink()
        path.with_name("audit.jsonl.head").unlink()
        call(path, "a", "another story")

        runtime.call_sync(ToolCall("say", {"text": "after"}))

    _, problem = verify(str(path))
    assert problem is not None
    assert problem.endswith("the lines that this program wrote are gone")


def test_a_head_without_a_count_is_continued(path: Path) -> None:
    call(path, "a", "b")
    head = path.with_name("audit.jsonl.head")
    head.write_text(head.read_text()[:64])

    call(path, "c")

    assert verify(str(path)) == (3, None)
    assert head.read_text().split()[1:] == ["00000000000000000003", "000000"]


def test_the_head_of_the_default_log_is_in_another_folder(home: Path) -> None:
    call(home / "audit" / "audit.jsonl", "a")

    shutil.rmtree(home / "audit")

    assert verify(str(home / "audit" / "audit.jsonl")) == (0, "the log is missing; it had 1 lines")


def test_a_log_that_can_t_be_written_does_not_break_calls(tmp_path: Path) -> None:
    (tmp_path / "audit").write_text("a file where the folder should be")

    assert call(tmp_path / "audit" / "audit.jsonl", "a") == ["ok"]


FULL = """
import resource, sys
from hermes.core.entry import ToolCall
from hermes.core.registry import ToolRegistry
from hermes.runtime.audit import AuditLog
from hermes.runtime.pipeline import Runtime

def room(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

registry = ToolRegistry()
registry.register("say", "t", {"properties": {"text": {"type": "string"}}},
                  lambda text="": text, effect="read")
runtime = Runtime(registry, audit=AuditLog(sys.argv[1]))

def say(text):
    assert runtime.call_sync(ToolCall("say", {"text": text})).status == "ok"
    runtime.audit.flush()

say("before")
room(int(sys.argv[2]) + __import__("os").stat(sys.argv[1]).st_size)
say("while it is full")
say("while it is still full")
room(resource.RLIM_INFINITY)
say("after")
"""


@pytest.mark.parametrize("room", [0, 1, 100, 300])
def test_a_disk_that_was_full_for_a_while_costs_no_line(path: Path, room: int) -> None:
    subprocess.run([sys.executable, "-c", FULL, str(path), str(room)], check=True, timeout=60)

    texts = [line["arguments"]["text"] for line in written(path)]
    assert texts == ["before", "while it is full", "while it is still full", "after"]
    assert verify(str(path)) == (4, None)
