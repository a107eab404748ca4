"""`RemoteShellEnvironment`: base of the backends that are reached through a remote shell."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

import hermes.environments.shell_state as shell_state
from hermes.core.errors import ToolError
from hermes.environments.background import MAX_LEFT_RUNNING, stop_excess
from hermes.environments.command import (
    UNATTENDED,
    BackendError,
    CommandRequest,
    CommandResult,
    apply_changes,
)
from hermes.environments.command_wait import wait_on_terminal
from hermes.environments.disk.shell_disk import ShellDisk
from hermes.environments.environment import Environment
from hermes.environments.remote_shell.connection import BrokenChannelError, Connection
from hermes.environments.remote_shell.remote_background import RemoteBackground, begin
from hermes.environments.remote_shell.run import WorkerScript, run, run_script

if TYPE_CHECKING:
    from hermes.environments.command import Isolation
    from hermes.environments.disk.shell_disk import SharedFolderDisk
    from hermes.environments.environment import SharedSettings
    from hermes.environments.host.process import Process
    from hermes.environments.remote_shell.connection import Transport
    from hermes.environments.remote_shell.run import RunOutcome


class RemoteShellEnvironment(Environment):
    """Runs commands on a remote, each in a fresh shell with the state of the last one."""

    def __init__(
        self, transport: Transport, cwd: str = "", *, shared: SharedSettings | None = None
    ) -> None:
        # Made absolute at the first command, when the home directory is known.
        super().__init__(cwd or "~", shared, release=lambda: self._connection.close())
        self._first_folder = self.cwd
        self.transport = transport
        self.label = transport.label
        self._connection = Connection(transport, task=self._task)
        self._disk = ShellDisk(self.run_script, label=transport.label, remote=self._remote_path)
        if not transport.persistent:
            self.idle_note = (
                f"{transport.label} was ended after {self._idle.seconds / 60:.3g} minutes without "
                "use, and a new one was started; files that were only there are gone"
            )

    @property
    def disk(self) -> ShellDisk | SharedFolderDisk:
        """The files there."""
        return self._disk

    def open(self) -> list[str]:
        """Connect, if need be; notes for the model. Raises `BackendError`."""
        with self._idle:
            lost = self._connection.open()
            self._first_folder = self._resolved(self._first_folder)
            self.cwd = self._resolved(self.cwd)
            return [self._reconnected] if lost else []

    def run_script(self, script: str, data: bytes = b"") -> tuple[int, bytes, bytes]:
        """Run an internal script there: its exit code, stdout and stderr."""
        with self._idle:
            for _ in range(2):
                self.open()
                try:
                    request = CommandRequest(script, stdin=data)
                    work = WorkerScript(self._connection, request, {})
                    code, out, err = run_script(self._connection, work)
                except BrokenChannelError:
                    continue
                if code is None:
                    raise BackendError(f"{self.label} does not answer", hint="Try again later.")
                return code, out, err
            raise self._lost()

    def info(self) -> Isolation:
        """The isolation that is enforced there."""
        return self.transport.info()

    def cleanup(self) -> None:
        """End all commands that were not detached."""
        self._idle.close()
        self._end_backgrounds(self._connection.close)

    def absolute(self, folder: str) -> str:
        """The absolute path of a folder there."""
        self.open()
        return self._resolved(folder)

    # -- commands -----------------------------------------------------------------------------

    def _run(self, request: CommandRequest) -> CommandResult:
        request.check_names()
        notes = self.open()
        if request.pty:
            result = wait_on_terminal(self._begin(request), request)
            result.notes.extend(notes)
            return result
        for retry in (True, False):
            try:
                result = self._run_once(request)
            except BrokenChannelError:
                self._connection.drop()
                if retry:
                    self._connection.open()
                    notes.append(self._reconnected)
                continue
            result.notes[:0] = notes
            return result
        raise self._lost()

    def _run_once(self, request: CommandRequest) -> CommandResult:
        folder = self.cwd if request.cwd is None else self._resolved(request.cwd)
        keep = bool(self.definitions) or not shell_state.is_stateless(request.command)
        collector = self._collector()
        # A worker has the variables of unattended runs already.
        script = WorkerScript(self._connection, request, self._variables(request), self.definitions)
        ran = run(self._connection, script, request, collector, folder=folder, keep=keep)
        report = ran.report
        if report.no_folder:
            collector.discard()
            raise ToolError(f"{folder} is no folder", hint="Give a workdir that exists.")
        notes = self._notes(ran, folder)
        background, pids = None, tuple(ran.left.pids if ran.left is not None else ())
        if ran.left is not None:
            background = self._background(
                ran.left.process, request, script, folder, pids[0], left_behind=True
            )
            background.started_at -= ran.seconds
            excess = stop_excess(background, pids, MAX_LEFT_RUNNING)
            notes, pids = notes + excess, () if excess else pids
        if ran.outcome.reason == "exited":
            given = apply_changes({**self._connection.info.env, **UNATTENDED}, script.variables)
            self._carry(report.state, given, self.cwd if request.cwd is None else None)
            notes += self._state_notes(request.command, report.state)
        return CommandResult(
            report.code,
            self._output(collector),
            cwd=self.cwd,
            duration=ran.seconds,
            ended=ran.outcome.reason,
            background=background,
            background_pids=pids,
            prompt=ran.outcome.prompt,
            notes=[*notes, *ran.outcome.notes],
        )

    def _notes(self, ran: RunOutcome, folder: str) -> list[str]:
        notes = []
        if ran.report.moved_to:
            notes.append(f"{folder} is gone; the command ran in {ran.report.moved_to}")
            self.cwd = ran.report.moved_to
        if ran.outcome.reason == "lost":
            notes.append(f"the shell on {self.label} that ran it, or the connection, is gone")
        return notes

    def _begin(self, request: CommandRequest) -> RemoteBackground:
        request.check_names()
        self.open()
        try:
            return self._begin_once(request)
        except BrokenChannelError:
            if not request.pty or self.transport.terminal != "transport":
                raise self._lost() from None
        # A daemon that runs without root may close the whole connection when it fails to allocate
        # a terminal. A script there can still make one.
        self.transport.terminal = "remote"
        self._connection.drop()
        self.open()
        try:
            return self._begin_once(request)
        except BrokenChannelError:
            raise self._lost() from None

    def _begin_once(self, request: CommandRequest) -> RemoteBackground:
        folder = self.cwd if request.cwd is None else self._resolved(request.cwd)
        variables = self._variables(request)
        if not request.pty:
            variables = {**UNATTENDED, **variables}
        script = WorkerScript(self._connection, request, variables, self.definitions)
        started = begin(self._connection, script, request, folder)
        return self._background(
            started.process, request, script, folder, started.pid,
            mark=started.mark, stdin=started.stdin,
        )  # fmt: skip

    def _background(
        self,
        process: Process,
        request: CommandRequest,
        script: WorkerScript,
        folder: str,
        pid: int,
        *,
        mark: str = "",
        stdin: int = -1,
        left_behind: bool = False,
    ) -> RemoteBackground:
        """Register a background command, or the processes that a command left running."""
        background = self._backgrounds.add(
            lambda name: RemoteBackground(
                self._connection, process, worker=script.worker, number=script.number,
                name=name, command=request.command, cwd=folder, task=self._task, pid=pid,
                mark=mark, stdin=stdin, pty=request.pty, make_spill=self._spill,
                ansi=self._shared.ansi,
            ),
            request.name,
        )  # fmt: skip
        background.left_behind = left_behind
        background.follow()
        return background

    # -- helpers ------------------------------------------------------------------------------

    @property
    def _reconnected(self) -> str:
        if not self.transport.persistent:
            return (
                f"{self.label} came to its end, and a new one was started; "
                "its processes, and files that were only there, are gone"
            )
        return (
            f"the connection to {self.label} was lost and has been made anew; "
            "the processes there were ended"
        )

    def _lost(self) -> BackendError:
        return BackendError(f"the connection to {self.label} is lost", hint="Try again later.")

    def _resolved(self, folder: str) -> str:
        remote = self._connection.info
        if folder == "~" or folder.startswith("~/"):
            folder = remote.home + folder[1:]
        base = self.cwd if self.cwd.startswith("/") else remote.cwd
        return posixpath.normpath(posixpath.join(base, folder))

    def _variables(self, request: CommandRequest) -> dict[str, str | None]:
        """The variables of one command: passed on from here, the task's, its own."""
        return {**self._shared.passed_env(), **self.env, **request.env}
