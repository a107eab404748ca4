"""The gate rules on what a call would do, and remembers what was approved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes.core import Task, ToolContext, ToolRegistry
from hermes.safety.gate import Gate
from hermes.safety.permissions import PermissionChecker, Profile
from hermes.safety.permissions.checker import PROFILES


@pytest.fixture
def registry() -> ToolRegistry:
    registry = ToolRegistry()
    text = {"type": "object", "properties": {"value": {"type": "string"}}}

    def add(name: str, **fields: Any) -> None:
        registry.register(name, "test", text, lambda value: value, origin="plugin", **fields)

    add("look", effect="read", permissions=["file:read"], acts={"value": "read"})
    add("know", effect="read")
    add("save", effect="write", permissions=["file:write"], acts={"value": "write"})
    add("run", effect="execute", acts={"value": "execute"})
    add("fetch", effect="network", acts={"value": "fetch"})
    add("blind", effect="execute", permissions=["robot:move"])
    return registry


def _gate(registry: ToolRegistry, *layers: Profile, **fields: Any) -> Gate:
    checker = PermissionChecker(registry, layers or [PROFILES["standard"]])
    return Gate(checker, **fields)


def _action(gate: Gate, registry: ToolRegistry, tool: str, value: str, where: Path) -> str:
    entry = registry.get(tool)
    assert entry is not None
    context = ToolContext(task=Task("t", workspace=str(where)), session_id="s")
    return gate.judge(entry, {"value": value}, context).action


def test_the_standard_profile_passes_ordinary_work(registry: ToolRegistry, tmp_path: Path) -> None:
    gate = _gate(registry)

    for tool, value in [
        ("know", "anything"),
        ("look", "notes.txt"),
        ("look", "/usr/share/dict/words"),
        ("save", "notes.txt"),
        ("save", "new/folder/notes.txt"),
        ("run", "git status"),
        ("run", "pytest -q 2>&1 | tail -3"),
        ("run", "rm notes.txt"),
        ("fetch", "https://example.org/x"),
    ]:
        assert _action(gate, registry, tool, value, tmp_path) == "allow", (tool, value)


def test_what_reaches_further_asks(registry: ToolRegistry, tmp_path: Path) -> None:
    gate = _gate(registry)

    for tool, value in [
        ("save", "../elsewhere.txt"),
        ("run", "rm -rf build"),
        ("run", "git push --force"),
        ("blind", "forward"),
    ]:
        assert _action(gate, registry, tool, value, tmp_path) == "ask", (tool, value)


def test_what_is_guarded_is_refused_in_every_mode(registry: ToolRegistry, tmp_path: Path) -> None:
    for mode in ("ask", "standard", "auto", "off"):
        gate = _gate(registry, mode=mode)
        for tool, value in [
            ("look", "~/.ssh/id_ed25519"),
            ("save", "/etc/passwd"),
            ("run", 'rm -rf "$HOME"'),
            ("run", "rm -rf /"),
            ("fetch", "http://169.254.169.254/latest/meta-data"),
            ("fetch", "file:///etc/passwd"),
        ]:
            assert _action(gate, registry, tool, value, tmp_path) == "refuse", (mode, tool, value)


def test_an_approval_covers_the_same_thing_and_nothing_more(
    registry: ToolRegistry, tmp_path: Path
) -> None:
    gate = _gate(registry)
    entry = registry.get("run")
    assert entry is not None
    context = ToolContext(task=Task("t", workspace=str(tmp_path)), session_id="s")
    ruling = gate.judge(entry, {"value": "rm -rf build"}, context)

    gate.remember(ruling, "session", context)

    def action(command: str, **fields: Any) -> str:
        now = ToolContext(task=Task("t", workspace=str(tmp_path)), **{"session_id": "s", **fields})
        return gate.judge(entry, {"value": command}, now).action

    assert action("rm -rf build") == "allow"
    assert action("cd . && rm -rf build") == "ask"
    assert action("rm -rf build; rm -rf src") == "ask"
    assert action("rm -rf src") == "ask"
    assert action("rm -rf build", session_id="another") == "ask"
    assert action('rm -rf build; rm -rf "$HOME"') == "refuse"


def test_plan_reads_and_ask_asks_about_every_change(registry: ToolRegistry, tmp_path: Path) -> None:
    ask, plan = _gate(registry, mode="ask"), _gate(registry, mode="plan")

    for gate, change in ((ask, "ask"), (plan, "refuse")):
        assert _action(gate, registry, "save", "notes.txt", tmp_path) == change
        assert _action(gate, registry, "run", "touch x", tmp_path) == change
        assert _action(gate, registry, "look", "notes.txt", tmp_path) == "allow"
        assert _action(gate, registry, "run", "git status", tmp_path) == "allow"


def test_a_right_named_by_a_profile_needs_no_question(
    registry: ToolRegistry, tmp_path: Path
) -> None:
    named = _gate(registry, Profile("p", allow=("*", "robot:move")))

    assert _action(named, registry, "blind", "forward", tmp_path) == "allow"


def test_a_tool_of_the_program_itself_asks_nobody(tmp_path: Path) -> None:
    registry = ToolRegistry()
    text = {"type": "object", "properties": {"value": {"type": "string"}}}
    registry.register("own", "test", text, lambda value: value, effect="execute")
    registry.register("run", "test", text, lambda value: value, acts={"value": "execute"})

    assert _action(_gate(registry), registry, "own", "forward", tmp_path) == "allow"
    # Its commands and paths are judged as those of any other tool.
    assert _action(_gate(registry), registry, "run", "git push --force", tmp_path) == "ask"
    assert _action(_gate(registry, mode="ask"), registry, "own", "x", tmp_path) == "ask"
