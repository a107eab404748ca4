"""`SandboxEnvironment`: commands on this machine that see the workspace and little else."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.core.errors import ToolError
from hermes.environments.background import MAX_LEFT_RUNNING
from hermes.environments.command import Isolation, inherited_variables
from hermes.environments.disk.shell_disk import SharedFolderDisk, ShellDisk
from hermes.environments.environment import SharedSettings
from hermes.environments.host.host_environment import HostedEnvironment
from hermes.environments.host.launch import shell
from hermes.environments.sandbox.bwrap import HOME, check_workspace, parse_binds
from hermes.environments.sandbox.sandbox_guardian import SandboxGuardian

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hermes.environments.command import CommandRequest, CommandResult

MEMORY = 2 * 1024**3
PIDS = 256
TMP_BYTES = 1024**3
START_SECONDS = 10.0
SETTLE_SECONDS = 5.0


class SandboxEnvironment(HostedEnvironment):
    """Runs commands in a sandbox: system folders read-only, the workspace, a `/tmp` of its own.

    The sandbox begins with the first command and ends with `cleanup`. `binds` are more folders to
    see, as `SOURCE[:TARGET][:ro|rw]`. Raises `ConfigError` at once for invalid settings.
    """

    label = "the sandbox"

    def __init__(
        self,
        cwd: str = "",
        *,
        shared: SharedSettings | None = None,
        network: bool = False,
        binds: Sequence[str] = (),
        memory: int = MEMORY,
        pids: int = PIDS,
        tmp_bytes: int = TMP_BYTES,
        start_seconds: float = START_SECONDS,
    ) -> None:
        self.workspace = check_workspace(cwd or os.getcwd())
        shared = shared or SharedSettings()
        self._network = network
        self._pids = pids
        self._guardian = SandboxGuardian(
            self.workspace,
            task=shared.task,
            network=network,
            binds=parse_binds(binds),
            memory=memory,
            pids=pids,
            tmp_bytes=tmp_bytes,
            start_seconds=start_seconds,
        )
        super().__init__(
            self.workspace, _Inside(self._guardian), shared, release=self._guardian.close
        )
        self._max_left = min(MAX_LEFT_RUNNING, pids // 2)
        inside = ShellDisk(self.run_script, label="sandbox")
        # Files of the workspace are accessed directly.
        self._files = SharedFolderDisk(self.workspace, self.workspace, inside)
        self.idle_note = (
            f"the sandbox was ended after {shared.idle_seconds / 60:.3g} minutes without use, "
            "and a new one was started; its /tmp and home are empty"
        )

    def info(self) -> Isolation:
        """The isolation that is enforced; starts the sandbox to find out, if need be."""
        self._guardian.open()
        limits = self._guardian.limits
        assert limits is not None
        missing = list(limits.missing)
        if os.getuid() == 0 and self._guardian.user is None:
            missing.append(
                "another user: the workspace belongs to root, so commands are root without rights"
            )
        if self._network:
            missing.append("network: it was switched on")
        return Isolation(
            "sandbox",
            files=f"only {self.workspace} can be written; homes, sockets and keys are not there",
            network="" if self._network else "none, not even this machine's",
            processes=f"a pid namespace of its own; {limits.pids or 'their number is not limited'}",
            memory=limits.memory,
            not_enforced=tuple(missing),
        )

    def cleanup(self) -> None:
        """End everything that was started here, and the sandbox."""
        super().cleanup()
        self._guardian.close()

    def _run(self, request: CommandRequest) -> CommandResult:
        before = self._killed()
        result = self._run_with_room(request)
        limits = self._guardian.limits
        if limits is not None and self._killed() > before:
            result.notes.append(f"something was killed: out of memory (limit: {limits.memory})")
        left = result.background
        if left is not None and left.killed_by:
            # It may hold every process that there can be.
            left.wait(SETTLE_SECONDS)
        return result

    def _run_with_room(self, request: CommandRequest) -> CommandResult:
        """Run a command; at the process limit, stop processes that others left running first."""
        try:
            return super()._run(request)
        except ToolError:
            if not self._full() or not self._stop_left():
                raise
        result = super()._run(request)
        result.notes.append(
            "processes that earlier commands had left running were stopped: they held every "
            "process that there can be"
        )
        return result

    def _killed(self) -> int:
        """The number of processes inside that the OOM killer has ended."""
        limits = self._guardian.limits
        return limits.out_of_memory() if limits is not None else 0

    def _full(self) -> bool:
        """Whether the process limit is reached."""
        limits = self._guardian.limits
        return limits is not None and limits.processes() >= self._pids - 2

    def _stop_left(self) -> bool:
        """End the processes that commands have left running; whether there were any."""
        left = [one for one in self._backgrounds.running() if one.left_behind]
        for one in left:
            one.kill("a limit: it held every process that there can be")
        for one in left:
            one.wait(SETTLE_SECONDS)
        return bool(left)


class _Inside:
    """The sandbox as a `Host`."""

    def __init__(self, guardian: SandboxGuardian) -> None:
        self.guardian = guardian

    def shell(self) -> tuple[bytes, bool]:
        """The shell of this machine, which is there inside too."""
        return shell()

    def is_folder(self, path: str) -> bool:
        """Whether there is such a folder inside."""
        return self.guardian.is_folder(path)

    def plain(self, command: str, variables: Mapping[str, str]) -> None:
        """Which programs there are is only seen inside."""

    def variables(self, pass_env: Sequence[str]) -> dict[str, str]:
        """The inherited variables without paths that do not exist inside."""
        ours = inherited_variables(pass_env)
        kept = {
            name: value
            for name, value in ours.items()
            if name in pass_env or (not value.startswith("/") and name not in ("USER", "LOGNAME"))
        }
        path, _ = shell()
        return {
            **kept,
            "PATH": _visible(ours.get("PATH", "")),
            "HOME": HOME,
            "USER": "hermes",
            "LOGNAME": "hermes",
            "SHELL": os.fsdecode(path),
            "TMPDIR": "/tmp",
        }


def _visible(path: str) -> str:
    """The folders of a search path that exist inside as a rule."""
    seen = [one for one in path.split(":") if one.startswith(("/usr/", "/bin", "/sbin", "/opt/"))]
    return ":".join(dict.fromkeys([*seen, "/usr/local/bin", "/usr/bin", "/bin"]))
