"""`CloudEnvironment`: commands in a sandbox of a cloud service (Modal, Daytona, Vercel)."""

from __future__ import annotations

import base64
import binascii
import os
import posixpath
import threading
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING

from hermes.core.errors import ToolError
from hermes.environments.cloud.cloud_background import CloudBackground, begin
from hermes.environments.cloud.lifecycle import Lifecycle
from hermes.environments.cloud.provider import ProviderError
from hermes.environments.cloud.shell_request import Shell, working_folder
from hermes.environments.command import MARK, UNATTENDED, CommandResult, Isolation, apply_changes
from hermes.environments.command_wait import wait_on_terminal
from hermes.environments.disk.shell_disk import ShellDisk
from hermes.environments.environment import Environment
from hermes.environments.remote_shell.scripts import quote
from hermes.text.encoding import live_decoder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hermes.environments.background import Background
    from hermes.environments.cloud.provider import Provider
    from hermes.environments.cloud.shell_request import Answer
    from hermes.environments.command import CommandRequest, EndReason
    from hermes.environments.disk import Disk
    from hermes.environments.environment import SharedSettings


if TYPE_CHECKING:
    # Runs a short script there and gives what it prints.
    Ask = Callable[[str], str]

# Of a flood only the end is shown.
MOST = 4000
FIRST_PAUSE, LONGEST_PAUSE = 0.7, 4.0
_LOOK = """
cd {folder} 2>/dev/null || exit 0
look() {{
  s=$(wc -c <"$1"); a=$2
  [ "$((s - a))" -le {most} ] || a=$((s - {most}))
  printf '%s ' "$((s))"
  tail -c "+$((a + 1))" "$1" | head -c "$((s - a))" | base64 | tr -d '\\n'; echo
}}
look o {out}; look e {err}
"""


class Live:
    """While entered, passes on what is printed to the files `o` and `e` of a folder there."""

    def __init__(self, ask: Ask, folder: str, show: Callable[[str], None]) -> None:
        self._ask = ask
        self._folder = folder
        self._show = show
        self._seen = [0, 0]
        self._decoders = [live_decoder(), live_decoder()]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="hermes-live", daemon=True)

    def __enter__(self) -> Live:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        # A service that hangs must not hold up the command's own answer.
        self._thread.join(LONGEST_PAUSE)

    def release(self, *streams: bytes) -> None:
        """Show the end of what came back, as far as it was not shown."""
        for number, whole in enumerate(streams):
            self._pass_on(number, whole[self._seen[number] :][-MOST:])

    def _watch(self) -> None:
        pause = FIRST_PAUSE
        while not self._over.wait(pause):
            pause = min(LONGEST_PAUSE, pause * 1.3)
            script = _LOOK.format(
                folder=quote(self._folder), most=MOST, out=self._seen[0], err=self._seen[1]
            )
            try:
                lines = self._ask(script).splitlines()
                if self._over.is_set():
                    return
                for number, line in enumerate(lines[:2]):
                    size, _, text = line.partition(" ")
                    piece = base64.b64decode(text)
                    self._seen[number] = int(size)
                    self._pass_on(number, piece)
            except (ProviderError, ValueError, binascii.Error):
                # The command itself will say what is wrong.
                continue

    def _pass_on(self, number: int, piece: bytes) -> None:
        text = self._decoders[number].decode(piece)
        if text:
            self._show(text)


_LONGEST_SECONDS = 24 * 3600.0


class CloudEnvironment(Environment):
    """Runs commands in a sandbox that is made at the first one, from the task's last snapshot."""

    def __init__(
        self,
        provider: Provider,
        cwd: str = "",
        *,
        image: str,
        lifetime: float = 3600.0,
        persistent: bool = True,
        shared: SharedSettings | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(cwd, shared, release=lambda: self._life.end())
        self.label = f"{provider.name} {self._task}"
        self.idle_note = (
            f"the sandbox was ended after {self._idle.seconds / 60:.3g} minutes without use, "
            "and a new one was made from its last snapshot"
        )
        self._name = provider.name
        self._shell = Shell(provider)
        self._life = Lifecycle(
            provider,
            task=self._shared.task,
            image=image,
            seconds=lifetime,
            persistent=persistent,
            clock=clock,
            begun=self._probe,
        )
        self._token = os.urandom(8).hex()
        self._disk = ShellDisk(self.run_script, label=provider.name, remote=self._remote_path)

    @property
    def disk(self) -> Disk:
        """The files there."""
        return self._disk

    def open(self) -> list[str]:
        """See to it that there is a sandbox; what there is to say of that."""
        return self._life.open()

    def run_script(self, script: str, data: bytes = b"") -> tuple[int, bytes, bytes]:
        """Run a script of ours there: its exit code, standard output and standard error."""
        self.open()
        return self._shell.script(script, data)

    def processes(self) -> Sequence[Background]:
        """What runs or ran beside: started so, or left behind by commands."""
        for one in self._backgrounds.running():
            # Nothing is known of it but by asking.
            one.pids()
        return self._backgrounds.all()

    def info(self) -> Isolation:
        """A machine of the service's; what is there is not here."""
        return Isolation(
            self._name,
            files="a machine of the service's",
            processes="a machine of the service's, ended with the task",
            memory="as the service limits it",
            not_enforced=("network: as the service has it",),
        )

    def cleanup(self) -> None:
        """Save what is there, and end the sandbox with all that runs in it."""
        self._idle.close()
        self._life.end()
        for one in self._backgrounds.mark_ending():
            if one.state == "running":
                one.state = "killed"

    def absolute(self, folder: str) -> str:
        """Where a folder is there, by a name that commands would understand."""
        self.open()
        if folder == "~" or folder.startswith("~/"):
            folder = self._shell.exports.get("HOME", "/") + folder[1:]
        return posixpath.normpath(posixpath.join(self.cwd, folder))

    # -- commands -----------------------------------------------------------------------------

    def _run(self, request: CommandRequest) -> CommandResult:
        request.check_names()
        notes = self.open()
        if request.pty:
            result = wait_on_terminal(self._begin(request), request)
            result.notes.extend(notes + self._life.watch())
            return result
        begun = time.monotonic()
        wanted = _LONGEST_SECONDS if request.timeout is None else request.timeout
        seconds = min(wanted, max(1.0, self._life.left - 1.0))
        folder = self.cwd if request.cwd is None else self.absolute(request.cwd)
        mark, variables = self._variables(request)
        answer = self._answer(request, folder, mark, variables, seconds)
        duration = time.monotonic() - begun
        if answer.moved and request.cwd is not None:
            raise ToolError(f"{folder} is no folder", hint="Give a workdir that exists.")
        if answer.moved:
            notes.append(f"{folder} is gone; the command ran above it")
        given = apply_changes(self._shell.exports, variables)
        self._carry(answer.state, given, folder if request.cwd is None else None)
        collector = self._collector()
        try:
            missing = self._shell.pages(answer, collector.feed)
        except BaseException:
            collector.discard()
            raise
        if missing:
            notes.append(f"{missing} bytes at the end of a stream did not come back")
        stopped = duration >= seconds and answer.code in (124, 137)
        if stopped and seconds < wanted:
            notes.append("it was stopped because the sandbox was about to end")
        ended: EndReason = "cancelled" if request.cancelled else "timeout" if stopped else "exited"
        if ended == "exited":
            notes += self._state_notes(request.command, answer.state)
        left = self._left(request, folder, mark, answer.left) if answer.left else None
        return CommandResult(
            answer.code,
            self._output(collector),
            cwd=self.cwd,
            duration=duration,
            ended=ended,
            background=left,
            background_pids=answer.left,
            notes=[*notes, *self._life.watch()],
        )

    def _answer(
        self,
        request: CommandRequest,
        folder: str,
        mark: str,
        variables: Mapping[str, str | None],
        seconds: float,
    ) -> Answer:
        """What came of a command; what it prints meanwhile is shown to whoever wants it."""
        forget = None
        if request.cancellation is not None:
            forget = request.cancellation.on_cancel(lambda: self._shell.kill(f"{MARK}={mark}"))
        number = os.urandom(8).hex()
        live = None
        if request.on_output is not None:
            live = Live(self._shell.quick, working_folder(number), request.on_output)
        try:
            with live or nullcontext():
                answer = self._shell.ask(
                    request.command, folder, data=request.stdin, variables=variables,
                    seconds=seconds,
                    strict=request.cwd is not None, definitions=self.definitions, keep=True,
                    counted=f"{MARK}={mark}", mark=number,
                )  # fmt: skip
        finally:
            if forget is not None:
                forget()
        if live is not None:
            live.release(answer.out, answer.err)
        return answer

    def _begin(self, request: CommandRequest) -> CloudBackground:
        request.check_names()
        self.open()
        folder = self.cwd if request.cwd is None else self.absolute(request.cwd)
        mark, variables = self._variables(request)
        # Too much of it is said before anything runs.
        typed = request.typed if request.pty else b""
        pid = begin(
            self._shell, request, self._kept(mark), folder=folder, variables=variables,
            definitions=self.definitions,
        )  # fmt: skip
        one = self._backgrounds.add(
            lambda name: self._made(name, request, folder, mark, pid), request.name
        )
        one.takes_input = request.stdin is None or request.pty
        if typed:
            one.write(typed)
        return one

    def _left(
        self, request: CommandRequest, folder: str, mark: str, pids: tuple[int, ...]
    ) -> CloudBackground:
        """What a command left running, as a process of the task's."""
        kept = self._kept(mark)
        self._shell.quick(f"mkdir -p {kept}; : >{kept}/log")
        one = self._backgrounds.add(lambda name: self._made(name, request, folder, mark, pids[0]))
        one.left_behind = True
        return one

    def _made(
        self, name: str, request: CommandRequest, folder: str, mark: str, pid: int
    ) -> CloudBackground:
        return CloudBackground(
            self._shell.quick, self._kept(mark), f"{MARK}={mark}", name=name,
            command=request.command, cwd=folder, pid=pid,
        )  # fmt: skip

    # -- the rest of it -----------------------------------------------------------------------

    def _kept(self, mark: str) -> str:
        """The folder there for what belongs to a command beside others."""
        return f"/tmp/hermes-{self._token}/{mark}"

    def _variables(self, request: CommandRequest) -> tuple[str, dict[str, str | None]]:
        """A mark of its own for a command, and the variables that it is given."""
        mark = f"{self._token}.{os.urandom(4).hex()}."
        usual = {**UNATTENDED, **self._shared.passed_env()}
        if request.pty:
            usual = {**self._shared.passed_env(), "TERM": "xterm-256color"}
        return mark, {**usual, **self.env, **request.env, MARK: mark}

    def _probe(self) -> None:
        """Learn what a new sandbox is like, and where commands begin in it."""
        self._shell.probe()
        home = self._shell.exports.get("HOME", "/")
        self.cwd = posixpath.normpath(posixpath.join(home, self.cwd)) if self.cwd else home
        self._first_folder = self._first_folder or self.cwd
