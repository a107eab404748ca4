"""`CloudEnvironment`: commands in a sandbox of a cloud service, saved before its end."""

from __future__ import annotations

import os
import posixpath
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from hermes.core.errors import ToolError
from hermes.environments import shell_state
from hermes.environments.cloud import wrapping
from hermes.environments.cloud.deadline import Deadline
from hermes.environments.cloud.provider import ProviderError
from hermes.environments.cloud.saved import Saved, SavedSnapshots
from hermes.environments.far.requests import as_data, check
from hermes.environments.far.scripts import VARIABLE
from hermes.environments.output.collector import ERR, OUT, Collector
from hermes.environments.protocol import CommandResult, Isolation
from hermes.environments.shell_disk import ShellDisk
from hermes.environments.variables import UNATTENDED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hermes.core.context import Cancellation
    from hermes.environments.cloud.provider import Provider
    from hermes.environments.protocol import Background
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
        env: dict[str, str | None] | None = None,
        task: str = "main",
        passed: Sequence[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.cwd = cwd
        self.env = {} if env is None else env
        self._provider = provider
        self._image = image
        self._lifetime = lifetime
        self._persistent = persistent
        self._passed = tuple(passed)
        self._clock = clock
        self._saved = SavedSnapshots(provider.name, task)
        self._deadline: Deadline | None = None
        self._timer: threading.Timer | None = None
        self._lock = threading.RLock()
        self._unsaved = ""
        self._given: dict[str, str] = {}
        self._bash = True
        self._definitions = ""
        self._token = os.urandom(8).hex()
        self._disk = ShellDisk(self._script, label=provider.name)

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
        notes = self.open()
        assert self._deadline is not None
        begun = time.monotonic()
        wanted = _LONGEST_SECONDS if timeout is None else timeout
        seconds = min(wanted, max(1.0, self._deadline.left - 1.0))
        folder = self.cwd if cwd is None else posixpath.normpath(posixpath.join(self.cwd, cwd))
        passed = {name: os.environ[name] for name in self._passed if name in os.environ}
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
        collector = Collector()
        collector.feed(OUT, answer.out)
        collector.feed(ERR, answer.err)
        if on_output is not None:
            on_output(collector.recent())
        if sum(answer.sizes) > len(answer.out) + len(answer.err):
            notes.append(f"only the first {wrapping.MOST_BACK} bytes of each stream came back")
        if stopped and seconds < wanted:
            notes.append("it was stopped because the sandbox was about to end")
        return CommandResult(
            124 if stopped else answer.code,
            collector.output(),
            cwd=self.cwd,
            duration=duration,
            ended="cancelled" if cancelled else "timeout" if stopped else "exited",
            notes=[*notes, *self._watch()],
        )

    def start(
        self,
        command: str,  # noqa: ARG002
        *,
        name: str = "",  # noqa: ARG002
        cwd: str | None = None,  # noqa: ARG002
        env: Mapping[str, str] | None = None,  # noqa: ARG002
        stdin: str | bytes | None = None,  # noqa: ARG002
        pty: bool = False,  # noqa: ARG002
    ) -> Background:
        """There are no background commands that can be listened to."""
        raise ToolError(
            f"{self._provider.name} runs nothing that can be listened to meanwhile",
            hint="Run it with `&` and its output in a file, and read that.",
        )

    def processes(self) -> list[Background]:
        """None that are known."""
        return []

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
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            if self._deadline is None:
                return
            if self._persistent and not self._deadline.over:
                self._save()
            self._deadline = None
            with suppress(ProviderError):
                self._provider.destroy()

    # -- its life -----------------------------------------------------------------------------

    def open(self) -> list[str]:
        """See to it that there is a sandbox; what there is to say of that."""
        with self._lock:
            if self._deadline is not None and not self._deadline.over:
                return []
            ended = self._deadline is not None
            last = self._saved.last()
            snapshot, notes = "", []
            if last is not None and last.image == self._image:
                snapshot = last.snapshot
            elif last is not None:
                notes.append(
                    f"the image is {self._image} now and was {last.image}: a new sandbox was made; "
                    f"the snapshot {last.snapshot} of the old one is kept by the service"
                )
            if ended:
                notes.append(
                    "the sandbox came to its end; a new one was made from "
                    + (f"the snapshot {snapshot}" if snapshot else "the image: nothing was saved")
                )
            with suppress(ProviderError):
                self._provider.destroy()
            self._provider.create(image=self._image, snapshot=snapshot, seconds=self._lifetime)
            self._deadline = Deadline(self._lifetime, clock=self._clock)
            self._probe()
            if self._timer is not None:
                self._timer.cancel()
            # A command may last past the moment; then nobody else would look.
            self._timer = threading.Timer(self._deadline.until_near, self._save)
            self._timer.daemon = True
            self._timer.start()
            return notes

    def _watch(self) -> list[str]:
        """The warning near the end, with what became of the snapshot."""
        deadline = self._deadline
        if deadline is None or not deadline.near:
            return []
        self._save()
        left = f"the sandbox ends in {deadline.left:.0f} s"
        if self._unsaved:
            loss = "what was written since the last one will be lost; that one is kept"
            return [f"NOT SAVED: {left} and its snapshot failed ({self._unsaved}): {loss}"]
        return [f"{left}; a snapshot was taken, and the next one goes on from it"]

    def _save(self) -> None:
        """Take a snapshot; a failure leaves the one before as it was, and is said."""
        with self._lock:
            try:
                name = self._provider.snapshot()
            except ProviderError as error:
                self._unsaved = str(error)
                return
            self._unsaved = ""
            self._saved.keep(Saved(self._image, name))

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
            bash=self._bash,
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
        if sum(answer.sizes) > len(answer.out) + len(answer.err):
            raise ToolError("that is too much to be brought back at once")
        return answer.code, answer.out, answer.err

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
