"""Commands on this machine behind bubblewrap: an unprivileged user, chosen folders.

    sandbox_environment.py   SandboxEnvironment
    bwrap.py                 arguments of bubblewrap
    cgroups.py               limits on memory and processes
    sandbox_guardian.py      client of the guardian inside; starts the sandbox

One sandbox lives as long as its task, with the same guardian inside as `host/` has outside, so that
a command costs no more than there.

New here? Read bwrap.py, then sandbox_guardian.py.
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
