"""`SshEnvironment`: commands on another host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.environments.far import FarEnvironment
from hermes.environments.ssh.link import SshLink

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.environments.ssh.settings import SshSettings


class SshEnvironment(FarEnvironment):
    """Runs commands on a host; nothing is connected before the first one."""

    def __init__(
        self,
        settings: SshSettings,
        cwd: str = "",
        *,
        env: dict[str, str | None] | None = None,
        task: str = "main",
        passed: Sequence[str] = (),
        spill_folder: str | None = None,
    ) -> None:
        super().__init__(
            SshLink(settings), cwd, env=env, task=task, passed=passed, spill_folder=spill_folder
        )
