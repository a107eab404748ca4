"""`SingularityEnvironment`: commands in a container of Apptainer or Singularity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.environments.far import FarEnvironment
from hermes.environments.singularity.link import SingularityLink

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.environments.singularity.settings import SingularitySettings


class SingularityEnvironment(FarEnvironment):
    """Runs commands in a container; nothing is started before the first one."""

    def __init__(
        self,
        settings: SingularitySettings,
        cwd: str = "",
        *,
        env: dict[str, str | None] | None = None,
        task: str = "main",
        passed: Sequence[str] = (),
        spill_folder: str | None = None,
    ) -> None:
        start = cwd or (settings.workdir if settings.workspace else "/")
        super().__init__(
            SingularityLink(settings),
            start,
            env=env,
            task=task,
            passed=passed,
            spill_folder=spill_folder,
        )
