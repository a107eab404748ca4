"""Permission checker: one call against all layers of profiles."""

from __future__ import annotations

import fnmatch
import os
import re
from typing import TYPE_CHECKING

from hermes.core.errors import ToolError
from hermes.safety.call_effects import call_effects
from hermes.safety.permissions.profiles import covers
from hermes.safety.policy import Ruling

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from hermes.core.context import ToolContext
    from hermes.core.entry import ToolEntry
    from hermes.core.registry import ToolRegistry
    from hermes.safety.call_effects import CallEffect
    from hermes.safety.permissions.profiles import Profile, Restriction

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
