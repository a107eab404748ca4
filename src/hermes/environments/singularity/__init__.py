"""A container of Apptainer or Singularity: one instance for a task, shared by all its shells.

    settings.py     which image, and what of this machine is seen in it; checked beforehand
    program.py      the command line of either program, and what its complaints mean
    link.py         the instance of a task
    environment.py  `SingularityEnvironment`

New here? Read `hermes.environments.far` first.
"""

from hermes.environments.singularity.environment import SingularityEnvironment
from hermes.environments.singularity.link import prune
from hermes.environments.singularity.settings import SingularitySettings

__all__ = ["SingularityEnvironment", "SingularitySettings", "prune"]
