"""Permissions: profiles of rights, in layers that can only take away.

    checker    PermissionChecker: one call against all layers; profiles, their restrictions, the
               profiles that ship, and the policy file

A permission is a name such as `file:write`. Deny beats allow; an inner layer (session, project,
sub-agent) can only shrink the rights that the outer ones leave. A file that can't be read closes
the gate.
"""

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.safety.permissions.checker import (
        PermissionChecker,
        PermissionResult,
        PolicyFile,
        Profile,
        load_policy,
    )

__all__ = ["PermissionChecker", "PermissionResult", "PolicyFile", "Profile", "load_policy"]

__getattr__ = names_from(
    __name__,
    {
        "checker": "PermissionChecker PermissionResult PolicyFile Profile load_policy",
    },
)
