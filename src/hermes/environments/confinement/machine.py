"""`ConfinedMachine`: this machine with the rights of commands limited by the operating system.

The best mechanism that works here is chosen at the first command:

    bubblewrap   mount, process and user namespaces
    landlock     rules of the kernel on files, signals and sockets (Linux 5.13 or newer)
    seatbelt     profiles of `sandbox-exec` (macOS; never run by our tests)
    none         commands have all rights of the user; every surface says so
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from hermes.core.errors import HermesError, UnavailableError
from hermes.environments.host.host_environment import LocalHost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.environments.confinement.policy import Plan, Settings
    from hermes.environments.host.guardian_client import GuardianClient

MECHANISMS = ("bubblewrap", "landlock", "seatbelt")


class ConfinedMachine(LocalHost):
    """Starts the commands of one task confined; nothing is started before the first one."""

    def __init__(
        self,
        workspace: str,
        settings: Settings,
        *,
        task: str,
        mechanisms: Sequence[str] = MECHANISMS,
    ) -> None:
        self._workspace = workspace
        self._settings = settings.checked()
        self._task = task
        self._mechanisms = mechanisms
        self._owner: GuardianClient | None = None
        self._temporary = ""
        self.plan: Plan | None = None
        # How commands are confined; empty before the first one.
        self.mechanism = ""
        # Why better mechanisms were not used.
        self.failures: list[str] = []

    @property
    def guardian(self) -> GuardianClient:
        """The confined guardian, or the plain one where nothing can confine."""
        if self._owner is None:
            self._owner = self._choose()
        return self._owner

    def is_folder(self, path: str) -> bool:
        """Whether there is such a folder, as commands see it."""
        look = getattr(self.guardian, "is_folder", None)
        return bool(look(path)) if look else os.path.isdir(path)

    def variables(self, pass_env: Sequence[str]) -> dict[str, str]:
        """The allow-list, what is named, and the task's own temporary folder."""
        assert self.guardian
        allowed = self.plan.variables if self.plan else ()
        found = super().variables([*pass_env, *allowed])
        if self.mechanism == "bubblewrap":
            found["TMPDIR"] = "/tmp"
        elif self.mechanism:
            found["TMPDIR"] = self._temporary
        return found

    def close(self) -> None:
        """End the confined guardian with everything it started; remove the temporary folder."""
        import shutil

        guardian, self._owner = self._owner, None
        if self.mechanism and guardian is not None:
            guardian.close()
        for suffix in ("", ".masked"):
            if self._temporary:
                shutil.rmtree(self._temporary + suffix, ignore_errors=True)
        if self._temporary:
            with suppress(OSError):
                os.unlink(f"{self._temporary}.empty")
        self._temporary = ""

    def _choose(self) -> GuardianClient:
        from hermes.environments.confinement import confined_guardian, policy

        if self._settings.mode == "off":
            self.mechanism = ""
            return super().guardian
        self._temporary = temporary_folder()
        self.plan = policy.plan(self._workspace, self._temporary, self._settings)
        for mechanism in self._mechanisms:
            try:
                guardian = confined_guardian.guardian_for(mechanism, self.plan, task=self._task)
                guardian.open()
            except (HermesError, OSError) as error:
                self.failures.append(f"{mechanism}: {error}")
            else:
                self.mechanism = mechanism
                return guardian
        if self._settings.mode == "on":
            raise UnavailableError(
                f"commands can't be confined here: {'; '.join(self.failures)}",
                hint="Install bubblewrap, or set terminal.confine.mode to auto.",
            )
        return super().guardian


def temporary_folder() -> str:
    """A new private folder, named by our process; those of programs that ended are removed."""
    import shutil
    import tempfile

    base = os.path.realpath(tempfile.gettempdir())
    prefix = f"hermes-{os.getuid() if hasattr(os, 'getuid') else 0}-"
    with suppress(OSError), os.scandir(base) as entries:
        for entry in entries:
            pid = entry.name.removeprefix(prefix).partition("-")[0]
            if entry.name.startswith(prefix) and pid.isdecimal() and not _alive(int(pid)):
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path, ignore_errors=True)
                else:
                    with suppress(OSError):
                        os.unlink(entry.path)
    return tempfile.mkdtemp(prefix=f"{prefix}{os.getpid()}-", dir=base)


def _alive(pid: int) -> bool:
    if sys.platform == "win32":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
