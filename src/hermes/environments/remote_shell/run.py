"""Run of one remote command: the script for a worker, and its output until the end."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, NamedTuple

import hermes.environments.shell_state as shell_state
from hermes.core.paths import MARK
from hermes.environments.command import is_variable_name
from hermes.environments.command_wait import (
    DOUBT_SECONDS,
    SETTLE_SECONDS,
    STOP_SECONDS,
    LiveOutput,
    WaitOutcome,
    last_line,
    looks_like_prompt,
    poll_seconds,
)
from hermes.environments.host.process import ERR, OUT, Process
from hermes.environments.remote_shell.connection import BrokenChannelError, run_with_input
from hermes.environments.remote_shell.scripts import exports, make_terminal, quote, set_limit_mark

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hermes.environments.command import Collector, CommandRequest, EndReason
    from hermes.environments.remote_shell.connection import Channel, Connection

# Larger stdin is sent apart from the script.
MAX_INLINE = 64 * 1024
_LOOK_SECONDS = 0.03
_SCRIPT_SECONDS = 120.0
# Commands that are likely to leave processes outside of their process group.
_DETACHES = re.compile(r"(?<![&<>])&(?![&>])|\b(?:setsid|nohup|daemon)")


class WorkerScript:
    """The shell script that runs one command; its processes are marked with its `number`.

    `worker` is the number in the names of its files there: its own until a worker takes it on.
    """

    def __init__(
        self,
        connection: Connection,
        request: CommandRequest,
        variables: Mapping[str, str | None],
        definitions: str = "",
    ) -> None:
        self._remote = connection.info
        self._token = connection.token
        self._request = request
        self.number = self.worker = connection.next_number()
        self.variables = {
            **{name: value for name, value in variables.items() if is_variable_name(name)},
            MARK: f"{connection.token}.{self.number}.",
            # Otherwise bash takes itself for an ssh login, and reads its start-up files each time.
            "SHLVL": "1",
        }
        self._definitions = definitions
        # On a terminal, stdin is typed instead.
        self.data = None if request.pty else request.stdin

    @property
    def inline(self) -> bool:
        """Whether stdin is sent within the script."""
        return self.data is None or (len(self.data) <= MAX_INLINE and b"\0" not in self.data)

    def path(self, letter: str) -> str:
        """The path of one of its files there; see `scripts`."""
        return f"{self._remote.folder}/{letter}{self.worker}"

    def for_worker(self, folder: str, *, keep: bool, strict: bool) -> str:
        """The text for a worker; with `keep` it reports the shell state.

        With `strict` the command does not run when the folder is gone.
        """
        before, files = self._files()
        files += " 2>&3 3>&-"
        if keep:
            files += f" {shell_state.STATE_FILE}>{self.path('s')}"
        return (
            f"{before}if go {quote(folder)} {'1' if strict else quote('')}; then (\n"
            f"{exports(self.variables)}exec {self._remote.setsid} {self._words(keep)}{files}\n"
            f"); end $? {'1' if keep else ''}\nelse end 255; fi\n"
        )

    def alone(self, folder: str, mark: str) -> str:
        """The text of a script file that runs it in the background.

        Each stream begins with a mark, after the greeting of the login; the output ends with one.
        """
        before, files = self._files(default="")
        begin = f"printf '\\036{mark}<'"
        before = f"{begin}\n{'' if self._request.pty else f'{begin} >&2'}\n{before}"
        before = f"{set_limit_mark(self._token)}\n{before}"
        text = f"{before}cd {quote(folder)} || exit 126\nexport PWD\n{exports(self.variables)}"
        words = f"{self._words(keep=False)}{files}{'' if self._request.pty else ' 2>&3 3>&-'}\n"
        if self._request.pty:
            # No setsid: it is the leader of the terminal's session already. sshd gives a terminal
            # without special characters to a client that has none itself.
            modes = "{ stty 38400 sane; stty rows 40 cols 120; } 2>/dev/null"
            return f"{make_terminal(self.path('b'))}{modes}\n{text}exec {words}"
        # Messages of this shell itself ("Terminated") are no output of the command.
        return (
            f"{text}exec 3>&2 2>/dev/null\n( exec {self._remote.setsid} {words})\n"
            f"c=$?; printf '\\036{mark}<\\036{mark}>'; exit $c\n"
        )

    def _files(self, default: str = " </dev/null") -> tuple[str, str]:
        """The commands that write its files, and its redirections."""
        before, files = "", default
        if self.data is not None:
            files = f" <{self.path('i')}"
            if self.inline:
                text = quote(self.data.decode("utf-8", "surrogateescape"))
                before = f"printf %s {text} >{self.path('i')}\n"
        if self._long:
            form = "'%s\\0'" if self._remote.bash else "%s"
            before += f"printf {form} {quote(self._request.command)} >{self.path('t')}\n"
            files += f" {shell_state.TEXT_FILE}<{self.path('t')}"
        return before, files

    @property
    def _long(self) -> bool:
        return len(self._request.command) > shell_state.LONGEST_ARGUMENT // 4

    def _words(self, keep: bool) -> str:
        remote = self._remote
        first = f"echo $$ {self.number} >{self.path('p')}; "
        if not keep and not self._long and not self._definitions:
            words = [remote.shell, "-c", first + self._request.command]
        else:
            wrapper = shell_state.wrapped(bash=remote.bash, long=self._long, keep=keep)
            name = "bash" if remote.bash else "sh"
            text = "" if self._long else self._request.command
            words = [remote.shell, "-c", first + wrapper, name, text, self._definitions]
        return " ".join(map(quote, words))


class WorkerReport:
    """The messages of a worker about one command."""

    def __init__(self) -> None:
        self.begun = False
        self.code: int | None = None
        self.pid = 0
        # Whether its process group has live processes; and whether any process is newer than it.
        self.left = False
        self.newer = False
        self.state = b""
        self.no_folder = False
        self.moved_to = ""
        self._errors_ended = False

    @property
    def complete(self) -> bool:
        """Whether the command has ended, and all its output was read."""
        return self.code is not None and self._errors_ended

    def add(self, message: bytes) -> None:
        kind, rest = message[:1], message[1:]
        if kind == b"B":
            self.begun = True
        elif kind == b"S":
            self.state = rest
        elif kind == b"F":
            self.no_folder = True
        elif kind == b"G":
            self.moved_to = rest.decode("utf-8", "surrogateescape")
        elif kind == b"E":
            code, pid, left = rest.split()
            self.code, self.pid = int(code), int(pid)
            self.left, self.newer = left == b"2", left != b"0"
        elif kind == b"e":
            self._errors_ended = True


class LeftRunning(NamedTuple):
    """Processes that a command left running, and the local process that reads their output."""

    process: Process
    pids: list[int]


class RunOutcome(NamedTuple):
    """Outcome of a command, and the processes that it left running."""

    outcome: WaitOutcome
    report: WorkerReport
    seconds: float
    left: LeftRunning | None


def run(
    connection: Connection,
    script: WorkerScript,
    request: CommandRequest,
    collector: Collector,
    *,
    folder: str,
    keep: bool,
) -> RunOutcome:
    """Run a command; with `keep` the shell state is reported.

    Raises `BrokenChannelError` when it did not even begin.
    """
    channel = connection.worker()
    script.worker = channel.number
    report = WorkerReport()
    left: LeftRunning | None = None
    start = time.monotonic()
    try:
        send_stdin(connection, script)
        text = script.for_worker(folder, keep=keep, strict=request.cwd is not None)
        outcome = _Follower(connection, channel, script, report, collector, request).run(text)
        seconds = time.monotonic() - start
        if outcome.reason == "exited" and report.newer and not report.no_folder:
            retry = _DETACHES.search(request.command) is not None
            left = _left_running(connection, channel, report, script.number, retry=retry)
    except BaseException:
        if not report.complete:
            connection.stop(channel.number, script.number)
        collector.discard()
        raise
    finally:
        connection.give_back(channel if left is None else None, reuse=report.complete)
    return RunOutcome(outcome, report, seconds, left)


def run_script(connection: Connection, script: WorkerScript) -> tuple[int | None, bytes, bytes]:
    """Run an internal script: its exit code, stdout and stderr; no code when it did not end."""
    channel = connection.worker()
    script.worker = channel.number
    report = WorkerReport()
    output: dict[int, list[bytes]] = {OUT: [], ERR: []}
    try:
        send_stdin(connection, script)
        channel.on_output = lambda stream, piece: output[stream].append(piece)
        channel.on_message = report.add
        channel.send(script.for_worker("/", keep=False, strict=True))
        deadline = time.monotonic() + _SCRIPT_SECONDS
        while not report.complete and (left := deadline - time.monotonic()) > 0:
            if channel.gone:
                raise BrokenChannelError
            channel.read(left)
        if not report.complete:
            connection.stop(channel.number, script.number)
    finally:
        connection.give_back(channel, reuse=report.complete)
    return report.code, b"".join(output[OUT]), b"".join(output[ERR])


def send_stdin(connection: Connection, script: WorkerScript) -> None:
    """Write stdin that is too large for the script to its file there."""
    if script.data is None or script.inline:
        return
    transport = connection.transport
    process = Process(lambda *_: None, transport.guardian)
    path = f"{connection.info.folder}/w{connection.next_number()}"
    connection.ask(f"echo 'exec cat >{script.path('i')}' >{path}")
    argv = transport.argv(["/bin/sh", path])
    run_with_input(process, argv, script.data, task=connection.task)
    if process.exit_code != 0:
        raise BrokenChannelError


def _left_running(
    connection: Connection, channel: Channel, report: WorkerReport, number: int, *, retry: bool
) -> LeftRunning | None:
    """Find the processes that a command left running, and keep the channel for their output."""

    def alive() -> list[int]:
        members = connection.members(number)
        return members or (connection.group(channel.number, number) if report.left else [])

    deadline = time.monotonic() + SETTLE_SECONDS
    pids = alive()
    if not pids and retry:
        # During `exec` a process shows no mark for a moment.
        time.sleep(_LOOK_SECONDS)
        pids = alive()
    while pids and time.monotonic() < deadline:
        time.sleep(_LOOK_SECONDS)
        pids = alive()
    if not pids:
        return None
    channel.send(f"linger {connection.token}.{number} {' '.join(map(str, pids))}\n")
    return LeftRunning(channel.release(), pids)


class _Follower:
    """Reads the output of a command until it is over."""

    def __init__(
        self,
        connection: Connection,
        channel: Channel,
        script: WorkerScript,
        report: WorkerReport,
        collector: Collector,
        request: CommandRequest,
    ) -> None:
        self._connection = connection
        self._channel = channel
        self._number = script.number
        self._report = report
        self._collector = collector
        self._request = request
        self._live: LiveOutput | None = None
        self._cancelled = False

    def run(self, text: str) -> WaitOutcome:
        """Send the script and wait; raises `BrokenChannelError` when it did not even begin."""
        channel, request = self._channel, self._request
        feed: Callable[[int, memoryview], None] = self._collector.feed
        if request.on_output is not None:
            self._live = LiveOutput(request.on_output, feed)
            feed = self._live.feed
        channel.on_output = lambda stream, data: feed(stream, memoryview(data))
        channel.on_message = self._report.add
        channel.send(text)
        forget = None
        if request.cancellation is not None:
            forget = request.cancellation.on_cancel(self._cancel)
        try:
            outcome = self._wait()
            if outcome.reason == "lost" and not self._report.begun:
                raise BrokenChannelError
            if self._cancelled and outcome.reason == "exited":
                return WaitOutcome("cancelled", notes=outcome.notes)
            return outcome
        finally:
            if forget is not None:
                forget()
            if self._live is not None:
                self._live.flush(last=True)

    def _stop(self) -> None:
        self._connection.stop(self._channel.number, self._number)

    def _cancel(self) -> None:
        # A command that has ended already was not cancelled.
        self._cancelled = not self._report.complete
        self._stop()

    def _wait(self) -> WaitOutcome:
        channel, report, request = self._channel, self._report, self._request
        silent_since = time.monotonic()
        deadline = None if request.timeout is None else silent_since + request.timeout
        while not report.complete and not channel.gone:
            now = time.monotonic()
            if request.cancelled:
                return self._stopped("cancelled")
            if deadline is not None and now >= deadline:
                return self._stopped("timeout")
            silence = now - silent_since
            if silence >= DOUBT_SECONDS:
                recent = self._collector.recent(400)
                if looks_like_prompt(recent) and self._connection.all_sleep(self._number):
                    return self._stopped("needs input", last_line(recent))
            before = self._collector.total
            channel.read(poll_seconds(silence, deadline))
            if self._live is not None:
                self._live.flush()
            if self._collector.total != before:
                silent_since = time.monotonic()
        if not report.complete:
            channel.process.drain()
        return WaitOutcome("exited" if report.complete else "lost", alive=report.left)

    def _stopped(self, reason: EndReason, prompt: str = "") -> WaitOutcome:
        """Stop the command, and read until all its processes are gone."""
        channel, report = self._channel, self._report
        self._stop()
        deadline = time.monotonic() + STOP_SECONDS
        while (
            not report.complete and not channel.gone and (left := deadline - time.monotonic()) > 0
        ):
            channel.read(left)
        if report.complete or channel.gone:
            return WaitOutcome(reason, prompt=prompt)
        notes = ("some of its processes could not be ended yet",)
        return WaitOutcome(reason, prompt=prompt, notes=notes)
