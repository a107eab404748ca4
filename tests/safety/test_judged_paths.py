"""What was judged is what is opened: the gate hands on where each path leads."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.core import ToolCall, ToolContext, ToolRegistry, tool
from hermes.core.context import Answer, ApprovalRequest
from hermes.runtime.audit import AuditLog, lines
from hermes.runtime.pipeline import Runtime
from hermes.safety.gate import Gate
from hermes.safety.paths import PathRefusedError
from hermes.safety.permissions import PermissionChecker
from hermes.safety.permissions.checker import PROFILES


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "home"))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return work


def _runtime(registry: ToolRegistry, **fields: object) -> Runtime:
    gate = Gate(PermissionChecker(registry, [PROFILES["standard"]]))
    return Runtime(registry, policy=gate, **fields)  # type: ignore[arg-type]


def test_a_handler_gets_the_place_that_was_judged(work: Path) -> None:
    (work / "real").mkdir()
    (work / "link").symlink_to("real")
    registry = ToolRegistry()

    @tool(registry=registry, toolset="t", effect="write", acts={"path": "write"})
    def save(ctx: ToolContext, path: str) -> str:
        """Say where."""
        # Bent after it was judged: the place stays the one that was judged.
        (work / "link").unlink()
        (work / "link").symlink_to("/etc")
        return ctx.resolve_path(path, "write")

    outcome = _runtime(registry).call_sync(ToolCall("save", {"path": "link/a.txt"}))

    assert outcome.content == f'"{work}/real/a.txt"'


def test_a_path_that_a_call_comes_upon_is_judged_then(work: Path) -> None:
    (work / "a").write_text("")
    registry = ToolRegistry()
    seen: dict[str, str] = {}

    @tool(registry=registry, toolset="t", effect="read", acts={"path": "read"})
    def look(ctx: ToolContext, path: str) -> str:
        """Try some paths."""
        for other, kind in [("a", "read"), ("~/.ssh/id_rsa", "read"), ("../out", "write")]:
            try:
                seen[other] = ctx.resolve_path(other, kind)
            except PathRefusedError as error:
                seen[other] = f"refused: {error.reason}"
        return ""

    outcome = _runtime(registry).call_sync(ToolCall("look", {"path": "."}))

    assert outcome.status == "ok"
    assert seen["a"] == f"{work}/a"
    assert "refused" in seen["~/.ssh/id_rsa"]
    assert "outside the workspace" in seen["../out"]


def test_a_link_bent_while_the_person_is_asked_voids_the_approval(work: Path) -> None:
    outside = work.parent / "outside"
    outside.mkdir()
    (work / "link").symlink_to(outside)
    registry = ToolRegistry()
    ran = []

    @tool(registry=registry, toolset="t", effect="write", acts={"path": "write"})
    def save(ctx: ToolContext, path: str) -> str:
        """Note that it ran."""
        ran.append(ctx.resolve_path(path, "write"))
        return ""

    def bend(_: ApprovalRequest) -> str:
        (work / "link").unlink()
        (work / "link").symlink_to(work.parent)
        return "once"

    bent = _runtime(registry, approver=bend).call_sync(ToolCall("save", {"path": "link/a"}))

    assert (bent.status, ran) == ("refused", [])


def test_the_audit_line_says_who_approved(work: Path) -> None:
    registry = ToolRegistry()

    @tool(registry=registry, toolset="t", effect="write", acts={"path": "write"})
    def save(path: str) -> str:
        """Do nothing."""
        return ""

    audit = AuditLog()
    answers = iter([Answer("once", by="small-model"), "session", "deny"])
    runtime = _runtime(registry, audit=audit, approver=lambda _: next(answers))
    for path in ("../a", "../b", "../b", "../c", "d"):
        runtime.call_sync(ToolCall("save", {"path": path}))
    runtime.close()

    said = [(one["verdict"], one["approver"], one["status"]) for one in lines(audit.path)]
    assert said == [
        ("approved", "small-model", "approved"),
        ("approved", "small-model", "ok"),
        ("approved", "library", "approved"),
        ("approved", "library", "ok"),
        ("allowed", "session", "ok"),
        ("denied", "library", "refused"),
        ("allowed", "", "ok"),
    ]


def test_an_approver_that_reaches_nobody_says_so(work: Path) -> None:
    registry = ToolRegistry()

    @tool(registry=registry, toolset="t", effect="write", acts={"path": "write"})
    def save(path: str) -> str:
        """Do nothing."""
        return ""

    outcome = _runtime(registry, approver=lambda _: None).call_sync(
        ToolCall("save", {"path": "../a"})
    )

    assert outcome.status == "refused"
    assert "nobody can be asked" in outcome.content


@pytest.mark.parametrize("path", ["note.txt/inside", "n" * 300, "a\0b", "", "x/" * 3000 + "y"])
@pytest.mark.parametrize("kind", ["read", "write", "delete"])
def test_a_name_that_no_file_can_have_is_a_plain_mistake(work: Path, path: str, kind: str) -> None:
    (work / "note.txt").write_text("x")
    registry = ToolRegistry()

    @tool(registry=registry, toolset="t", effect="read", acts={"path": kind})
    def use(ctx: ToolContext, path: str) -> str:
        """Ask where a path leads."""
        return ctx.resolve_path(path, kind)

    outcome = _runtime(registry).call_sync(ToolCall("use", {"path": path}))

    assert outcome.status == "error", outcome.content
    assert "path" in outcome.content
    assert len(outcome.content) < 500


def test_a_way_into_a_process_stays_refused(work: Path) -> None:
    registry = ToolRegistry()

    @tool(registry=registry, toolset="t", effect="read", acts={"path": "read"})
    def use(ctx: ToolContext, path: str) -> str:
        """Ask where a path leads."""
        return ctx.resolve_path(path, "read")

    outcome = _runtime(registry).call_sync(ToolCall("use", {"path": "/proc/self/root/etc/passwd"}))

    assert outcome.status == "refused"
