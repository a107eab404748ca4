"""`hermes trace`: a real run, drawn as a tree that fits a narrow window."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import CommandLine

from hermes.testing import Call, ScriptedModel, Turn


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    script: list[Any] = [
        Turn(
            calls=[
                Call("read_file", {"path": "a.txt"}),
                Call("read_file", {"path": "a-file-with-a-rather-long-name-that-is-not-there.txt"}),
            ],
            usage={"input": 1000, "output": 10},
        ),
        Turn(calls=[Call("delegate_task", {"goal": "look"})], usage={"input": 1, "output": 1}),
        Turn("looked", usage={"input": 2, "output": 2}),
        Turn("done", usage={"input": 3, "output": 3}),
    ]
    with ScriptedModel(script) as model:
        yield model


@pytest.fixture
def ran(hermes: CommandLine, model: ScriptedModel, tmp_path: Path) -> CommandLine:
    (tmp_path / "a.txt").write_text("text\n")
    env = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "none"}
    done = hermes("run", "--model", "openai/gpt-4o", "go", env=env, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return hermes


def test_a_run_is_one_trace_with_everything_in_its_place(ran: CommandLine) -> None:
    (summary,) = json.loads(ran("trace", "list", "--json").stdout)
    assert summary["model_calls"] == 4
    assert summary["tool_calls"] == 3
    assert summary["agents"] == 1
    assert (summary["input_tokens"], summary["output_tokens"]) == (1006, 16)
    assert (summary["errors"], summary["open"]) == (1, 0)

    (shown,) = json.loads(ran("trace", "show", summary["session"], "--json").stdout)
    by_id = {span["span_id"]: span for span in shown["tree"]}

    def path(span: dict[str, Any]) -> list[str]:
        above = by_id.get(span["parent_span_id"])
        kind = span["attributes"]["hermes.kind"]
        return [*(path(above) if above else []), kind]

    paths = sorted({"/".join(path(span)) for span in shown["tree"]})
    assert paths == [
        "session",
        "session/turn",
        "session/turn/chat",
        "session/turn/tool",
        "session/turn/tool/agent",
        "session/turn/tool/agent/chat",
    ]


def test_the_tree_fits_forty_columns(ran: CommandLine) -> None:
    shown = ran("trace", "show", env={"COLUMNS": "40"})
    assert shown.returncode == 0
    lines = shown.stdout.splitlines()
    assert max(map(len, lines)) <= 40
    assert any(line.lstrip().startswith("├ ✗ read_file") for line in lines)
    assert any("agent root/1" in line for line in lines)
    assert max(map(len, ran("trace", env={"COLUMNS": "40"}).stdout.splitlines())) <= 40


def test_without_traces_it_says_so(hermes: CommandLine) -> None:
    assert "no traces" in hermes("trace").stderr
    nothing = hermes("trace", "show", "x")
    assert (nothing.returncode, len(nothing.stderr.splitlines())) == (1, 1)


def test_turned_off_it_says_so(hermes: CommandLine) -> None:
    hermes("config", "set", "trace.enabled", "false")
    hermes("call", "system_info")
    assert "turned off" in hermes("trace").stderr
