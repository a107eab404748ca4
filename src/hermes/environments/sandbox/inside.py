"""The first steps inside a sandbox, before the guardian; nothing of Hermes is imported here."""

from __future__ import annotations

import os
import resource


def prepare(limits: dict[str, int], user: tuple[int, int] | None) -> None:
    """Set limits by their names in `resource`, and become `user` (uid, gid) for good."""
    for name, wanted in limits.items():
        kind = getattr(resource, name)
        _, hard = resource.getrlimit(kind)
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(kind, (most, most))
    if user is not None:
        os.setgroups([])
        os.setresgid(user[1], user[1], user[1])
        os.setresuid(user[0], user[0], user[0])
