"""`SingularityEnvironment`: commands in a container of Apptainer or Singularity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.environments.far import FarEnvironment
from hermes.environments.singularity.link import SingularityLink

if TYPE_CHECKING:
    from hermes.environments.sharing import Shared
    from hermes.environments.singularity.settings import SingularitySettings


class SingularityEnvironment(FarEnvironment):
    """Runs commands in a container; nothing is started before the first one."""

    def __init__(
        self,
        settings: SingularitySettings,
        cwd: str = "",
        *,
        shared: Shared | None = None,
    ) -> None:
        start = cwd or (settings.workdir if settings.workspace else "/")
        super().__init__(SingularityLink(settings), start, shared=shared)
