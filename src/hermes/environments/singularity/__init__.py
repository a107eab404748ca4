"""A container of Apptainer or Singularity: one instance for a task, shared by all its shells.

    settings.py     which image, and what of this machine is seen in it; checked beforehand
    program.py      the command line of either program, and what its complaints mean
    link.py         the instance of a task
    environment.py  `SingularityEnvironment`

New here? Read `hermes.environments.far` first.
"""

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.environments.singularity.environment import SingularityEnvironment
    from hermes.environments.singularity.link import prune
    from hermes.environments.singularity.settings import SingularitySettings

__all__ = ["SingularityEnvironment", "SingularitySettings", "prune"]

__getattr__ = names_from(
    __name__,
    {
        "SingularityEnvironment": "environment",
        "SingularitySettings": "settings",
        "prune": "link",
    },
)
