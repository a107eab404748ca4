"""`CloudEnvironment`: commands in a sandbox of a cloud service, saved before its end."""

from __future__ import annotations

import os
import posixpath
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import hermes.environments.cloud.wrapping as wrapping
import hermes.environments.shell_state as shell_state
from hermes.core.errors import ToolError
from hermes.environments.cloud.background import CloudBackground, beginning
from hermes.environments.cloud.life import Life
from hermes.environments.cloud.provider import ProviderError
from hermes.environments.far.requests import as_data, check
from hermes.environments.far.scripts import VARIABLE, quoted, settings
from hermes.environments.idling import Idle
from hermes.environments.local.environment import MOST_BACKGROUND
from hermes.environments.output.collector import ERR, OUT, Collector
from hermes.environments.output.spill import Spill
from hermes.environments.protocol import CommandResult, Isolation
from hermes.environments.sharing import Shared, inside, moved
from hermes.environments.shell_disk import ShellDisk
from hermes.environments.variables import UNATTENDED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hermes.core.context import Cancellation
    from hermes.environments.cloud.provider import Provider
    from hermes.runtime.disk import Disk

_FILES_SECONDS = 120.0
# What the service itself may need, on top of a command's time.
_SLACK_SECONDS = 15.0
_LONGEST_SECONDS = 24 * 3600.0
_KILL = (
    "for p in $(grep -lsF -e '{mark}' /proc/[0-9]*/environ 2>/dev/null | tr -dc '0-9\\n'); "
    "do kill -9 $p; done"
)


class CloudEnvironment:
    """Runs commands in a sandbox that is made at the first one, from the task's last snapshot."""

    def __init__(
        self,
        provider: Provider,
        cwd: str = "",
        *,
        image: str,
        lifetime: float = 3600.0,
        persistent: bool = True,
        shared: Shared | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.cwd = cwd
        # Known with the first sandbox.
        self._begin = ""
        self._shared = shared or Shared()
        self.env = self._shared.env
        self._provider = provider
        self._life = Life(
            provider,
            task=self._shared.task,
            image=image,
            seconds=lifetime,
            persistent=persistent,
            clock=clock,
            begun=self._probe,
        )
        self._given: dict[str, str] = {}
        self._bash = True
        self._definitions = ""
        self._background: list[CloudBackground] = []
        self._names = 0
        self._idle = Idle(self._shared.idle_seconds, busy=self._goes_on, rest=self._life.end)
        self._token = os.urandom(8).hex()
        self._disk = ShellDisk(self._script, label=provider.name, there=self._there)

    @property
    def disk(self) -> Disk:
        """The files there."""
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
        """Run a command to its end, or stop it; what it leaves running ends with the sandbox."""
        check(command, env)
        if pty:
            raise ToolError(f"there are no terminals at {self._provider.name}", hint="Omit pty.")
        with self._idle:
            return self._execute(command, timeout, cwd, env, stdin, on_output, cancellation)

    def _execute(
        self,
        command: str,
        timeout: float | None,
        cwd: str | None,
        env: Mapping[str, str] | None,
        stdin: str | bytes | None,
        on_output: Callable[[str], None] | None,
        cancellation: Cancellation | None,
    ) -> CommandResult:
        notes = self.open()
        if self._idle.rested():
            notes.append(
                f"the sandbox was ended after {self._idle.seconds / 60:.3g} minutes without use, "
                "and a new one was made from its last snapshot"
            )
        begun = time.monotonic()
        wanted = _LONGEST_SECONDS if timeout is None else timeout
        seconds = min(wanted, max(1.0, self._life.left - 1.0))
        folder = self.cwd if cwd is None else posixpath.normpath(posixpath.join(self.cwd, cwd))
        passed = {name: os.environ[name] for name in self._shared.passed if name in os.environ}
        number = f"{self._token}.{os.urandom(4).hex()}."
        variables = {**UNATTENDED, **passed, **self.env, **(env or {}), VARIABLE: number}
        forget = None
        if cancellation is not None:
            forget = cancellation.on_cancel(lambda: self._kill(number))
        try:
            answer = self._ask(
                command,
                folder,
                as_data(stdin),
                variables,
                seconds,
                strict=cwd is not None,
                keep=True,
                counted=f"{VARIABLE}={number}",
            )
        finally:
            if forget is not None:
                forget()
        duration = time.monotonic() - begun
        if answer.moved and cwd is not None:
            raise ToolError(f"{folder} is no folder", hint="Give a workdir that exists.")
        cancelled = cancellation is not None and cancellation.cancelled
        stopped = duration >= seconds and answer.code in (124, 137)
        self._take_state(answer, variables, cwd is None, folder, notes)
        collector = Collector(make_spill=lambda: Spill(self._shared.spill_folder))
        try:
            missing = self._pages(answer, collector.feed)
        except BaseException:
            collector.discard()
            raise
        if on_output is not None:
            on_output(collector.recent())
        if missing:
            notes.append(f"{missing} bytes at the end of a stream did not come back")
        if stopped and seconds < wanted:
            notes.append("it was stopped because the sandbox was about to end")
        left = self._left(answer.left, number, command, folder)
        output = collector.output(ansi=self._shared.ansi)
        spilled = collector.keep_spill()
        return CommandResult(
            124 if stopped else answer.code,
            output,
            cwd=self.cwd,
            duration=duration,
            ended="cancelled" if cancelled else "timeout" if stopped else "exited",
            background=left,
            background_pids=answer.left if left is not None else (),
            notes=[*notes, *self._life.watch()],
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
    ) -> CloudBackground:
        """Start a command that runs while others do; it ends with the sandbox at the latest."""
        check(command, env)
        if pty:
            raise ToolError(f"there are no terminals at {self._provider.name}", hint="Omit pty.")
        with self._idle:
            self.open()
            running = [one for one in self.processes() if one.state == "running"]
            if len(running) >= MOST_BACKGROUND:
                raise ToolError(
                    f"{len(running)} commands run in the background already",
                    hint="End some with the process tool first.",
                )
            if name and any(one.name == name for one in running):
                raise ToolError(
                    f"{name} runs already", hint="Choose another name, or kill it first."
                )
            return self._begun(command, name, cwd, env, as_data(stdin))

    def processes(self) -> list[CloudBackground]:
        """What runs or ran beside: started so, or left behind by commands."""
        for one in self._background:
            if one.state == "running":
                one.look()
        return list(self._background)

    def info(self) -> Isolation:
        """A machine of the service's; what is there is not here."""
        return Isolation(
            self._provider.name,
            files="a machine of the service's",
            processes="a machine of the service's, ended with the task",
            memory="as the service limits it",
            not_enforced=("network: as the service has it",),
        )

    def cleanup(self) -> None:
        """Save what is there, and end the sandbox with all that runs in it."""
        self._idle.close()
        self._life.end()
        for one in self._background:
            if one.state == "running":
                one.killed_by = one.killed_by or "the end of the task"
                one.state = "killed"

    def open(self) -> list[str]:
        """See to it that there is a sandbox; what there is to say of that."""
        return self._life.open()

    # -- beside -------------------------------------------------------------------------------

    def _begun(
        self,
        command: str,
        name: str,
        cwd: str | None,
        env: Mapping[str, str] | None,
        data: bytes | None,
    ) -> CloudBackground:
        folder = self.cwd if cwd is None else posixpath.normpath(posixpath.join(self.cwd, cwd))
        number = f"{self._token}.{os.urandom(4).hex()}."
        kept = f"/tmp/hermes-{self._token}/{number}"
        given = ""
        if data is not None:
            given = f"/tmp/hermes-{os.urandom(8).hex()}"
            for step in wrapping.sending(data, given):
                self._provider.run(step, seconds=_FILES_SECONDS)
        passed = {one: os.environ[one] for one in self._shared.passed if one in os.environ}
        variables = {**UNATTENDED, **passed, **self.env, **(env or {}), VARIABLE: number}
        script = shell_state.wrapped(bash=self._bash, keep=False)
        shell = "bash" if self._bash else "sh"
        enter = f"cd {quoted(folder)} || {{ echo no folder; exit 0; }}\nW=$PWD; export W\n"
        words = (
            f'(cd "$W" && unset D W && exec {shell} -c {quoted(script)} sh {quoted(command)} '
            f"{quoted(self._definitions)})"
        )
        text = beginning(kept, words, f"{enter}{settings(variables)}", given)
        said = self._provider.run(f"{text}", seconds=_FILES_SECONDS)
        if "no folder" in said:
            raise ToolError(f"{folder} is no folder", hint="Give a workdir that exists.")
        pid = self._provider.run(f"cat {quoted(kept)}/pid", seconds=_FILES_SECONDS).strip()
        if not pid.isdigit():
            raise ToolError(f"it could not be started: {said.strip()[-200:] or pid[-200:]}")
        one = self._kept(kept, number, name, command, folder, int(pid))
        one.takes_input = data is None
        return one

    def _left(
        self, pids: tuple[int, ...], number: str, command: str, folder: str
    ) -> CloudBackground | None:
        """What a command left running, as a process of the task's."""
        if not pids:
            return None
        kept = f"/tmp/hermes-{self._token}/{number}"
        self._provider.run(f"mkdir -p {kept}; : >{kept}/log", seconds=_FILES_SECONDS)
        one = self._kept(kept, number, "", command, folder, pids[0])
        one.left_behind = True
        return one

    def _kept(
        self, kept: str, number: str, name: str, command: str, folder: str, pid: int
    ) -> CloudBackground:
        self._names += 1
        one = CloudBackground(
            lambda script: self._provider.run(script, seconds=_FILES_SECONDS), kept,
            f"{VARIABLE}={number}", name=name or f"p{self._names}", command=command, cwd=folder,
            pid=pid,
        )  # fmt: skip
        ended = [old for old in self._background if old.state != "running"]
        for old in ended[: max(0, len(ended) - MOST_BACKGROUND)]:
            self._background.remove(old)
        self._background.append(one)
        return one

    def _goes_on(self) -> bool:
        return any(one.state == "running" for one in self.processes())

    # -- commands -----------------------------------------------------------------------------

    def _probe(self) -> None:
        """Learn what the sandbox is like."""
        # Nothing is assumed of the shell for this one.
        self._bash = False
        script = "command -v bash >/dev/null && echo y || echo n; export -p"
        answer = self._ask(script, "/", None, {}, 30.0, strict=True)
        bash, _, exports = answer.out.partition(b"\n")
        self._bash = bash == b"y"
        self._given = shell_state.read_exports(exports)
        home = self._given.get("HOME", "/")
        self.cwd = posixpath.normpath(posixpath.join(home, self.cwd)) if self.cwd else home
        self._begin = self._begin or self.cwd

    def _ask(
        self,
        command: str,
        folder: str,
        data: bytes | None,
        variables: Mapping[str, str | None],
        seconds: float,
        *,
        strict: bool,
        keep: bool = False,
        counted: str = "",
    ) -> wrapping.Answer:
        mark = os.urandom(8).hex()
        place = "/dev/null"
        if data is not None:
            place = f"/tmp/hermes-{mark}"
            for step in wrapping.sending(data, place):
                self._provider.run(step, seconds=_FILES_SECONDS)
        text = wrapping.asked(
            command, mark=mark, folder=folder, strict=strict, variables=variables, seconds=seconds,
            given=place, definitions=self._definitions if keep else "", keep=keep,
            bash=self._bash, counted=counted,
        )  # fmt: skip
        try:
            return wrapping.answered(
                self._provider.run(text, seconds=seconds + _SLACK_SECONDS), mark
            )
        finally:
            if data is not None:
                self._provider.run(f"rm -f {place}", seconds=_FILES_SECONDS)

    def _script(self, script: str, data: bytes) -> tuple[int, bytes, bytes]:
        self.open()
        answer = self._ask(script, "/", data or None, {}, _FILES_SECONDS, strict=True)
        streams: dict[int, list[bytes]] = {OUT: [], ERR: []}
        if self._pages(answer, lambda stream, piece: streams[stream].append(bytes(piece))):
            raise ToolError(f"more than {wrapping.MOST_WHOLE} bytes can't be brought back at once")
        return answer.code, b"".join(streams[OUT]), b"".join(streams[ERR])

    def _pages(self, answer: wrapping.Answer, feed: Callable[[int, memoryview], None]) -> int:
        """Pass on all that was printed, which may take several answers; how much is missing."""
        missing = 0
        long = False
        for stream, name, piece, size in (
            (OUT, "o", answer.out, answer.sizes[0]),
            (ERR, "e", answer.err, answer.sizes[1]),
        ):
            have = 0
            while piece:
                feed(stream, memoryview(piece))
                have += len(piece)
                if have >= min(size, wrapping.MOST_WHOLE):
                    break
                long = True
                text = wrapping.page(answer.folder, name, have)
                piece = wrapping.paged(self._provider.run(text, seconds=_FILES_SECONDS))
            missing += size - have
        if long:
            self._provider.run(f"rm -rf {quoted(answer.folder)}", seconds=_FILES_SECONDS)
        return missing

    def here(self, place: str) -> str:
        """The name that a place there has for the gate and for file tools."""
        return self._shared.named(place, self._begin)

    def _there(self, place: str) -> str:
        """Where a place is there: what lies in the workspace lies where commands begin."""
        if not inside(place, self._shared.workspace):
            return place
        self.open()
        return moved(place, self._shared.workspace, self._begin)

    def _kill(self, number: str) -> None:
        with suppress(ProviderError):
            self._provider.run(_KILL.format(mark=f"{VARIABLE}={number}"), seconds=10.0)

    def _take_state(
        self,
        answer: wrapping.Answer,
        variables: Mapping[str, str | None],
        carries: bool,
        folder: str,
        notes: list[str],
    ) -> None:
        state = shell_state.read_state(answer.state)
        if state is None:
            return
        if answer.moved:
            notes.append(f"{folder} is gone; the command ran above it")
        if carries:
            self.cwd = state.cwd
        given = dict(self._given)
        for name, value in variables.items():
            if value is None:
                given.pop(name, None)
            else:
                given[name] = value
        changed = shell_state.changes(given, state.exports)
        changed.pop(VARIABLE, None)
        self.env.update(changed)
        self._definitions = state.definitions
