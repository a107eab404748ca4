"""Permissions: profiles of a policy file, and the checker that rules on a call by them."""

from __future__ import annotations

import fnmatch
import os
import re
from typing import TYPE_CHECKING

from hermes.core.errors import ConfigError, ToolError
from hermes.safety.call_effects import call_effects
from hermes.safety.policy import Ruling

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from hermes.core.context import ToolContext
    from hermes.core.entry import ToolEntry
    from hermes.core.registry import ToolRegistry
    from hermes.safety.call_effects import CallEffect


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


# What a tool that names no permission needs, by its effect.
IMPLIED = {
    "read": (),
    "write": ("file:write",),
    "execute": ("terminal:execute",),
    "network": ("network:fetch",),
    "message": ("message:send",),
}
# What an act needs, whatever the tool says of itself.
NEEDED = {
    "read": "file:read",
    "write": "file:write",
    "delete": "file:delete",
    "execute": "terminal:execute",
    "fetch": "network:fetch",
}


class PermissionResult:
    """Whether a call is within its rights; the reason says which right is missing, no more."""

    __slots__ = ("allowed", "asks", "reason", "rule")

    def __init__(self, allowed: bool, reason: str = "", rule: str = "", *, asks: bool = False):
        self.allowed = allowed
        self.reason = reason
        self.rule = rule
        self.asks = asks


class PermissionChecker:
    """Rights in layers: every layer must allow, and any of them may ask."""

    def __init__(self, registry: ToolRegistry, layers: Sequence[Profile]) -> None:
        self._registry = registry
        self.layers = tuple(layers)
        self._free: dict[ToolEntry, bool] = {}

    def entry(self, tool_name: str) -> ToolEntry:
        """The tool of that name; a call under way has one."""
        found = self._registry.get(tool_name)
        if found is None:
            raise ToolError(f"no tool is called {tool_name!r:.80}")
        return found

    def check(
        self, tool_name: str, params: Mapping[str, Any], context: ToolContext
    ) -> PermissionResult:
        """Whether a call to a tool, by name, is within its rights."""
        entry = self._registry.get(tool_name)
        if entry is None:
            return PermissionResult(False, f"no tool is called {tool_name!r:.80}", "unknown-tool")
        ruling = self.judge(entry, params, context, call_effects(entry, params, context))
        return PermissionResult(
            ruling.action != "refuse", ruling.reason, ruling.rule, asks=ruling.action == "ask"
        )

    def judge(
        self,
        entry: ToolEntry,
        params: Mapping[str, Any],
        context: ToolContext,
        acts: Sequence[CallEffect],
    ) -> Ruling:
        """The ruling of all layers together: the strictest one."""
        worst = ALLOWED
        for profile in (*self.layers, *context.profiles):
            for ruling in self._of(profile, entry, params, context, acts):
                if ruling.action == "refuse":
                    return ruling
                worst = ruling
        return worst

    def unrestricted(self, entry: ToolEntry) -> bool:
        """Whether no layer has anything to say of a tool that only reads, remembered."""
        known = self._free.get(entry)
        if known is None:
            names = _permissions(entry, "read", ())
            known = self._free[entry] = all(
                _allowed(profile, names) and not _limits(profile, entry, names)
                for profile in self.layers
            )
        return known

    def _of(
        self,
        profile: Profile,
        entry: ToolEntry,
        params: Mapping[str, Any],
        context: ToolContext,
        acts: Sequence[CallEffect],
    ) -> Iterator[Ruling]:
        names = _permissions(entry, entry.effect_of(params), acts)
        for name in names:
            where = f"{profile.name}:{name}"
            if any(covers(pattern, name) for pattern in profile.deny):
                yield Ruling("refuse", reason=f"{name} is denied here", rule=f"deny:{where}")
            if not any(covers(pattern, name) for pattern in profile.allow):
                yield Ruling("refuse", reason=f"{name} is not allowed here", rule=f"allow:{where}")
            if any(covers(pattern, name) for pattern in profile.approval_required):
                yield Ruling("ask", reason=f"{name} needs approval", rule=f"approval:{where}")
        for key, limits in _limits(profile, entry, names):
            limited = [name for name in names if covers(key, name)]
            reason = _unseen(limits, limited, acts) or _outside(limits, params, acts, context)
            if reason:
                yield Ruling("refuse", reason=reason, rule=f"restriction:{profile.name}:{key}")


ALLOWED = Ruling("allow", rule="permissions")


def command_ruling(profile: Profile, command: str, context: ToolContext) -> Ruling:
    """The ruling of one profile on a shell command, without a tool."""
    for pattern in profile.deny:
        if covers(pattern, "terminal:execute"):
            return Ruling("refuse", reason="terminal:execute is denied", rule=f"deny:{pattern}")
    if not any(covers(pattern, "terminal:execute") for pattern in profile.allow):
        return Ruling("refuse", reason="terminal:execute is not allowed", rule="allow")
    for key, limits in profile.restrictions.items():
        reason = _command_outside(limits, command, context)
        if covers(key, "terminal:execute") and reason:
            return Ruling("refuse", reason=reason, rule=f"restriction:{key}")
    for pattern in profile.approval_required:
        if covers(pattern, "terminal:execute"):
            rule = f"approval_required:{pattern}"
            return Ruling("ask", reason="terminal:execute needs approval", rule=rule)
    return ALLOWED


def _permissions(entry: ToolEntry, effect: str, acts: Sequence[CallEffect]) -> list[str]:
    """The rights a call needs, each once."""
    own = entry.permissions
    if effect == "read":
        # A tool that can do both needs its stronger right only when it does the stronger thing.
        own = tuple(name for name in own if not name.endswith((":write", ":delete", ":send")))
    implied = () if entry.permissions or acts else IMPLIED[effect]
    return list(dict.fromkeys((*own, *implied, *(NEEDED[act.kind] for act in acts))))


def _allowed(profile: Profile, names: Sequence[str]) -> bool:
    return all(
        any(covers(pattern, name) for pattern in profile.allow)
        and not any(covers(p, name) for p in (*profile.deny, *profile.approval_required))
        for name in names
    )


def _limits(
    profile: Profile, entry: ToolEntry, names: Sequence[str]
) -> list[tuple[str, Restriction]]:
    """The restrictions that apply: those of a needed right, and those of the tool itself."""
    return [
        (key, limits)
        for key, limits in profile.restrictions.items()
        if key == entry.name or any(covers(key, name) for name in names)
    ]


def _unseen(limits: Restriction, limited: Sequence[str], acts: Sequence[CallEffect]) -> str | None:
    """Why a restriction can't be checked: the tool has the right but declares no effects."""
    kinds = {act.kind for act in acts}
    families = {name.partition(":")[0] for name in limited}
    paths, commands, hosts = (
        limits.allowed_paths or limits.denied_paths,
        limits.allowed_commands or limits.denied_commands,
        limits.allowed_hosts or limits.denied_hosts,
    )
    if (
        (paths and "file" in families and not kinds & {"read", "write", "delete"})
        or (commands and families & {"terminal", "code"} and "execute" not in kinds)
        or (hosts and families & {"network", "web"} and "fetch" not in kinds)
    ):
        return "what it would do can't be checked against the limits here"
    return None


def _outside(
    limits: Restriction, params: Mapping[str, Any], acts: Sequence[CallEffect], context: ToolContext
) -> str | None:
    """Why a call is past its limits; None when it is within them."""
    for name, rule in limits.parameters.items():
        if name in params and not _within(params[name], rule):
            return f"the value of {name} is outside what is allowed"
    for act in acts:
        if act.kind in ("read", "write", "delete"):
            reason = _path_outside(limits, act, context)
        elif act.kind == "execute":
            reason = _command_outside(limits, act.value, context)
        else:
            reason = _host_outside(limits, act.value)
        if reason:
            return reason
    return None


def _within(value: Any, rule: Mapping[str, Any]) -> bool:
    values = value if isinstance(value, list) else [value]
    if "enum" in rule and not all(one in rule["enum"] for one in values):
        return False
    if "pattern" in rule and not all(re.fullmatch(str(rule["pattern"]), str(v)) for v in values):
        return False
    sizes = [one if isinstance(one, (int, float)) else len(str(one)) for one in values]
    return all(rule.get("min", size) <= size <= rule.get("max", size) for size in sizes)


def _path_outside(limits: Restriction, act: CallEffect, context: ToolContext) -> str | None:
    if not limits.allowed_paths and not limits.denied_paths:
        return None
    from hermes.safety.paths import check_path

    allowed = limits.allowed_paths or ("/**",)
    mode = "read" if act.kind == "read" else "write"
    rules = {"allow_read": allowed, "allow_write": allowed, "deny": limits.denied_paths}
    decision = check_path(
        act.value, mode, rules=rules, cwd=context.workspace, home=os.path.expanduser("~")
    )
    return None if decision.allowed else "that path is outside what is allowed"


def _command_outside(limits: Restriction, command: str, context: ToolContext) -> str | None:
    if not limits.allowed_commands and not limits.denied_commands:
        return None
    from hermes.safety.shell import detect_dangerous_command

    verdict = detect_dangerous_command(command, cwd=context.workspace)
    for words in (*verdict.commands, *verdict.inside):
        if any(_command_matches(pattern, words) for pattern in limits.denied_commands):
            return "that command is denied here"
    for words in verdict.typed:
        if limits.allowed_commands and not any(
            _command_matches(pattern, words) for pattern in limits.allowed_commands
        ):
            return "that command is not among those allowed here"
    if any(finding.rule.startswith("text.") for finding in verdict.findings):
        # A list of commands means nothing for a text that can't be taken apart.
        return "that command can't be taken apart"
    return None


def _command_matches(pattern: str, words: Sequence[str]) -> bool:
    """Whether a pattern such as `git push *` or `sudo` stands for a simple command."""
    program = os.path.basename(words[0]) if words else ""
    wanted = pattern.split()
    if len(wanted) == 1 and not wanted[0].endswith("*"):
        return fnmatch.fnmatchcase(program, wanted[0])
    text = " ".join((program, *words[1:]))
    # `sudo *` is meant to cover a bare `sudo`, too.
    bare = pattern[:-2] if pattern.endswith(" *") else pattern
    return fnmatch.fnmatchcase(text, pattern) or fnmatch.fnmatchcase(text, bare)


def _host_outside(limits: Restriction, url: str) -> str | None:
    if not limits.allowed_hosts and not limits.denied_hosts:
        return None
    from urllib.parse import urlsplit

    try:
        host = (urlsplit(url).hostname or "").rstrip(".").lower()
    except ValueError:
        return "that address can't be read"
    if any(_host_matches(pattern, host) for pattern in limits.denied_hosts):
        return "that host is denied here"
    if limits.allowed_hosts and not any(_host_matches(p, host) for p in limits.allowed_hosts):
        return "that host is not among those allowed here"
    return None


def _host_matches(pattern: str, host: str) -> bool:
    """`a.example` matches itself, `.a.example` and `*.a.example` match every name below it."""
    pattern = pattern.lower().rstrip(".")
    if pattern.startswith(("*.", ".")):
        return host.endswith(pattern.lstrip("*"))
    return host == pattern
