"""A conversation begins and ends: hooks are told, and what was only for it is forgotten."""

from __future__ import annotations

from hermes.core import ToolRegistry
from hermes.runtime import Runtime
from hermes.runtime.pipeline import begin_session, end_session
from hermes.safety.approvals import Grant
from hermes.safety.gate import Gate
from hermes.safety.permissions import PermissionChecker
from hermes.safety.permissions.checker import STANDARD


def test_hooks_are_told_and_one_that_raises_stops_nothing() -> None:
    runtime = Runtime(ToolRegistry())
    told: list[str] = []
    trouble: list[str] = []
    runtime.events.subscribe(lambda event: trouble.append(event.data["message"]))

    def broken(session_id: str) -> None:
        raise ValueError(session_id)

    runtime.hooks.add("session_start", broken)
    runtime.hooks.add("session_start", lambda session_id: told.append(f"begin {session_id}"))
    runtime.hooks.add("session_end", lambda session_id: told.append(f"end {session_id}"))

    begin_session(runtime, "s1")
    end_session(runtime, "s1")

    assert told == ["begin s1", "end s1"]
    assert len(trouble) == 1
    assert "ValueError" in trouble[0]


def test_approvals_for_a_session_end_with_it() -> None:
    registry = ToolRegistry()
    gate = Gate(PermissionChecker(registry, [STANDARD]))
    runtime = Runtime(registry, policy=gate)
    grant = Grant("rule", "about", "digest")
    gate.approvals.give([grant], "s1", always=False)

    end_session(runtime, "s1")

    assert not gate.approvals.covered_by([grant], "s1")
