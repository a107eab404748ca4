"""`FarEnvironment`: base of the backends reached through a shell (SSH, Docker, Singularity)."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

import hermes.environments.shell_state as shell_state
from hermes.core.errors import ToolError
from hermes.environments.background import MOST_LEFT, too_many
from hermes.environments.command import CommandResult, Order, PlaceError
from hermes.environments.command_wait import attend
from hermes.environments.disk.shell_disk import ShellDisk
from hermes.environments.env_vars import UNATTENDED, settled
from hermes.environments.environment import Environment
from hermes.environments.remote_shell.connection import Connection
from hermes.environments.remote_shell.framing import BrokenChannelError
from hermes.environments.remote_shell.remote_background import FarBackground, begin
from hermes.environments.remote_shell.run import Request, run, script

if TYPE_CHECKING:
    from hermes.environments.command import Isolation
    from hermes.environments.disk.shared_folder import SharedFolderDisk
    from hermes.environments.environment import Shared
    from hermes.environments.host.process import Process
    from hermes.environments.remote_shell.connection import Link
    from hermes.environments.remote_shell.run import Done


class FarEnvironment(Environment):
    """Runs commands there, each in a fresh shell with the folder and variables of the last one."""

    def __init__(self, link: Link, cwd: str = "", *, shared: Shared | None = None) -> None:
        # Made absolute at the first command, when it is known where home is.
        super().__init__(cwd or "~", shared, rest=lambda: self._connection.close())
        self._first_folder = self.cwd
        self.link = link
        self.label = link.label
        self._connection = Connection(link, task=self._task)
        self._disk = ShellDisk(self.run_script, label=link.label, there=self._there)
        if not link.lasts:
            self.woken = (
                f"{link.label} was let go after {self._idle.seconds / 60:.3g} minutes without use "
                "and has been started anew; what was kept only there is gone"
            )

    @property
    def disk(self) -> ShellDisk | SharedFolderDisk:
        """The files there."""
        return self._disk

    def open(self) -> list[str]:
        """Connect, if need be; what there is to say of that. Raises `PlaceError`."""
        with self._idle:
            lost = self._connection.open()
            self._first_folder = self._resolved(self._first_folder)
            self.cwd = self._resolved(self.cwd)
            return [self._anew] if lost else []

    def run_script(self, text: str, data: bytes = b"") -> tuple[int, bytes, bytes]:
        """Run a script of ours there: its exit code, standard output and standard error."""
        with self._idle:
            for _ in range(2):
                self.open()
                try:
                    request = Request(self._connection, Order(text, stdin=data), {})
                    code, out, err = script(self._connection, request)
                except BrokenChannelError:
                    continue
                if code is None:
                    raise PlaceError(f"{self.label} does not answer", hint="Try again later.")
                return code, out, err
            raise self._lost()

    def info(self) -> Isolation:
        """What is really isolated there."""
        return self.link.info()

    def cleanup(self) -> None:
        """End everything that was started here and was not detached."""
        self._idle.close()
        self._end_beside(self._connection.close)

    def absolute(self, folder: str) -> str:
        """Where a folder is there, by a name that commands would understand."""
        self.open()
        return self._resolved(folder)

    # -- commands -----------------------------------------------------------------------------

    def _run(self, order: Order) -> CommandResult:
        order.check_names()
        notes = self.open()
        if order.pty:
            result = attend(self._begin(order), order)
            result.notes += notes
            return result
        for again in (True, False):
            try:
                result = self._run_once(order)
            except BrokenChannelError:
                self._connection.drop()
                if again:
                    self._connection.open()
                    notes.append(self._anew)
                continue
            result.notes[:0] = notes
            return result
        raise self._lost()

    def _run_once(self, order: Order) -> CommandResult:
        folder = self.cwd if order.cwd is None else self._resolved(order.cwd)
        keep = bool(self.definitions) or not shell_state.leaves_no_trace(order.command)
        collector = self._collector()
        # Workers keep programs from asking already.
        request = Request(self._connection, order, self._variables(order), self.definitions)
        done = run(self._connection, request, order, collector, folder=folder, keep=keep)
        if done.run.no_folder:
            collector.discard()
            raise ToolError(f"{folder} is no folder", hint="Give a workdir that exists.")
        notes = self._notes(done, folder)
        left, pids = None, tuple(done.left.pids if done.left is not None else ())
        if done.left is not None:
            left = self._listening(
                done.left.process, order, request, folder, done.left.pids, left=True
            )
            left.started_at -= done.seconds
            said = too_many(left, pids, MOST_LEFT)
            notes, pids = notes + said, () if said else pids
        if done.end.why == "exited":
            given = settled({**self._connection.known.env, **UNATTENDED}, request.variables)
            self._carry(done.run.state, given, self.cwd if order.cwd is None else None)
            notes += self._unkept(order.command, done.run.state)
        return CommandResult(
            done.run.code,
            self._output(collector),
            cwd=self.cwd,
            duration=done.seconds,
            ended=done.end.why,
            background=left,
            background_pids=pids,
            prompt=done.end.prompt,
            notes=[*notes, *done.end.notes],
        )

    def _notes(self, done: Done, folder: str) -> list[str]:
        """What there is to say of how a command ended."""
        notes = []
        if done.run.moved_to:
            notes.append(f"{folder} is gone; the command ran in {done.run.moved_to}")
            self.cwd = done.run.moved_to
        if done.end.why == "lost":
            notes.append(f"the shell on {self.label} that ran it, or the connection, is gone")
        return notes

    def _begin(self, order: Order) -> FarBackground:
        order.check_names()
        self.open()
        folder = self.cwd if order.cwd is None else self._resolved(order.cwd)
        variables = self._variables(order)
        if not order.pty:
            variables = {**UNATTENDED, **variables}
        try:
            request = Request(self._connection, order, variables, self.definitions)
            started = begin(self._connection, request, order, folder)
        except BrokenChannelError:
            raise self._lost() from None
        return self._listening(
            started.process, order, request, folder, [started.pid],
            mark=started.mark, input_file=started.input_file,
        )  # fmt: skip

    def _listening(
        self,
        process: Process,
        order: Order,
        request: Request,
        folder: str,
        known: list[int],
        *,
        mark: str = "",
        input_file: int = -1,
        left: bool = False,
    ) -> FarBackground:
        """A command beside others, or what one left running."""
        background = self._beside.add(
            lambda name: FarBackground(
                self._connection, process, worker=request.worker, number=request.number,
                name=name, command=order.command, cwd=folder, task=self._task, known=known,
                mark=mark, input_file=input_file, pty=order.pty, make_spill=self._spill,
                ansi=self._shared.ansi,
            ),
            order.name,
        )  # fmt: skip
        background.left_behind = left
        background.listen()
        return background

    # -- the rest of it -----------------------------------------------------------------------

    @property
    def _anew(self) -> str:
        if not self.link.lasts:
            return (
                f"{self.label} came to its end and has been started anew; "
                "what ran there, and what was kept only there, is gone"
            )
        return (
            f"the connection to {self.label} was lost and has been made anew; "
            "what ran there was ended"
        )

    def _lost(self) -> PlaceError:
        return PlaceError(f"the connection to {self.label} is lost", hint="Try again later.")

    def _resolved(self, folder: str) -> str:
        known = self._connection.known
        if folder == "~" or folder.startswith("~/"):
            folder = known.home + folder[1:]
        base = self.cwd if self.cwd.startswith("/") else known.cwd
        return posixpath.normpath(posixpath.join(base, folder))

    def _variables(self, order: Order) -> dict[str, str | None]:
        """What is set for one command there: what is passed on of ours, the task's, its own."""
        return {**self._shared.passed_on(), **self.env, **order.env}
