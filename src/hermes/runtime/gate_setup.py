"""Builds the permission gate from its files: profile of the home folder, project file, approvals.

Layers, outermost first: the profile in the home folder's `hermes_permissions.yaml` (or the shipped
`standard`), the project's file, which can only restrict, and the session's additions. An unreadable
file closes the gate.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.core.config import Config, set_value
from hermes.core.errors import ConfigError, did_you_mean
from hermes.core.paths import home_path
from hermes.safety.approvals import Approvals
from hermes.safety.gate import Gate
from hermes.safety.permissions import PermissionChecker, load_policy
from hermes.safety.permissions.checker import PROFILES
from hermes.safety.policy import Policy, Ruling

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from hermes.core.context import ToolContext
    from hermes.core.entry import ToolEntry
    from hermes.core.registry import ToolRegistry
    from hermes.safety.permissions import Profile

FILE = "hermes_permissions.yaml"


class ClosedGate(Policy):
    """Refuses everything, with the reason: the policy could not be read."""

    def __init__(self, reason: str) -> None:
        self._ruling = Ruling("refuse", reason=reason, rule="policy:unreadable")

    def judge(
        self,
        entry: ToolEntry,  # noqa: ARG002
        arguments: Mapping[str, Any],  # noqa: ARG002
        context: ToolContext,  # noqa: ARG002
    ) -> Ruling:
        """No."""
        return self._ruling


def open_gate(
    registry: ToolRegistry,
    config: Config,
    *,
    project: str,
    profile: str | None = None,
    mode: str | None = None,
) -> Policy:
    """The gate as the files have it; a closed one when they can't be understood."""
    try:
        layers = profile_layers(project, profile or config.get("permissions.profile") or None)
        mode = mode or config.get("approvals.mode")
        allowlist = config.get("command_allowlist")
        network = config.get("network")
    except ConfigError as error:
        return ClosedGate(str(error))
    return Gate(
        PermissionChecker(registry, layers),
        approvals=Approvals(allowlist, keep=_keep),
        mode=mode,
        url_rules=network,
    )


def profile_layers(project: str, chosen: str | None = None) -> list[Profile]:
    """The profiles that apply, outermost first."""
    profiles = dict(PROFILES)
    own = load_policy(home_path(FILE))
    if own is not None:
        profiles.update(own.profiles)
    name = chosen or (own.default if own is not None else None) or "standard"
    layers = [find_profile(name, profiles)]
    theirs = load_policy(os.path.join(project, ".hermes", FILE))
    if theirs is not None:
        # Every profile of a project's file applies: it can only take away.
        layers.extend(theirs.profiles.values())
    return layers


def known_profiles() -> dict[str, Profile]:
    """The profiles that can be chosen: those that Hermes ships, and those of the home folder."""
    own = load_policy(home_path(FILE))
    return {**PROFILES, **(own.profiles if own is not None else {})}


def find_profile(name: str, profiles: Mapping[str, Profile]) -> Profile:
    """A profile by name; an error with the nearest name when there is none."""
    if name not in profiles:
        hint = did_you_mean(name, profiles, f"There are {', '.join(profiles)}.", cutoff=0.4)
        raise ConfigError(f"there is no permission profile {name!r}", hint=hint)
    return profiles[name]


def _keep(lines: list[str]) -> None:
    """Add approvals to those in the settings as they are now: others may have changed them."""
    import json

    known = Config.load().get("command_allowlist")
    set_value("command_allowlist", json.dumps(list(dict.fromkeys([*known, *lines]))))
