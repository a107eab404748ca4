"""`FarEnvironment`: commands at a place that is reached through a shell."""

from __future__ import annotations

import os
import posixpath
import threading
import time
from typing import TYPE_CHECKING

import hermes.environments.far.requests as requests
import hermes.environments.shell_state as shell_state
from hermes.core.errors import ToolError
from hermes.environments.far.background import FarBackground
from hermes.environments.far.channel import BrokenChannelError, pour, start
from hermes.environments.far.connection import Connection, Far
from hermes.environments.far.following import Run, follow, heard
from hermes.environments.far.scripts import VARIABLE, quoted
from hermes.environments.idling import Idle
from hermes.environments.local.environment import MOST_BACKGROUND, MOST_LEFT
from hermes.environments.local.process import ERR, OUT, Process
from hermes.environments.local.shell import typed_bytes
from hermes.environments.output.collector import Collector
from hermes.environments.output.spill import Spill
from hermes.environments.protocol import CommandResult, PlaceError
from hermes.environments.sharing import Shared, inside, moved
from hermes.environments.shell_disk import ShellDisk
from hermes.environments.variables import UNATTENDED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hermes.core.context import Cancellation
    from hermes.environments.far.channel import Channel
    from hermes.environments.far.link import Link
    from hermes.environments.far.sync import Synced
    from hermes.environments.protocol import Isolation
    from hermes.environments.shared_folder import SharedFolderDisk

# A plain call that took no longer has hardly started a daemon.
_QUICK_SECONDS = 0.015
# What a command left running may still end within this time.
_SETTLE_SECONDS = 0.1
_FILES_SECONDS = 120.0


class FarEnvironment:
    """Runs commands there, each in a fresh shell with the folder and variables of the last one."""

    def __init__(
        self,
        link: Link,
        cwd: str = "",
        *,
        shared: Shared | None = None,
    ) -> None:
        # Made absolute at the first command, when it is known where home is.
        self.cwd = self._begin = cwd or "~"
        self._shared = shared or Shared()
        self.env = self._shared.env
        self.link = link
        self._task = f"{self._shared.task}/{os.urandom(4).hex()}"
        self._connection = Connection(link, task=self._task)
        self._definitions = ""
        self._lock = threading.Lock()
        self._background: list[FarBackground] = []
        self._names = 0
        self._idle = Idle(
            self._shared.idle_seconds, busy=self._goes_on, rest=self._connection.close
        )
        self._disk = ShellDisk(self.run_script, label=link.label, there=self._there)

    @property
    def disk(self) -> ShellDisk | SharedFolderDisk:
        """The files there."""
        return self._disk

    @property
    def definitions(self) -> str:
        """Functions and aliases that earlier commands defined, as shell text."""
        return self._definitions

    def open(self) -> list[str]:
        """Connect, if need be; what there is to say of that. Raises `PlaceError`."""
        with self._idle:
            lost = self._connection.open()
            self._begin, self.cwd = self._absolute(self._begin), self._absolute(self.cwd)
            return [self._anew] if lost else []

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
        requests.check(command, env)
        with self._idle:
            notes = self.open()
            if self._idle.rested() and not self.link.lasts:
                notes.append(self._woken)
            if pty:
                from hermes.environments.far.attended import attend

                background = self.start(command, cwd=cwd, env=env, stdin=stdin, pty=True)
                return attend(background, timeout=timeout, cancellation=cancellation, notes=notes)
            for again in (True, False):
                try:
                    return self._run(
                        command, cwd, env, requests.as_data(stdin), notes,
                        timeout=timeout, cancellation=cancellation, on_output=on_output,
                    )  # fmt: skip
                except BrokenChannelError:
                    self._connection.drop()
                    if not again:
                        break
                    self._connection.open()
                    notes.append(self._anew)
            raise self._lost()

    def start(
        self,
        command: str,
        *,
        name: str = "",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: str | bytes | None = None,
        pty: bool = False,
    ) -> FarBackground:
        """Start a command that runs while others do; it ends with the task at the latest."""
        requests.check(command, env)
        self.open()
        running = [one for one in self.processes() if one.state == "running"]
        if len(running) >= MOST_BACKGROUND:
            raise ToolError(
                f"{len(running)} commands run in the background already",
                hint="End some with the process tool first.",
            )
        if name and any(one.name == name for one in running):
            raise ToolError(f"{name} runs already", hint="Choose another name, or kill it first.")
        folder = self.cwd if cwd is None else self._absolute(cwd)
        number = self._connection.number()
        request = self._request(command, env, worker=number, number=number, attended=pty)
        # What is typed at a terminal comes from it, and not from a file.
        data = None if pty else requests.as_data(stdin)
        place = request.place("b")
        process = Process(lambda *_: None)
        try:
            self._hand_over(request, data)
            mark = os.urandom(8).hex()
            text = request.alone(folder, data, tty=pty, mark=mark)
            answer = self._connection.ask(
                f"printf %s {quoted(text)} >{place}; [ -d {quoted(folder)} ] && echo y"
            )
            if not answer.strip():
                raise ToolError(f"{folder} is no folder", hint="Give a workdir that exists.")
            argv = self.link.argv(["/bin/sh", place], tty=pty)
            terminal = pty and not self.link.gives_terminal
            typing = start(process, argv, task=self._task, terminal=terminal)
            pid = self._connection.ask(
                f"i=0; while ! group {number} && [ $i -lt 200 ]; do i=$((i+1)); sleep 0.02; done; "
                f'echo "$p"'
            )
        except BrokenChannelError:
            raise self._lost() from None
        if pty and stdin is not None:
            os.write(process.master if terminal else typing, typed_bytes(stdin))
        elif data is not None:
            os.close(typing)
            typing = -1
        return self._listen(
            process, command, folder, number, number,
            known=[int(pid.strip() or 0)], name=name, input_file=typing, mark=mark,
        )  # fmt: skip

    def processes(self) -> list[FarBackground]:
        """What runs or ran beside: started so, or left behind by commands."""
        with self._lock:
            return list(self._background)

    def info(self) -> Isolation:
        """What is really isolated there."""
        return self.link.info()

    def cleanup(self) -> None:
        """End everything that was started here and was not detached."""
        self._idle.close()
        with self._lock:
            ended = list(self._background)
        for one in ended:
            if one.state == "running" and not one.detached:
                one.killed_by = one.killed_by or "the end of the task"
        self._connection.close()
        for one in ended:
            if not one.detached:
                one.wait(1.0)
                one.discard()

    def run_script(self, script: str, data: bytes = b"") -> tuple[int, bytes, bytes]:
        """Run a script of ours there: its exit code, standard output and standard error.

        Nothing of the task's is used or changed.
        """
        with self._idle:
            self.open()
            try:
                return self._script(script, data)
            except BrokenChannelError:
                self.open()
                try:
                    return self._script(script, data)
                except BrokenChannelError:
                    raise self._lost() from None

    def upload(self, local: str, far: str) -> Synced:
        """Make a folder there hold what a local one does; only what changed travels."""
        from hermes.environments.far.sync import upload

        self.open()
        return upload(self, local, self._absolute(far))

    def download(self, far: str, local: str) -> None:
        """Fetch a file or folder from there into a local folder."""
        from hermes.environments.far.sync import download

        self.open()
        download(self, self._absolute(far), local)

    # -- running ------------------------------------------------------------------------------

    def _run(
        self,
        command: str,
        cwd: str | None,
        env: Mapping[str, str] | None,
        data: bytes | None,
        notes: list[str],
        *,
        timeout: float | None,
        cancellation: Cancellation | None,
        on_output: Callable[[str], None] | None,
    ) -> CommandResult:
        connection = self._connection
        folder = self.cwd if cwd is None else self._absolute(cwd)
        keep = bool(self._definitions) or not shell_state.leaves_no_trace(command)
        number = connection.number()
        collector = Collector(make_spill=self._spill)
        channel = connection.worker()
        left: FarBackground | None = None
        run = Run()
        begun = time.monotonic()
        try:
            request = self._request(command, env, worker=channel.number, number=number)
            self._hand_over(request, data)
            end = follow(
                channel,
                run,
                collector,
                request.text(folder, data, keep=keep, strict=cwd is not None),
                timeout=timeout,
                cancellation=cancellation,
                on_output=on_output,
                stop=lambda: connection.stop(channel.number, number),
                idle=lambda: connection.idle(number),
            )
            duration = time.monotonic() - begun
            if run.no_folder:
                raise ToolError(f"{folder} is no folder", hint="Give a workdir that exists.")
            if end.why == "exited" and (keep or run.left or duration > _QUICK_SECONDS):
                left = self._left(channel, run, number, command, folder)
        except BaseException:
            if not run.over:
                connection.stop(channel.number, number)
            collector.discard()
            raise
        finally:
            connection.give_back(channel if left is None else None, again=run.over)
        if run.moved_to:
            notes.append(f"{folder} is gone; the command ran in {run.moved_to}")
            self.cwd = folder = run.moved_to
        if end.why == "lost":
            notes.append(f"the shell on {self.link.label} that ran it, or the connection, is gone")
        pids = tuple(left.known) if left is not None else ()
        if left is not None and len(pids) > MOST_LEFT:
            left.kill(f"a limit: no more than {MOST_LEFT} processes may be left running")
            notes.append(f"{len(pids)} processes were left running and stopped")
            pids = ()
        if end.why == "exited":
            self._take_state(run.state, request, folder if cwd is None else None)
        output = collector.output(ansi=self._shared.ansi)
        spilled = collector.keep_spill()
        return CommandResult(
            124 if end.why == "timeout" else -1 if run.code is None else run.code,
            output,
            cwd=self.cwd,
            duration=duration,
            ended=end.why,
            background=left,
            background_pids=pids,
            prompt=end.prompt,
            notes=[*notes, *end.notes],
            spill=spilled[0] if spilled else None,
        )

    def _script(self, script: str, data: bytes) -> tuple[int, bytes, bytes]:
        connection = self._connection
        number = connection.number()
        channel = connection.worker()
        run = Run()
        printed: dict[int, list[bytes]] = {OUT: [], ERR: []}
        try:
            request = requests.Request(
                self._far, script, worker=channel.number, number=number,
                token=connection.token, variables={},
            )  # fmt: skip
            self._hand_over(request, data)
            whole = heard(
                channel,
                run,
                request.text("/", data, keep=False, strict=True),
                printed=lambda stream, piece: printed[stream].append(piece),
                seconds=_FILES_SECONDS,
            )
            if not whole:
                connection.stop(channel.number, number)
        finally:
            connection.give_back(channel, again=run.over)
        if run.code is None:
            raise PlaceError(f"{self.link.label} does not answer", hint="Try again later.")
        return run.code, b"".join(printed[OUT]), b"".join(printed[ERR])

    def _left(
        self, channel: Channel, run: Run, number: int, command: str, folder: str
    ) -> FarBackground | None:
        """Go on listening to what a command left running."""
        until = time.monotonic() + _SETTLE_SECONDS
        pids = self._connection.members(number)
        while pids and time.monotonic() < until:
            time.sleep(0.03)
            pids = self._connection.members(number)
        if not pids and not run.left:
            return None
        pids = pids or [run.pid]
        channel.send(f"linger {self._connection.token}.{number} {' '.join(map(str, pids))}\n")
        return self._listen(
            channel.release(), command, folder, channel.number, number, known=pids, left=True
        )

    def _hand_over(self, request: requests.Request, data: bytes | None) -> None:
        """Send what is too much for the text."""
        if data is None or requests.inline(data):
            return
        connection = self._connection
        process = Process(lambda *_: None)
        script = f"{self._far.folder}/w{connection.number()}"
        connection.ask(f"echo 'exec cat >{request.place('i')}' >{script}")
        argv = self.link.argv(["/bin/sh", script])
        pour(process, argv, data, task=self._task)
        if process.exit_code != 0:
            raise self._lost()

    # -- the rest of it ------------------------------------------------------------------

    @property
    def _anew(self) -> str:
        return (
            f"the connection to {self.link.label} was lost and has been made anew; "
            "what ran there was ended"
        )

    @property
    def _woken(self) -> str:
        minutes = self._idle.seconds / 60
        return (
            f"{self.link.label} was let go after {minutes:.3g} minutes without use and has been "
            "started anew; what was kept only there is gone"
        )

    def _goes_on(self) -> bool:
        return any(one.state == "running" for one in self.processes())

    def _lost(self) -> PlaceError:
        return PlaceError(f"the connection to {self.link.label} is lost", hint="Try again later.")

    @property
    def _far(self) -> Far:
        assert self._connection.far is not None
        return self._connection.far

    def _absolute(self, folder: str) -> str:
        if folder == "~" or folder.startswith("~/"):
            folder = self._far.home + folder[1:]
        base = self.cwd if self.cwd.startswith("/") else self._far.cwd
        return posixpath.normpath(posixpath.join(base, folder))

    def here(self, place: str) -> str:
        """The name that a place there has for the gate and for file tools."""
        return self._shared.named(place, self._begin)

    def _there(self, place: str) -> str:
        """Where a place is there: what lies in the workspace lies where commands begin."""
        if not inside(place, self._shared.workspace):
            return place
        self.open()
        return moved(place, self._shared.workspace, self._begin)

    def _request(
        self,
        command: str,
        env: Mapping[str, str] | None,
        *,
        worker: int,
        number: int,
        attended: bool = False,
    ) -> requests.Request:
        passed = {name: os.environ[name] for name in self._shared.passed if name in os.environ}
        unattended = {} if attended else UNATTENDED if worker == number else {}
        return requests.Request(
            self._far, command, worker=worker, number=number, token=self._connection.token,
            variables={**unattended, **passed, **self.env, **(env or {})},
            definitions=self._definitions,
        )  # fmt: skip

    def _listen(
        self,
        process: Process,
        command: str,
        folder: str,
        worker: int,
        number: int,
        *,
        known: list[int],
        name: str = "",
        mark: str = "",
        input_file: int = -1,
        left: bool = False,
    ) -> FarBackground:
        with self._lock:
            self._names += 1
            background = FarBackground(
                self._connection, process, worker=worker, number=number,
                name=name or f"p{self._names}", command=command, cwd=folder, task=self._task,
                known=known, mark=mark, input_file=input_file, make_spill=self._spill,
                ansi=self._shared.ansi,
            )  # fmt: skip
            background.left_behind = left
            ended = [one for one in self._background if one.state != "running"]
            for one in ended[: max(0, len(ended) - MOST_BACKGROUND)]:
                self._background.remove(one)
                one.discard()
            self._background.append(background)
        background.listen()
        return background

    def _take_state(self, data: bytes, request: requests.Request, folder: str | None) -> None:
        """Carry over folder and variables; no folder where it was for that command alone."""
        state = shell_state.read_state(data)
        if state is None:
            return
        with self._lock:
            if folder is not None and state.cwd != folder:
                self.cwd = state.cwd
            changed = shell_state.changes(self._given(request), state.exports)
            changed.pop(VARIABLE, None)
            self.env.update(changed)
            self._definitions = state.definitions

    def _given(self, request: requests.Request) -> dict[str, str]:
        """All the variables that a command had."""
        given = {**self._far.env, **UNATTENDED}
        for name, value in request.variables.items():
            if value is None:
                given.pop(name, None)
            else:
                given[name] = value
        return given

    def _spill(self) -> Spill:
        return Spill(self._shared.spill_folder)
