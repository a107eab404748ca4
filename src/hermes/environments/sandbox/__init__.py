"""Commands on this machine behind walls: bubblewrap, a user without rights, chosen folders.

    environment.py   SandboxEnvironment: what a task works with
    walls.py         what is visible inside: the arguments of bubblewrap
    limits.py        memory and number of processes, by cgroup where that can be
    owner.py         our side of the guardian inside; it starts the sandbox with the first command
    inside.py        the first steps inside: limits, another user; then the guardian takes over

One sandbox lives as long as its task, with the same guardian inside as `local/` has outside, so
that a command costs no more than there.

New here? Read walls.py, then owner.py.
"""

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.environments.sandbox.sandbox_environment import SandboxEnvironment

__all__ = ["SandboxEnvironment"]

__getattr__ = names_from(
    __name__,
    {
        "SandboxEnvironment": "sandbox_environment",
    },
)
