"""Permission profiles: the policy file and the profiles that ship with Hermes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


LISTS = (
    "allowed_paths",
    "denied_paths",
    "allowed_commands",
    "denied_commands",
    "allowed_hosts",
    "denied_hosts",
)
LIMITS = ("enum", "pattern", "max", "min")


class Restriction:
    """The limits of a right; an empty allow list is no limit."""

    __slots__ = (*LISTS, "parameters")

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.allowed_paths: tuple[str, ...] = tuple(values.get("allowed_paths", ()))
        self.denied_paths: tuple[str, ...] = tuple(values.get("denied_paths", ()))
        self.allowed_commands: tuple[str, ...] = tuple(values.get("allowed_commands", ()))
        self.denied_commands: tuple[str, ...] = tuple(values.get("denied_commands", ()))
        self.allowed_hosts: tuple[str, ...] = tuple(values.get("allowed_hosts", ()))
        self.denied_hosts: tuple[str, ...] = tuple(values.get("denied_hosts", ()))
        self.parameters: dict[str, dict[str, Any]] = dict(values.get("parameters", {}))


class Profile:
    """Rights by name: allowed, denied, asked about, and the restriction of each."""

    __slots__ = ("allow", "approval_required", "deny", "name", "restrictions", "source")

    def __init__(
        self,
        name: str,
        *,
        allow: tuple[str, ...] = (),
        deny: tuple[str, ...] = (),
        approval_required: tuple[str, ...] = (),
        restrictions: Mapping[str, Restriction] | None = None,
        source: str = "",
    ) -> None:
        self.name = name
        self.allow = allow
        self.deny = deny
        self.approval_required = approval_required
        self.restrictions = dict(restrictions or {})
        self.source = source

    def __repr__(self) -> str:
        return f"<profile {self.name} from {self.source}>"


class PolicyFile:
    """The profiles of one file, and which of them is used when none is named."""

    def __init__(self, profiles: dict[str, Profile], default: str | None, path: str) -> None:
        self.profiles = profiles
        self.default = default
        self.path = path


def covers(pattern: str, permission: str) -> bool:
    """Whether a permission, or a pattern such as `file:*` or `*`, stands for a permission."""
    if pattern in ("*", permission):
        return True
    return pattern.endswith(":*") and permission.startswith(pattern[:-1])


def load_policy(path: str) -> PolicyFile | None:
    """The profiles in a file; None when there is none. Raises `ConfigError` at any doubt."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} can't be read, so nothing is permitted: {error}") from None
    # Imported where there is a file: it takes 14 ms.
    import yaml

    try:
        values = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark else ""
        raise ConfigError(f"{path} is not YAML{where}, so nothing is permitted") from None
    return _policy(values, path)


def _policy(values: Any, path: str) -> PolicyFile:
    values = {} if values is None else values
    _only(values, {"profiles", "default_profile", "version"}, path)
    profiles = values.get("profiles") or {}
    if not isinstance(profiles, dict):
        raise _wrong(path, "profiles must be profiles by name")
    read = {str(name): _profile(str(name), body, path) for name, body in profiles.items()}
    default = values.get("default_profile")
    if default is not None and not isinstance(default, str):
        raise _wrong(path, "default_profile must be a name")
    return PolicyFile(read, default, path)


def _profile(name: str, body: Any, path: str) -> Profile:
    where = f"{path}, profile {name}"
    body = {} if body is None else body
    known = {"allow", "deny", "approval_required", "restrictions", "description"}
    _only(body, known, where)
    limited = body.get("restrictions") or {}
    if not isinstance(limited, dict):
        raise _wrong(where, "restrictions must be limits by permission or tool")
    return Profile(
        name,
        allow=_words(body, "allow", where),
        deny=_words(body, "deny", where),
        approval_required=_words(body, "approval_required", where),
        restrictions={str(k): _restriction(v, f"{where}, {k}") for k, v in limited.items()},
        source=path,
    )


def _restriction(body: Any, where: str) -> Restriction:
    body = {} if body is None else body
    _only(body, {*LISTS, "parameters"}, where)
    parameters = body.get("parameters") or {}
    if not isinstance(parameters, dict):
        raise _wrong(where, "parameters must be limits by name")
    for name, limits in parameters.items():
        _only(limits, set(LIMITS), f"{where}, parameter {name}")
        _check_pattern(limits, f"{where}, parameter {name}")
    return Restriction({**{n: _words(body, n, where) for n in LISTS}, "parameters": parameters})


def _check_pattern(limits: dict[str, Any], where: str) -> None:
    if "pattern" not in limits:
        return
    try:
        re.compile(str(limits["pattern"]))
    except re.error as error:
        raise _wrong(where, f"pattern is no regular expression: {error}") from None


def _words(body: dict[str, Any], key: str, where: str) -> tuple[str, ...]:
    value = body.get(key)
    if value is None:
        return ()
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise _wrong(where, f"{key} must be a list of names")
    return tuple(value)


def _only(values: Any, known: set[str], where: str) -> None:
    if not isinstance(values, dict):
        raise _wrong(where, "settings by name are expected")
    unknown = [str(key) for key in values if key not in known]
    if unknown:
        raise _wrong(where, f"{', '.join(unknown)} is not known there")


def _wrong(where: str, what: str) -> ConfigError:
    # A misspelled limit would otherwise silently be no limit.
    return ConfigError(f"{where}: {what}; until that is mended nothing is permitted")


_HERE = {"allowed_paths": ["./**"]}

STANDARD = Profile(
    "standard",
    allow=("*", "agent:*", "memory:*"),
    approval_required=("message:*", "notification:*", "email:*", "docker:*", "database:write"),
    source="shipped with Hermes",
)

READONLY_RESEARCH = Profile(
    "readonly_research",
    allow=(
        "file:read",
        "network:*",
        "web:*",
        "browser:*",
        "system:read",
        "git:read",
        "database:read",
        "clipboard:access",
        "env:read",
        "memory:*",
        "session:*",
        "agent:*",
    ),
    deny=("file:write", "file:delete", "terminal:*", "code:*", "message:*", "env:write"),
    source="shipped with Hermes",
)

FULL_DEVELOPER = Profile(
    "full_developer",
    allow=("*",),
    approval_required=("message:*", "email:*"),
    source="shipped with Hermes",
)

PRODUCTION_DEPLOY = Profile(
    "production_deploy",
    allow=("*",),
    deny=("message:*", "email:*", "clipboard:*"),
    approval_required=(
        "file:write",
        "file:delete",
        "terminal:execute",
        "docker:*",
        "database:*",
        "git:write",
        "network:send",
        "cloud:*",
        "env:write",
    ),
    restrictions={"file:write": Restriction(_HERE), "file:delete": Restriction(_HERE)},
    source="shipped with Hermes",
)

PROFILES = {
    profile.name: profile
    for profile in (STANDARD, READONLY_RESEARCH, FULL_DEVELOPER, PRODUCTION_DEPLOY)
}
