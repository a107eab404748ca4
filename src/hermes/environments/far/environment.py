"""`FarEnvironment`: commands at a place that is reached through a shell."""

from __future__ import annotations

import os
import posixpath
import threading
import time
from typing import TYPE_CHECKING

from hermes.core.errors import ToolError
from hermes.environments import shell_state
from hermes.environments.far import requests
from hermes.environments.far.background import FarBackground
from hermes.environments.far.channel import BrokenChannelError, start
from hermes.environments.far.connection import Connection, Far
from hermes.environments.far.following import Run, follow
from hermes.environments.far.scripts import VARIABLE, quoted
from hermes.environments.local.process import OUT, Process
from hermes.environments.output.collector import Collector
from hermes.environments.output.spill import Spill
from hermes.environments.protocol import CommandResult, PlaceError
from hermes.environments.shell_disk import ShellDisk
from hermes.environments.variables import UNATTENDED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hermes.core.context import Cancellation
    from hermes.environments.far.channel import Channel
    from hermes.environments.far.link import Link
    from hermes.environments.protocol import Isolation
    from hermes.runtime.disk import Disk

MOST_BACKGROUND = 32
# A plain call that took no longer has hardly started a daemon.
_QUICK_SECONDS = 0.015
# What a command left running may still end within this time.
_SETTLE_SECONDS = 0.1
_FILES_SECONDS = 120.0


class NotBegunError(Exception):
    """The connection was gone before the command began: it may be tried again."""


class FarEnvironment:
    """Runs commands there, each in a fresh shell with the folder and variables of the last one."""

    def __init__(
        self,
        link: Link,
        cwd: str = "",
        *,
        env: dict[str, str | None] | None = None,
        task: str = "main",
        passed: Sequence[str] = (),
        spill_folder: str | None = None,
    ) -> None:
        # Made absolute at the first command, when it is known where home is.
        self.cwd = cwd or "~"
        self.env = {} if env is None else env
        self.link = link
        self._task = f"{task}/{os.urandom(4).hex()}"
        self._passed = tuple(passed)
        self._spill_folder = spill_folder
        self._connection = Connection(link, task=self._task)
        self._definitions = ""
        self._lock = threading.Lock()
        self._background: list[FarBackground] = []
        self._names = 0
        self._disk = ShellDisk(self.run_script, label=link.label)

    @property
    def disk(self) -> Disk:
        """The files there."""
        return self._disk

    @property
    def definitions(self) -> str:
        """Functions and aliases that earlier commands defined, as shell text."""
        return self._definitions

    def open(self) -> list[str]:
        """Connect, if need be; what there is to say of that. Raises `PlaceError`."""
        lost = self._connection.open()
        self.cwd = self._absolute(self.cwd)
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
        notes = self.open()
        if pty:
            from hermes.environments.far.attended import attend

            background = self.start(command, cwd=cwd, env=env, stdin=stdin, pty=True)
            return attend(background, timeout=timeout, cancellation=cancellation, notes=notes)
        run = _Command(self, command, cwd, env, requests.as_data(stdin))
        for again in (True, False):
            try:
                return run(notes, timeout, cancellation, on_output)
            except (NotBegunError, BrokenChannelError):
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
            if data is not None and not requests.inline(data):
                self._put(request.place("i"), data)
            text = request.alone(folder, data, tty=pty)
            answer = self._connection.ask(
                f"printf %s {quoted(text)} >{place}; [ -d {quoted(folder)} ] && echo y"
            )
            if not answer.strip():
                raise ToolError(f"{folder} is no folder", hint="Give a workdir that exists.")
            argv = self.link.argv(["exec", "/bin/sh", place], tty=pty)
            typing = start(process, argv, task=self._task)
            pid = self._connection.ask(
                f"i=0; while ! group {number} && [ $i -lt 200 ]; do i=$((i+1)); sleep 0.02; done; "
                f'echo "$p"'
            )
        except BrokenChannelError:
            raise self._lost() from None
        if pty and stdin is not None:
            os.write(typing, requests.as_data(stdin) or b"")
        elif data is not None:
            os.close(typing)
            typing = -1
        return self._listen(
            process, command, folder, number, number,
            name=name, pid=int(pid.strip() or 0), input_file=typing,
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

    def run_script(self, script: str, *words: str, data: bytes | None = None) -> bytes:
        """What a script of ours prints there; `$1` and so on are the words.

        Raises `ToolError` with what it says when it fails. Nothing of the task's is used or changed.
        """
        self.open()
        command = f"set -- {' '.join(map(quoted, words))}\n{script}"
        run = _Command(self, command, "/", {"LC_ALL": "C"}, data)
        try:
            return run.raw()
        except (NotBegunError, BrokenChannelError):
            self._connection.drop()
            self._connection.open()
            return run.raw()

    # -- for the parts of it ------------------------------------------------------------------

    @property
    def _anew(self) -> str:
        return (
            f"the connection to {self.link.label} was lost and has been made anew; "
            "what ran there was ended"
        )

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

    def _request(
        self,
        command: str,
        env: Mapping[str, str] | None,
        *,
        worker: int,
        number: int,
        attended: bool = False,
    ) -> requests.Request:
        passed = {name: os.environ[name] for name in self._passed if name in os.environ}
        unattended = {} if attended else UNATTENDED if worker == number else {}
        return requests.Request(
            self._far, command, worker=worker, number=number, token=self._connection.token,
            variables={**unattended, **passed, **self.env, **(env or {})},
            definitions=self._definitions,
        )  # fmt: skip

    def _put(self, place: str, data: bytes) -> None:
        """Send bytes into a file of ours there, as they are."""
        process = Process(lambda *_: None)
        script = f"{self._far.folder}/w{self._connection.number()}"
        self._connection.ask(f"echo 'exec cat >{place}' >{script}")
        writing = start(process, self.link.argv(["exec", "/bin/sh", script]), task=self._task)
        try:
            _feed(writing, data, process)
        finally:
            process.close()
        if process.exit_code != 0:
            raise self._lost()

    def _listen(
        self,
        process: Process,
        command: str,
        folder: str,
        worker: int,
        number: int,
        *,
        pid: int,
        name: str = "",
        input_file: int = -1,
        left: bool = False,
    ) -> FarBackground:
        with self._lock:
            self._names += 1
            background = FarBackground(
                self._connection, process, worker=worker, number=number,
                name=name or f"p{self._names}", command=command, cwd=folder, task=self._task,
                pid=pid, input_file=input_file, make_spill=self._spill,
            )  # fmt: skip
            background.left_behind = left
            ended = [one for one in self._background if one.state != "running"]
            for one in ended[: max(0, len(ended) - MOST_BACKGROUND)]:
                self._background.remove(one)
                one.discard()
            self._background.append(background)
        background.listen()
        return background

    def _take_state(
        self, data: bytes, given: Mapping[str, str], *, cwd: bool, folder: str
    ) -> None:
        state = shell_state.read_state(data)
        if state is None:
            return
        with self._lock:
            if cwd and state.cwd != folder:
                self.cwd = state.cwd
            changed = shell_state.changes(given, state.exports)
            changed.pop(VARIABLE, None)
            self.env.update(changed)
            self._definitions = state.definitions

    def _spill(self) -> Spill:
        return Spill(self._spill_folder)
