"""`SandboxEnvironment`: commands on this machine that see the workspace and little else."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.core.errors import ToolError
from hermes.environments.idling import Idle
from hermes.environments.local.environment import LocalEnvironment
from hermes.environments.local.shell import shell
from hermes.environments.protocol import Isolation
from hermes.environments.sandbox.owner import SandboxOwner
from hermes.environments.sandbox.walls import HOME, checked_workspace, parsed_binds
from hermes.environments.sharing import Shared
from hermes.environments.variables import passed_variables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from hermes.core.context import Cancellation
    from hermes.environments.protocol import Background, CommandResult
    from hermes.runtime.disk import Disk

MEMORY = 2 * 1024**3
PIDS = 256
TMP_BYTES = 1024**3
START_SECONDS = 10.0
SETTLE_SECONDS = 5.0


class SandboxEnvironment:
    """Runs commands behind walls: system folders read-only, the workspace, a `/tmp` of its own.

    The sandbox begins with the first command and ends with `cleanup`. `binds` are more folders to
    see, as `SOURCE[:TARGET][:ro|rw]`. Raises `ConfigError` at once for what can't be.
    """

    def __init__(
        self,
        cwd: str = "",
        *,
        shared: Shared | None = None,
        network: bool = False,
        binds: Sequence[str] = (),
        memory: int = MEMORY,
        pids: int = PIDS,
        tmp_bytes: int = TMP_BYTES,
        start_seconds: float = START_SECONDS,
    ) -> None:
        self.workspace = checked_workspace(cwd or os.getcwd())
        shared = shared or Shared()
        self._network = network
        self._pids = pids
        self._owner = SandboxOwner(
            self.workspace,
            task=shared.task,
            network=network,
            binds=parsed_binds(binds),
            memory=memory,
            pids=pids,
            tmp_bytes=tmp_bytes,
            start_seconds=start_seconds,
        )
        self._inner = LocalEnvironment(self.workspace, shared=shared, place=_Inside(self._owner))
        self._disk: Disk | None = None
        self._idle = Idle(shared.idle_seconds, busy=self._goes_on, rest=self._owner.close)

    @property
    def cwd(self) -> str:
        """The folder that the next command starts in."""
        return self._inner.cwd

    @cwd.setter
    def cwd(self, folder: str) -> None:
        self._inner.cwd = folder

    @property
    def env(self) -> dict[str, str | None]:
        """The variables that the task has set."""
        return self._inner.env

    @env.setter
    def env(self, variables: dict[str, str | None]) -> None:
        self._inner.env = variables

    @property
    def definitions(self) -> str:
        """Functions and aliases that earlier commands defined, as shell text."""
        return self._inner.definitions

    @property
    def disk(self) -> Disk:
        """The files inside; those of the workspace are reached from out here."""
        if self._disk is None:
            from hermes.environments.shared_folder import SharedFolderDisk
            from hermes.environments.shell_disk import ShellDisk

            inside = ShellDisk(self._answer, label="sandbox")
            self._disk = SharedFolderDisk(self.workspace, self.workspace, inside)
        return self._disk

    def execute(
        self,
        command: str,
        *,
        timeout: float | None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: str | bytes | None = None,
        on_output: Callable[[str], None] | None = None,
        cancellation: Cancellation | None = None,
        pty: bool = False,
    ) -> CommandResult:
        """Run a command to its end, or stop it and everything it started."""
        with self._idle:
            return self._execute(
                command,
                timeout=timeout,
                cwd=cwd,
                env=env,
                stdin=stdin,
                on_output=on_output,
                cancellation=cancellation,
                pty=pty,
            )

    def _execute(self, command: str, **options: Any) -> CommandResult:
        limits = self._owner.limits
        before = limits.out_of_memory() if limits is not None else 0
        notes: list[str] = []
        if self._idle.rested():
            notes.append(
                f"the sandbox was ended after {self._idle.seconds / 60:.3g} minutes without use, "
                "and a new one was started; its /tmp and home are empty"
            )
        for again in (True, False):
            try:
                result = self._inner.execute(command, **options)
                break
            except ToolError:
                if not again or not self._full() or not self._stop_left():
                    raise
                notes.append("what earlier commands had left running was stopped: it held every "
                             "process that there can be")  # fmt: skip
        limits = self._owner.limits
        if limits is not None and limits.out_of_memory() > before:
            notes.append(f"something was killed: out of memory (limit: {limits.memory})")
        left = result.background
        if left is not None and len(result.background_pids) > self._pids // 2:
            left.kill(f"a limit: no more than {self._pids} processes may run")
            notes.append(f"{len(result.background_pids)} processes were left running and stopped")
        if left is not None and left.killed_by:
            # It may hold every process that there can be.
            left.wait(SETTLE_SECONDS)
        result.notes += notes
        return result

    def start(
        self,
        command: str,
        *,
        name: str = "",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: str | bytes | None = None,
        pty: bool = False,
    ) -> Background:
        """Start a command that runs while others do; it ends with the task at the latest."""
        with self._idle:
            return self._inner.start(command, name=name, cwd=cwd, env=env, stdin=stdin, pty=pty)

    def processes(self) -> Sequence[Background]:
        """What runs or ran beside: started so, or left behind by commands."""
        return self._inner.processes()

    def info(self) -> Isolation:
        """What is really enforced; the sandbox is started to find out, if need be."""
        self._owner.open()
        limits = self._owner.limits
        assert limits is not None
        missing = list(limits.missing)
        if os.getuid() == 0 and self._owner.user is None:
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
        self._idle.close()
        self._inner.cleanup()
        self._owner.close()

    def _goes_on(self) -> bool:
        return any(one.state == "running" for one in self._inner.processes())

    def _full(self) -> bool:
        """Whether no more processes can be started inside."""
        limits = self._owner.limits
        return limits is not None and limits.processes() >= self._pids - 2

    def _stop_left(self) -> bool:
        """End what commands have left running; whether there was any."""
        left = [one for one in self._inner.processes() if one.left_behind]
        left = [one for one in left if one.state == "running"]
        for one in left:
            one.kill("a limit: it held every process that there can be")
        for one in left:
            one.wait(SETTLE_SECONDS)
        return bool(left)

    def _answer(self, script: str, data: bytes = b"") -> tuple[int, bytes, bytes]:
        """Run a script inside, apart from the task's commands; its exit code and raw output."""
        from hermes.environments.local.answering import answer

        path, _ = shell()
        words = [path, b"-c", script.encode("utf-8", "surrogateescape")]
        with self._idle:
            return answer(self._owner, words, data=data)


class _Inside:
    """The place that the sandbox is, for the environment of this machine."""

    def __init__(self, owner: SandboxOwner) -> None:
        self.owner = owner

    def shell(self) -> tuple[bytes, bool]:
        """The shell of this machine, which is there inside too."""
        return shell()

    def is_folder(self, path: str) -> bool:
        """Whether there is such a folder inside."""
        return self.owner.is_folder(path)

    def variables(self, named: Sequence[str]) -> dict[str, str]:
        """The allow-list without the places that are not there, and what is named."""
        ours = passed_variables(named)
        kept = {
            name: value
            for name, value in ours.items()
            if name in named or (not value.startswith("/") and name not in ("USER", "LOGNAME"))
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
    """Those folders of a search path that are there inside as a rule."""
    seen = [one for one in path.split(":") if one.startswith(("/usr/", "/bin", "/sbin", "/opt/"))]
    return ":".join(dict.fromkeys([*seen, "/usr/local/bin", "/usr/bin", "/bin"]))
