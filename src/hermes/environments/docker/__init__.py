"""Commands in a container: Docker, or Podman through its command line or its Docker socket.

    settings.py      which image, what is mounted, what is limited
    arguments.py     the engine's command line, and what must never be in it
    granting.py      lets a user without rights into a workspace that belongs to root
    complaints.py    what the engine's complaints mean, and how to check
    link.py          one container for a task, and the shells in it
    pruning.py       containers whose Hermes is gone
    environment.py   DockerEnvironment

The container lives as long as the shell that watches over the rest inside: when Hermes goes, in
whatever way, that shell's input ends, and the container with it.

New here? Read `hermes.environments.far` first, then arguments.py.
"""

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.environments.docker.environment import DockerEnvironment
    from hermes.environments.docker.settings import DockerSettings

__all__ = ["DockerEnvironment", "DockerSettings"]

__getattr__ = names_from(
    __name__,
    {
        "DockerEnvironment": "environment",
        "DockerSettings": "settings",
    },
)
