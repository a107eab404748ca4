"""`hermes permissions`, `approvals` and `audit`, through the real command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

POLICY = """
default_profile: careful
profiles:
  careful:
    allow: ["*"]
    restrictions:
      sleep: {parameters: {seconds: {max: 5}}}
      terminal:execute: {denied_commands: ["sudo *"]}
"""


def test_a_profile_of_ones_own_is_listed_shown_and_used(hermes: Any, home: Path) -> None:
    home.mkdir(mode=0o700, parents=True)
    (home / "hermes_permissions.yaml").write_text(POLICY)

    listed = json.loads(hermes("permissions", "list", "--json").stdout)
    shown = json.loads(hermes("permissions", "show", "careful", "--json").stdout)
    within = hermes("permissions", "check", "sleep", "seconds=1")
    past = hermes("permissions", "check", "sleep", "seconds=10", "--json")
    called = hermes("call", "sleep", "seconds=10")

    assert [p["name"] for p in listed if p["in_use"]] == ["careful"]
    assert shown["restrictions"]["sleep"]["parameters"] == {"seconds": {"max": 5}}
    assert within.returncode == 0
    assert past.returncode == 3
    assert json.loads(past.stdout)["action"] == "refuse"
    assert called.returncode == 3


def test_another_profile_can_be_tried(hermes: Any) -> None:
    usual = hermes("permissions", "check", "env_manager", "action=set", "name=A", "value=b")
    strict = hermes(
        "permissions", "check", "env_manager", "action=set", "name=A", "value=b",
        "--profile", "readonly_research", "--json",
    )  # fmt: skip

    assert usual.returncode == 3
    assert json.loads(strict.stdout)["action"] == "refuse"


def test_a_misspelled_profile_gets_the_nearest(hermes: Any) -> None:
    done = hermes("permissions", "show", "standrad")

    assert done.returncode == 1
    assert "Did you mean standard?" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_broken_policy_is_one_line_and_closes_the_gate(hermes: Any, home: Path) -> None:
    home.mkdir(mode=0o700, parents=True)
    (home / "hermes_permissions.yaml").write_text("profiles: {a: {alow: []}}")

    listed = hermes("permissions", "list")
    called = hermes("call", "sleep", "seconds=0")

    assert listed.returncode == 1
    assert listed.stderr.count("\n") == 1
    assert "alow" in listed.stderr
    assert called.returncode == 3


@pytest.mark.parametrize(
    ("command", "verdict", "code"),
    [
        ("git status", "allow", 0),
        ("rm -rf build", "ask", 3),
        ('rm -rf "$HOME"', "refuse", 3),
        ("echo 'rm -rf /'", "allow", 0),
    ],
)
def test_approvals_test_says_what_would_happen_and_why(
    command: str, verdict: str, code: int, hermes: Any
) -> None:
    done = hermes("approvals", "test", command, "--json")

    report = json.loads(done.stdout)
    assert (report["action"], done.returncode) == (verdict, code)
    assert all(layer["source"] and layer["why"] for layer in report["layers"])
    if verdict != "allow":
        assert any(layer["rule"] and layer["action"] == verdict for layer in report["layers"])


def test_approvals_test_names_the_layer_of_a_profile(hermes: Any, home: Path) -> None:
    home.mkdir(mode=0o700, parents=True)
    (home / "hermes_permissions.yaml").write_text(POLICY)

    report = json.loads(hermes("approvals", "test", "env sudo id", "--json").stdout)

    refusing = [layer for layer in report["layers"] if layer["action"] == "refuse"]
    assert refusing[0]["source"].endswith("hermes_permissions.yaml")


def test_what_is_approved_for_good_can_be_listed_and_revoked(hermes: Any, home: Path) -> None:
    from hermes.safety.approvals import command_grant

    grant = command_grant(
        "delete.recursive", "rm -rf build", [["rm", "-rf", "build"]], cwd=str(hermes.folder)
    )
    hermes("config", "set", "command_allowlist", json.dumps([grant.line()]))

    listed = json.loads(hermes("approvals", "list", "--json").stdout)
    revoked = hermes("approvals", "revoke", "1")
    again = hermes("approvals", "revoke", "1")

    assert [item["rule"] for item in listed] == ["delete.recursive"]
    assert revoked.returncode == 0
    assert again.returncode == 1
    assert json.loads(hermes("approvals", "list", "--json").stdout) == []


def test_the_audit_log_is_read_verified_and_exported(hermes: Any, home: Path) -> None:
    empty = hermes("audit")
    hermes("call", "sleep", "seconds=0")
    hermes("call", "notification", "message=hi")

    tail = json.loads(hermes("audit", "tail", "--json").stdout)
    exported = hermes("audit", "export").stdout.splitlines()
    fine = hermes("audit", "verify")
    log = home / "audit" / "audit.jsonl"
    log.write_bytes(log.read_bytes().splitlines(keepends=True)[0])
    cut = hermes("audit", "verify")

    assert empty.returncode == 0
    assert [(line["tool"], line["status"]) for line in tail] == [
        ("sleep", "ok"),
        ("notification", "refused"),
    ]
    assert [json.loads(line)["tool"] for line in exported] == ["sleep", "notification"]
    assert fine.returncode == 0
    assert cut.returncode == 1
    assert "missing at the end" in cut.stdout


def test_no_setting_turns_the_gate_off(hermes: Any, home: Path) -> None:
    refused = hermes("config", "set", "approvals.mode", "off")
    (home / "config.yaml").parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    (home / "config.yaml").write_text("approvals: {mode: off_}\n")

    called = hermes("call", "sleep", "seconds=0")

    assert refused.returncode == 1
    assert "must be plan, ask, standard or auto" in refused.stderr
    assert called.returncode == 3


def test_a_project_can_not_take_a_question_away(hermes: Any) -> None:
    (hermes.folder / ".hermes").mkdir()
    policy = "profiles: {p: {allow: ['*', 'env:*', 'env:write']}}"
    (hermes.folder / ".hermes" / "hermes_permissions.yaml").write_text(policy)

    done = hermes("call", "env_manager", "action=set", "name=A", "value=1")

    assert done.returncode == 3


def test_a_write_outside_of_the_workspace_is_a_layer_of_its_own(hermes: Any) -> None:
    done = hermes("approvals", "test", "echo x > /srv/f", "--json")

    said = json.loads(done.stdout)
    assert (done.returncode, said["action"]) == (3, "ask")
    assert [layer["rule"] for layer in said["layers"] if layer["action"] == "ask"] == [
        "path:outside"
    ]
    assert hermes("approvals", "test", "echo x > ./f").returncode == 0
