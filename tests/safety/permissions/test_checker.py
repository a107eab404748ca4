"""Rights in layers: deny beats allow, and further layers only take away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes.core import Task, ToolContext, ToolRegistry
from hermes.safety.permissions import PermissionChecker, Profile
from hermes.safety.permissions.checker import PROFILES, Restriction


@pytest.fixture
def registry() -> ToolRegistry:
    registry = ToolRegistry()
    text = {"type": "object", "properties": {"value": {"type": "string"}}}

    def add(name: str, **fields: Any) -> None:
        registry.register(name, "test", text, lambda value: value, **fields)

    add("look", effect="read", permissions=["file:read"], acts={"value": "read"})
    add("save", effect="write", permissions=["file:write"], acts={"value": "write"})
    add("run", effect="execute", acts={"value": "execute"})
    add("fetch", effect="network", acts={"value": "fetch"})
    add("tell", effect="message")
    return registry


def _context(tmp_path: Path, **fields: Any) -> ToolContext:
    return ToolContext(task=Task("t", workspace=str(tmp_path)), **fields)


def _profile(**fields: Any) -> Profile:
    limits = {key: Restriction(value) for key, value in fields.pop("restrictions", {}).items()}
    return Profile("p", restrictions=limits, **fields)


def test_deny_beats_allow(registry: ToolRegistry, tmp_path: Path) -> None:
    checker = PermissionChecker(registry, [_profile(allow=("*",), deny=("file:*",))])

    refused = checker.check("look", {"value": "a"}, _context(tmp_path))
    allowed = checker.check("fetch", {"value": "https://a.example"}, _context(tmp_path))

    assert not refused.allowed
    assert refused.rule == "deny:p:file:read"
    assert allowed.allowed


def test_what_is_not_allowed_is_refused(registry: ToolRegistry, tmp_path: Path) -> None:
    checker = PermissionChecker(registry, [_profile(allow=("file:read",))])

    assert checker.check("look", {"value": "a"}, _context(tmp_path)).allowed
    assert not checker.check("save", {"value": "a"}, _context(tmp_path)).allowed
    assert not checker.check("tell", {"value": "a"}, _context(tmp_path)).allowed


def test_a_further_layer_can_only_take_away(registry: ToolRegistry, tmp_path: Path) -> None:
    narrow, wide = _profile(allow=("file:read",)), _profile(allow=("*",))
    checker = PermissionChecker(registry, [narrow])

    widened = checker.check("save", {"value": "a"}, _context(tmp_path, profiles=[wide]))
    narrowed = PermissionChecker(registry, [wide]).check(
        "save", {"value": "a"}, _context(tmp_path, profiles=[narrow])
    )

    assert not widened.allowed
    assert not narrowed.allowed


def test_approval_required_asks(registry: ToolRegistry, tmp_path: Path) -> None:
    checker = PermissionChecker(registry, [_profile(allow=("*",), approval_required=("file:*",))])

    result = checker.check("save", {"value": "a"}, _context(tmp_path))

    assert result.allowed
    assert result.asks


def test_paths_are_limited_by_where_they_lead(registry: ToolRegistry, tmp_path: Path) -> None:
    limits = {"file:write": {"allowed_paths": ["./**"], "denied_paths": ["./secret/**"]}}
    checker = PermissionChecker(registry, [_profile(allow=("*",), restrictions=limits)])
    work = tmp_path / "work"
    (work / "secret").mkdir(parents=True)
    (tmp_path / "work-evil").mkdir()
    (work / "link").symlink_to(tmp_path / "work-evil")
    context = _context(work)

    def allowed(path: str) -> bool:
        return checker.check("save", {"value": path}, context).allowed

    assert allowed("a.txt")
    assert allowed("deep/er/a.txt")
    assert not allowed("../a.txt")
    assert not allowed("../work-evil/a.txt")
    assert not allowed("link/a.txt")
    assert not allowed("secret/a.txt")
    assert not allowed("SECRET/a.txt")


@pytest.mark.parametrize(
    "command",
    [
        "sudo -n id",
        "$(command -v sudo) -n id",
        "env sudo -n id",
        "env -S 'sudo -n id'",
        "command sudo id",
        "\\sudo id",
        'su""do id',
        "s=sudo; $s -n id",
        "nohup sudo id",
        "timeout 5 sudo id",
        "echo id | xargs sudo",
        "find . -exec sudo id ';'",
        "bash -c 'sudo id'",
        "/usr/bin/sudo id",
        "true && sudo id",
        "echo $(sudo id)",
        "python3 -c \"import os; os.system('sudo id')\"",
    ],
)
def test_a_denied_program_is_denied_in_every_spelling(
    command: str, registry: ToolRegistry, tmp_path: Path
) -> None:
    limits = {"terminal:execute": {"denied_commands": ["sudo *"]}}
    checker = PermissionChecker(registry, [_profile(allow=("*",), restrictions=limits)])

    assert not checker.check("run", {"value": command}, _context(tmp_path)).allowed


@pytest.mark.parametrize(
    ("command", "allowed"),
    [
        ("echo x", True),
        ("echo x > out.txt", True),
        ("echo x | node", False),
        ("echo x && touch canary", False),
        ("echo x; touch canary", False),
        ("echo x || touch canary", False),
        ("echo $(touch canary)", False),
        ("echo `touch canary`", False),
        ("echo <(touch canary)", False),
        ("echo x & touch canary", False),
        ("echo x\ntouch canary", False),
        ("e=touch; $e canary", False),
        ("echo 'unterminated", False),
    ],
)
def test_an_allowed_program_allows_nothing_else(
    command: str, allowed: bool, registry: ToolRegistry, tmp_path: Path
) -> None:
    limits = {"terminal:execute": {"allowed_commands": ["echo", "echo *"]}}
    checker = PermissionChecker(registry, [_profile(allow=("*",), restrictions=limits)])

    assert checker.check("run", {"value": command}, _context(tmp_path)).allowed is allowed


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://api.good.example/x", True),
        ("https://API.GOOD.example/x", True),
        ("https://good.example.evil.example/", False),
        ("https://evilgood.example/", False),
        ("https://bad.good.example/", False),
        ("https://bad.good.example./", False),
        ("https://[broken", False),
    ],
)
def test_hosts_are_matched_on_label_borders(
    url: str, allowed: bool, registry: ToolRegistry, tmp_path: Path
) -> None:
    limits = {
        "network:fetch": {
            "allowed_hosts": [".good.example"],
            "denied_hosts": ["bad.good.example"],
        }
    }
    checker = PermissionChecker(registry, [_profile(allow=("*",), restrictions=limits)])

    assert checker.check("fetch", {"value": url}, _context(tmp_path)).allowed is allowed


def test_parameters_of_any_tool_can_be_limited(registry: ToolRegistry, tmp_path: Path) -> None:
    limits = {"tell": {"parameters": {"value": {"pattern": "[a-z]+", "max": 5}}}}
    checker = PermissionChecker(registry, [_profile(allow=("*",), restrictions=limits)])

    assert checker.check("tell", {"value": "hello"}, _context(tmp_path)).allowed
    assert not checker.check("tell", {"value": "Hello"}, _context(tmp_path)).allowed
    assert not checker.check("tell", {"value": "toolong"}, _context(tmp_path)).allowed


def test_an_unknown_tool_is_refused(registry: ToolRegistry, tmp_path: Path) -> None:
    checker = PermissionChecker(registry, [PROFILES["standard"]])

    assert not checker.check("nothing", {}, _context(tmp_path)).allowed


def test_the_shipped_profiles_do_what_their_names_say(
    registry: ToolRegistry, tmp_path: Path
) -> None:
    def verdict(profile: str, tool: str, value: str) -> str:
        checker = PermissionChecker(registry, [PROFILES[profile]])
        result = checker.check(tool, {"value": value}, _context(tmp_path))
        return "ask" if result.asks else "allow" if result.allowed else "refuse"

    assert verdict("standard", "save", "a.txt") == "allow"
    assert verdict("standard", "tell", "hi") == "ask"
    assert verdict("readonly_research", "look", "a.txt") == "allow"
    assert verdict("readonly_research", "save", "a.txt") == "refuse"
    assert verdict("readonly_research", "run", "ls") == "refuse"
    assert verdict("full_developer", "run", "ls") == "allow"
    assert verdict("production_deploy", "save", "a.txt") == "ask"
    assert verdict("production_deploy", "save", "../a.txt") == "refuse"
    assert verdict("production_deploy", "tell", "hi") == "refuse"
