"""`LocalEnvironment`: commands on this machine, owned by a task from their start to their end."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import TYPE_CHECKING

import hermes.environments.shell_state as shell_state
from hermes.core.errors import ToolError
from hermes.environments.local.background import LocalBackground
from hermes.environments.local.foreground import follow
from hermes.environments.local.owner import MARK
from hermes.environments.local.place import ThisMachine
from hermes.environments.local.process import Process
from hermes.environments.local.ready import Ready
from hermes.environments.local.shell import as_bytes, not_started, script, typed_bytes
from hermes.environments.local.stdin import readable
from hermes.environments.output.collector import Collector
from hermes.environments.output.spill import Spill
from hermes.environments.protocol import CommandResult, Isolation
from hermes.environments.sharing import Shared
from hermes.environments.variables import command_environment
from hermes.environments.watching import burning, disk_note
from hermes.runtime.disk import LocalDisk

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hermes.core.context import Cancellation
    from hermes.environments.local.place import Place
    from hermes.runtime.disk import Disk

# So many commands may run beside others, and so many processes may be left running by one.
MOST_BACKGROUND = 32
MOST_LEFT = 100


class LocalEnvironment:
    """Runs commands here, each in a fresh shell with the folder and variables of the last one."""

    def __init__(
        self,
        cwd: str = "",
        *,
        shared: Shared | None = None,
        place: Place | None = None,
    ) -> None:
        self._place: Place = place or ThisMachine()
        self.cwd = os.path.abspath(cwd or os.getcwd())
        self._shared = shared or Shared()
        self.env = self._shared.env
        # Two environments may be of tasks that have the same name.
        self._task = f"{self._shared.task}/{os.urandom(4).hex()}"
        self._definitions = ""
        self._lock = threading.Lock()
        self._background: list[LocalBackground] = []
        self._numbers = 0
        self._busy: dict[int, tuple[float, float]] = {}
        self._disk = LocalDisk()
        # Our own variables that commands may see, as they were at the first command.
        self._ours: dict[str, str] | None = None
        self._last_variables: tuple[dict[str, str], dict[bytes, bytes]] = ({}, {})
        self._last_state: tuple[bytes, Mapping[str, str]] | None = None

    @property
    def disk(self) -> Disk:
        """The files of this machine."""
        return self._disk

    @property
    def definitions(self) -> str:
        """Functions and aliases that earlier commands defined, as shell text."""
        return self._definitions

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
        folder, notes = self._folder(cwd)
        collector = Collector(make_spill=self._spill)
        process = Process(collector.feed, self._place.owner)
        begun = time.monotonic()
        ready = Ready()
        try:
            given = self._start(
                process, command, folder, env, stdin, pty=pty, keep_state=True, ready=ready
            )
            end = follow(
                process,
                collector,
                timeout=timeout,
                cancellation=cancellation,
                on_output=on_output,
                answerable=pty,
                task=self._task,
                ready=ready,
            )
        except BaseException:
            if process.id:
                process.owner.stop(process.id)
            process.close()
            collector.discard()
            raise
        finally:
            ready.close()
        if process.failure is not None:
            process.close()
            raise not_started(process.failure, folder)
        left = None
        if end.alive:
            left = self._keep(process, command, folder, collector, asked=end.why == "needs input")
            if end.why != "needs input" and len(process.left) > MOST_LEFT:
                left.kill(f"a limit: no more than {MOST_LEFT} processes may be left running")
                notes.append(f"{len(process.left)} processes were left running and stopped")
        else:
            process.close()
        if process.lost:
            process.owner.sweep(self._task, process.pid)
        if end.why == "exited":
            self._take_state(process.state, given, folder if cwd is None else None)
        notes += end.notes
        notes += disk_note(folder)
        notes += self._burning()
        output = collector.output(ansi=self._shared.ansi)
        spilled = collector.keep_spill()
        code = process.exit_code
        return CommandResult(
            124 if end.why == "timeout" else -1 if code is None else code,
            output,
            cwd=self.cwd,
            duration=time.monotonic() - begun,
            ended=end.why,
            cpu_seconds=process.cpu_seconds,
            background=left,
            background_pids=process.left,
            prompt=end.prompt,
            notes=notes,
            spill=spilled[0] if spilled else None,
        )

    def start(
        self,
        command: str,
        *,
        name: str = "",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: str | bytes | None = None,
        pty: bool = False,
    ) -> LocalBackground:
        """Start a command that runs while others do; it ends with the task at the latest."""
        running = [one for one in self.processes() if one.state == "running"]
        if len(running) >= MOST_BACKGROUND:
            raise ToolError(
                f"{len(running)} commands run in the background already",
                hint="End some with the process tool first.",
            )
        if name and any(one.name == name for one in running):
            raise ToolError(f"{name} runs already", hint="Choose another name, or kill it first.")
        folder, _ = self._folder(cwd)
        process = Process(lambda *_: None, self._place.owner)
        input_file = -1
        theirs = -1
        if stdin is None and not pty:
            theirs, input_file = os.pipe()
        try:
            self._start(
                process, command, folder, env, stdin, pty=pty, announce=True, input_file=theirs
            )
        except BaseException:
            if input_file >= 0:
                os.close(input_file)
            raise
        finally:
            if theirs >= 0:
                os.close(theirs)
        if input_file >= 0:
            os.set_blocking(input_file, False)
        return self._listen(process, command, folder, name=name, input_file=input_file)

    def processes(self) -> list[LocalBackground]:
        """What runs or ran beside: started so, or left behind by commands."""
        with self._lock:
            return list(self._background)

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

    def cleanup(self) -> None:
        """End everything that was started here and was not detached."""
        with self._lock:
            ended = list(self._background)
        for one in ended:
            if one.state == "running" and not one.detached:
                one.killed_by = one.killed_by or "the end of the task"
        self._place.owner.stop_task(self._task)
        for one in ended:
            if not one.detached:
                one.wait(1.0)
                one.discard()

    # -- starting -----------------------------------------------------------------------------

    def _start(
        self,
        process: Process,
        command: str,
        folder: str,
        env: Mapping[str, str] | None,
        stdin: str | bytes | None,
        *,
        pty: bool,
        keep_state: bool = False,
        announce: bool = False,
        ready: Ready | None = None,
        input_file: int = -1,
    ) -> dict[str, str]:
        """Start a command; the variables it was given."""
        if "\0" in command:
            raise ToolError("a command can't hold a zero character")
        path, is_bash = self._place.shell()
        variables = command_environment(self.env, self._base(), extra=env, attended=pty)
        variables[MARK] = self._task
        # Or the shell would take the folder by where it really is, and not by its name.
        variables["PWD"] = folder
        text = as_bytes(command)
        long = len(text) > shell_state.LONGEST_ARGUMENT and is_bash
        typed = typed_bytes(stdin) if pty and stdin is not None else b""
        given: dict[int, int] = {}
        if input_file >= 0:
            given[0] = input_file
        opened: list[int] = []
        try:
            if stdin is not None and not pty:
                data = as_bytes(stdin) if isinstance(stdin, str) else stdin
                given[0] = readable(data)
                opened.append(given[0])
            if long:
                given[shell_state.TEXT_FILE] = readable(text + b"\0")
                opened.append(given[shell_state.TEXT_FILE])
            plain = not (long or self._definitions)
            if plain and shell_state.leaves_no_trace(command):
                keep_state = False
                argv = [path, b"-c", text]
            else:
                argv = [
                    path, b"-c", script(is_bash, long, keep_state),
                    b"bash" if is_bash else b"sh", b"" if long else text,
                    as_bytes(self._definitions),
                ]  # fmt: skip
            process.start(
                argv,
                task=self._task,
                env=self._encoded(variables),
                cwd=folder,
                given=given,
                state_place=shell_state.STATE_FILE if keep_state else None,
                pty=pty,
                announce=announce,
                ready=ready,
            )
            if typed:
                os.write(process.master, typed)
        finally:
            for file in opened:
                os.close(file)
        return variables

    def _folder(self, cwd: str | None) -> tuple[str, list[str]]:
        """Where a command starts, and what there is to say of that."""
        if cwd is not None:
            wanted = os.path.normpath(os.path.join(self.cwd, os.path.expanduser(cwd)))
            if not self._place.is_folder(wanted):
                raise ToolError(f"{wanted} is no folder", hint="Give a workdir that exists.")
            return wanted, []
        if self._place.is_folder(self.cwd):
            return self.cwd, []
        gone = found = self.cwd
        while not self._place.is_folder(found):
            found = os.path.dirname(found)
        self.cwd = found
        return found, [f"{gone} is gone; the command ran in {found}"]

    def _base(self) -> dict[str, str]:
        if self._ours is None:
            self._ours = self._place.variables(self._shared.passed)
        return self._ours

    def _encoded(self, variables: dict[str, str]) -> dict[bytes, bytes]:
        """The variables as the system wants them; mostly those of the last command."""
        if variables != self._last_variables[0]:
            for name, value in variables.items():
                if not name or "=" in name or "\0" in name + value:
                    raise ToolError(f"{name!r:.80} can't be a variable, or not with that value")
            encoded = {as_bytes(k): as_bytes(v) for k, v in variables.items()}
            self._last_variables = variables, encoded
        return self._last_variables[1]

    def _take_state(self, data: bytes, given: Mapping[str, str], folder: str | None) -> None:
        if (data, given) == self._last_state:
            # Nothing has changed, as mostly.
            return
        state = shell_state.read_state(data)
        if state is None:
            return
        with self._lock:
            if folder is not None and state.cwd != folder:
                self.cwd = state.cwd
            changed = shell_state.changes(given, state.exports)
            changed.pop(MARK, None)
            self.env.update(changed)
            self._definitions = state.definitions
            self._last_state = (data, given) if not changed and state.cwd == self.cwd else None

    # -- beside -------------------------------------------------------------------------------

    def _keep(
        self, process: Process, command: str, folder: str, collector: Collector, *, asked: bool
    ) -> LocalBackground:
        """Go on listening to what a command left running, or to one that waits for an answer."""
        kept = self._listen(process, command, folder, left=not asked)
        if asked:
            kept.seed(collector.recent().encode())
        return kept

    def _listen(
        self,
        process: Process,
        command: str,
        folder: str,
        *,
        name: str = "",
        input_file: int = -1,
        left: bool = False,
    ) -> LocalBackground:
        with self._lock:
            self._numbers += 1
            background = LocalBackground(
                process,
                name=name or f"p{self._numbers}",
                command=command,
                cwd=folder,
                task=self._task,
                input_file=input_file,
                make_spill=self._spill,
                ansi=self._shared.ansi,
            )
            background.left_behind = left
            if left and process.left:
                background.pid = process.left[0]
            # The oldest that have ended make room.
            ended = [one for one in self._background if one.state != "running"]
            for one in ended[: max(0, len(ended) - MOST_BACKGROUND)]:
                self._background.remove(one)
                one.discard()
            self._background.append(background)
        background.listen()
        if not process.pid:
            background.wait(5.0, until=lambda: bool(process.pid or process.gone))
        if process.failure is not None:
            raise not_started(process.failure, folder)
        return background

    def _burning(self) -> list[str]:
        running = [one for one in self._background if one.state == "running"]
        return burning(running, self._busy) if running else []

    def _spill(self) -> Spill:
        return Spill(self._shared.spill_folder)
