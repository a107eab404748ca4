"""`LocalEnvironment`: commands on this machine as we are, for one task."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from hermes.environments.local.hosted import HostedEnvironment
from hermes.environments.local.place import ThisMachine
from hermes.environments.results import Isolation
from hermes.runtime.disk import LocalDisk

if TYPE_CHECKING:
    from hermes.environments.sharing import Shared


class LocalEnvironment(HostedEnvironment):
    """Runs commands here, with all that we may do ourselves."""

    label = "this machine"

    def __init__(self, cwd: str = "", *, shared: Shared | None = None) -> None:
        super().__init__(os.path.abspath(cwd or os.getcwd()), ThisMachine(), shared)
        self._files = LocalDisk()

    def info(self) -> Isolation:
        """Nothing is kept from a command here but its escape."""
        missing = ["files", "network", "memory"]
        if sys.platform != "linux":
            missing.append("processes that leave their process group are not found again")
        return Isolation(
            "local",
            processes="every process is owned by its task and ended with it",
            not_enforced=tuple(missing),
        )
