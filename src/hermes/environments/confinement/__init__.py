"""Confinement: the operating system limits the rights of local commands.

tables                data: writable caches, open sockets, allowances by name
policy                the plan for one workspace: writable, protected and hidden paths
machine               chooses the mechanism, starts and ends it: `ConfinedMachine`
confined_guardian     a guardian for each mechanism
mounts, landlock      a plan as arguments of bubblewrap; Landlock by system calls
seccomp, supervisor   system calls that neither covers: filtered, or carried out for the command
proxy                 the way to named hosts, where the network is closed
git_guard             git hooks and settings that run programs, put back after each command
proof                 each limit, tried from inside
confined_environment  `ConfinedEnvironment`, which the backend `local` is

Start with policy.py.
"""

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.environments.confinement.confined_environment import ConfinedEnvironment
    from hermes.environments.confinement.machine import ConfinedMachine
    from hermes.environments.confinement.policy import Settings

__all__ = ["ConfinedEnvironment", "ConfinedMachine", "Settings"]

__getattr__ = names_from(
    __name__,
    {
        "confined_environment": "ConfinedEnvironment",
        "machine": "ConfinedMachine",
        "policy": "Settings",
    },
)
