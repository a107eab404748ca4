"""Who may do what: profiles of rights, in layers that can only take away.

    profiles   a profile and its restrictions; reading them from `hermes_permissions.yaml`
    shipped    the profiles that come with Hermes: standard, readonly_research, …
    checker    PermissionChecker: one call against all layers

A permission is a name such as `file:write`. Deny beats allow; a layer further in (session, project,
sub-agent) can only shrink what the layers before it leave. A file that can't be understood closes
the gate.
"""

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.safety.permissions.checker import PermissionChecker, PermissionResult
    from hermes.safety.permissions.profiles import PolicyFile, Profile, load_policy

__all__ = ["PermissionChecker", "PermissionResult", "PolicyFile", "Profile", "load_policy"]

__getattr__ = names_from(
    __name__,
    {
        "PermissionChecker": "checker",
        "PermissionResult": "checker",
        "PolicyFile": "profiles",
        "Profile": "profiles",
        "load_policy": "profiles",
    },
)
