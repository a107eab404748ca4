"""Profiles are read strictly: what is not understood closes the gate."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.core import ConfigError
from hermes.safety.permissions import load_policy
from hermes.safety.permissions.checker import covers

GOOD = """
default_profile: careful
profiles:
  careful:
    description: reads and little else
    allow: ["file:read", "terminal:*"]
    deny: [terminal:sudo]
    approval_required: [terminal:execute]
    restrictions:
      file:read: {allowed_paths: ["./**"], denied_paths: ["./secret/**"]}
      sleep: {parameters: {seconds: {max: 5}}}
"""


def test_a_profile_is_read_with_its_restrictions(tmp_path: Path) -> None:
    path = tmp_path / "hermes_permissions.yaml"
    path.write_text(GOOD)

    policy = load_policy(str(path))

    assert policy is not None
    assert policy.default == "careful"
    profile = policy.profiles["careful"]
    assert profile.allow == ("file:read", "terminal:*")
    assert profile.restrictions["file:read"].denied_paths == ("./secret/**",)
    assert profile.restrictions["sleep"].parameters == {"seconds": {"max": 5}}


def test_no_file_means_no_policy(tmp_path: Path) -> None:
    assert load_policy(str(tmp_path / "absent.yaml")) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("profiles: [", "is not YAML at line 1"),
        ("- a\n- b", "settings by name"),
        ("profile: {}", "profile is not known there"),
        ("profiles: {a: {alow: []}}", "alow is not known there"),
        ("profiles: {a: {allow: 3}}", "allow must be a list"),
        ("profiles: {a: {allow: [3]}}", "allow must be a list"),
        ("profiles: {a: {restrictions: {file:read: {allowed_path: []}}}}", "allowed_path"),
        ("profiles: {a: {restrictions: {x: {parameters: {y: {pattern: '('}}}}}}", "pattern"),
        ("profiles: {a: {restrictions: {x: {parameters: {y: {maximum: 3}}}}}}", "maximum"),
        ("profiles: 7", "profiles by name"),
        ("default_profile: [a]", "must be a name"),
    ],
)
def test_a_file_that_is_not_understood_is_refused_with_its_reason(
    text: str, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "hermes_permissions.yaml"
    path.write_text(text)

    with pytest.raises(ConfigError, match="nothing is permitted") as caught:
        load_policy(str(path))

    assert said in str(caught.value)


def test_an_unreadable_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "hermes_permissions.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    folder = tmp_path / "folder.yaml"
    folder.mkdir()

    for place in (path, folder):
        with pytest.raises(ConfigError, match="nothing is permitted"):
            load_policy(str(place))


@pytest.mark.parametrize(
    ("pattern", "permission", "expected"),
    [
        ("*", "file:read", True),
        ("file:*", "file:read", True),
        ("file:read", "file:read", True),
        ("file:*", "filesystem:read", False),
        ("file:read", "file:readonly", False),
        ("file:", "file:read", False),
        ("", "file:read", False),
    ],
)
def test_patterns_cover_whole_families_and_nothing_more(
    pattern: str, permission: str, expected: bool
) -> None:
    assert covers(pattern, permission) is expected
