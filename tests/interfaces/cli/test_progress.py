"""A call that was carried out is not shown as a success when what it did failed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.conftest import CommandLine

from hermes.core.entry import ToolOutcome
from hermes.interfaces.cli.progress import inner_failure
from hermes.testing import Call, ScriptedModel, Turn

FAILED = {"agent": "root/1", "status": "failed", "reason": "no\nsuch key"}
DONE = {"agent": "root/2", "status": "completed", "text": "fine"}


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"exit_code": 2, "stderr": "a\nb \x1b[31mc\n"}, "exit code 2: b [31mc"),
        ({"exit_code": 1, "meaning": "no match", "stderr": "x"}, "exit code 1: no match"),
        ({"exit_code": -9}, "exit code -9"),
        (FAILED, "root/1 failed: such key"),
        ({"results": [DONE, FAILED]}, "root/1 failed: such key"),
        ({"agent": "root/1", "status": "timeout"}, "root/1 timeout"),
        ({"results": [DONE]}, ""),
        ({"agent": "root/3", "status": "running"}, ""),
        ({"agents": [{"handle": "root/1", "status": "failed"}]}, ""),
        ({"exit_code": 0, "stderr": "warning"}, ""),
        ({"exit_code": None}, ""),
        ({"status": "failed"}, ""),
        (["exit_code"], ""),
        ("exit_code", ""),
    ],
)
def test_what_a_result_says_did_not_work(value: Any, told: str) -> None:
    assert inner_failure(ToolOutcome("1", "t", json.dumps(value))) == told


def test_a_result_that_is_no_json_says_nothing() -> None:
    assert inner_failure(ToolOutcome("1", "t", '{"exit_code": 1, "std')) == ""


def test_a_child_that_failed_and_a_command_that_did_are_not_marked_as_done(
    hermes: CommandLine,
) -> None:
    def answer(request: dict[str, Any]) -> Turn | str:
        said = request["messages"]
        if said[-1]["role"] == "tool":
            return "So it is."
        if "fail" in said[-1]["content"]:
            return Turn(status=400, error="bad thing")
        calls = [Call("delegate_task", {"goal": "fail"}), Call("terminal", {"command": "exit 7"})]
        return Turn(calls=calls)

    with ScriptedModel(then=answer) as model:
        env = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "sk-x", "HERMES_MODEL": "gpt-4o"}
        done = hermes("run", "go", env=env)

    told = done.stderr
    assert "✓" not in told
    assert "✗ 🤝 delegate_task fail" in told
    assert "root/1 failed: openai answered 400: bad thing" in told
    assert "exit code 7" in told
