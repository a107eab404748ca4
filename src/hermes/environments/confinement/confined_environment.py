"""`ConfinedEnvironment`: commands on this machine, with rights limited by the operating system."""

from __future__ import annotations

import os
import re
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hermes.environments.command import Isolation
from hermes.environments.confinement.git_guard import GitGuard
from hermes.environments.confinement.machine import ConfinedMachine
from hermes.environments.confinement.policy import git_folders, own_folders
from hermes.environments.host.host_environment import LocalEnvironment, LocalHost
from hermes.environments.host.launch import Launcher

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hermes.core.context import Cancellation
    from hermes.environments.background import Background
    from hermes.environments.command import CommandRequest, CommandResult
    from hermes.environments.confinement.policy import Settings
    from hermes.environments.environment import SharedSettings
    from hermes.environments.host.host_environment import Host

NOT_CONFINED = "not confined: commands have all rights of the user"
# How programs report a write or a read that the system refused.
_REFUSED = re.compile(
    r"^(?P<before>.*?)(?P<why>Read-only file system|EROFS|Permission denied|EACCES"
    r"|Operation not permitted|EPERM).*$",
    re.MULTILINE,
)
_PATH = re.compile(r"(?:^|[\s'\"=:(\[])(?P<path>(?:~|/)[^\s'\":,)\]]+)")
_TAIL = 20_000
_NETWORKS = {"open": "", "hosts": "the hosts of terminal.confine.hosts", "off": "none"}
# Words without any sign that a shell acts on.
_PLAIN = re.compile(r"[\w./+:,@%=\- \t]+", re.ASCII)


class ConfinedEnvironment(LocalEnvironment):
    """Runs commands confined; `outside()` lifts that for the commands of one thread."""

    def __init__(
        self,
        cwd: str,
        settings: Settings,
        *,
        shared: SharedSettings | None = None,
        machine: ConfinedMachine | None = None,
    ) -> None:
        workspace = os.path.realpath(cwd or os.getcwd())
        task = shared.task if shared is not None else ""
        self._thread = threading.local()
        self.machine = machine or ConfinedMachine(workspace, settings, task=task)
        super().__init__(cwd, shared=shared, host=self.machine)
        self._outside = LocalHost(), Launcher(LocalHost(), self._task, self._shared.pass_env)
        self._git: GitGuard | None = None
        self._announced = False

    # The base class reads and sets these; a thread that is outside sees the plain ones. Variables,
    # functions and aliases of confined commands stay inside: they decide what a name runs.

    @property
    def env(self) -> dict[str, str | None]:
        return {} if self.is_outside else self._inner_env

    @env.setter
    def env(self, env: dict[str, str | None]) -> None:
        self._inner_env = env

    @property
    def definitions(self) -> str:
        return "" if self.is_outside else self._inner_definitions

    @definitions.setter
    def definitions(self, definitions: str) -> None:
        if not self.is_outside:
            self._inner_definitions = definitions

    @property
    def _host(self) -> Host:
        return self._outside[0] if self.is_outside else self._inner_host

    @_host.setter
    def _host(self, host: Host) -> None:
        self._inner_host = host

    @property
    def _launcher(self) -> Launcher:
        return self._outside[1] if self.is_outside else self._inner_launcher

    @_launcher.setter
    def _launcher(self, launcher: Launcher) -> None:
        self._inner_launcher = launcher

    @property
    def is_outside(self) -> bool:
        """Whether commands of this thread run without confinement now."""
        return getattr(self._thread, "outside", False)

    @property
    def mechanism(self) -> str:
        """How commands are confined; empty where they are not."""
        return self.machine.mechanism

    def runs_outside(self, command: str) -> bool:
        """Whether the settings let a command run without confinement: one program, no shell."""
        words = command.split()
        return bool(_PLAIN.fullmatch(command)) and any(
            words[: len(prefix.split())] == prefix.split()
            for prefix in self.machine.settings.outside
            if prefix.strip()
        )

    def confines(self, command: Background) -> bool:
        """Whether a background command was started confined, and not outside."""
        return bool(self.mechanism) and command.guardian is self.machine.guardian

    @contextmanager
    def outside(self) -> Iterator[None]:
        """Run the commands of this thread with all rights of the user, once a person agreed."""
        self._thread.outside = True
        try:
            yield
        finally:
            self._thread.outside = False

    def cleanup(self) -> None:
        """End everything that was started here, and the confinement with it."""
        super().cleanup()
        self.machine.close()
        if self._git is not None:
            # What background commands changed since the last one.
            self._git.restore()

    def info(self) -> Isolation:
        """The limits that are in force."""
        if not self.mechanism:
            plain = super().info()
            reasons = (NOT_CONFINED, *self.machine.failures, *plain.not_enforced)
            return plain._replace(not_enforced=reasons)
        missing = ["memory"]
        if self.mechanism == "landlock":
            missing += [
                "your other terminals can be written to",
                "other processes are listed",
                "/tmp is not writable; programs that ignore TMPDIR fail",
            ]
        return Isolation(
            "local",
            files=f"{self.mechanism}: the workspace, a temporary folder and package caches are "
            "writable, secrets are hidden",
            network=_NETWORKS[self.machine.settings.network],
            processes="other processes can't be signalled or traced; all end with the task",
            not_enforced=tuple(missing),
        )

    def _run(self, request: CommandRequest) -> CommandResult:
        self._prepare()
        result = super()._run(request)
        result.notes.extend(self._after(result))
        return result

    def run_program(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        cancellation: Cancellation | None = None,
    ) -> CommandResult:
        """Run a program without a shell, with these variables; whatever it leaves running is ended.

        Raises `ToolError` where it can't be started.
        """
        self._prepare()
        if not self.is_outside:
            env = {**env, **self.machine.own_variables()}
        result = super().run_program(argv, cwd=cwd, env=env, cancellation=cancellation)
        result.notes.extend(self._after(result))
        return result

    def _begin(self, request: CommandRequest) -> Background:
        self._prepare()
        return super()._begin(request)

    def _prepare(self) -> None:
        if not self.is_outside:
            self.machine.refresh()
        if self._git is None and not self.is_outside:
            workspace = self.machine.workspace
            roots = [workspace, *git_folders(workspace)]
            self._git = GitGuard(roots, own_folders([workspace]))

    def _after(self, result: CommandResult) -> list[str]:
        notes = []
        if not self._announced:
            self._announced = True
            if not self.mechanism and self.machine.wanted:
                notes.append(f"{NOT_CONFINED} ({'; '.join(self.machine.failures) or 'no means'})")
        if self.is_outside:
            return notes
        if self._git is not None:
            notes += self._git.restore()
        if self.machine.proxy is not None:
            notes += [
                f"blocked: commands may not reach {host}; terminal.confine.hosts opens it"
                for host in self.machine.proxy.take_blocked()
            ]
        if self.mechanism and result.exit_code:
            notes += blocked(result.output.merged[-_TAIL:], self.machine)
        return notes


def blocked(text: str, machine: ConfinedMachine) -> list[str]:
    """One line when a failed command was stopped by the confinement, with the path it named."""
    plan = machine.plan
    if plan is None:
        return []
    for match in _REFUSED.finditer(text):
        read_only = match["why"] in ("Read-only file system", "EROFS")
        # Programs name the path last: `touch: cannot touch '/etc/x': Read-only file system`.
        paths = [os.path.expanduser(found["path"]) for found in _PATH.finditer(match["before"])]
        paths.reverse()
        outside = [path for path in paths if not _is_writable(path, machine)]
        hidden = [path for path in outside if _is_hidden(path, machine)]
        if hidden:
            return [f"blocked: {hidden[0]} is hidden from commands. {_WAY_OUT}"]
        if outside and (read_only or machine.mechanism != "bubblewrap"):
            return [
                (
                    f"blocked: {outside[0]} is outside of what commands may write (the workspace, "
                    f"$TMPDIR, package caches). {_WAY_OUT}"
                )
            ]
        if read_only and not paths:
            return [f"blocked: the file is outside of what commands may write. {_WAY_OUT}"]
    return []


_WAY_OUT = (
    "If it has to be done, call terminal again with outside=true and a reason; a person is asked."
)


def _is_writable(path: str, machine: ConfinedMachine) -> bool:
    plan = machine.plan
    assert plan is not None
    roots = [*plan.write, plan.temporary, "/tmp", "/var/tmp", "/dev"]
    return any(path == root or path.startswith(f"{root}/") for root in roots)


def _is_hidden(path: str, machine: ConfinedMachine) -> bool:
    plan = machine.plan
    assert plan is not None
    return any(path == root or path.startswith(f"{root}/") for root in plan.hidden)
