"""`SshEnvironment`: commands on another host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.environments.far import FarEnvironment
from hermes.environments.ssh.link import SshLink

if TYPE_CHECKING:
    from hermes.environments.sharing import Shared
    from hermes.environments.ssh.settings import SshSettings


class SshEnvironment(FarEnvironment):
    """Runs commands on a host; nothing is connected before the first one."""

    def __init__(
        self,
        settings: SshSettings,
        cwd: str = "",
        *,
        shared: Shared | None = None,
    ) -> None:
        super().__init__(SshLink(settings), cwd, shared=shared)
