"""Remote background command: start, log and state through the local process that holds it."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.errors import ToolError
from hermes.environments.background import Background
from hermes.environments.host.process import ERR, OUT, Process
from hermes.environments.host.process_listing import take_killer
from hermes.environments.remote_shell.connection import BrokenChannelError, FrameSplitter, start
from hermes.environments.remote_shell.run import send_stdin
from hermes.environments.remote_shell.scripts import (
    CAN_MAKE_TERMINAL,
    LIST_SOCKETS,
    parse_listeners,
    quote,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.environments.background import State
    from hermes.environments.command import CommandRequest, Spill
    from hermes.environments.remote_shell.connection import Connection
    from hermes.environments.remote_shell.run import WorkerScript

_MAX_GREETING = 8000


class Started(NamedTuple):
    """A started command: the local process that holds it, its stdin, its remote pid.

    Each stream has the mark after the greeting of the login.
    """

    process: Process
    stdin: int
    pid: int
    mark: str


def begin(
    connection: Connection, script: WorkerScript, request: CommandRequest, folder: str
) -> Started:
    """Start a background command; raises `BrokenChannelError` when the connection is gone."""
    transport = connection.transport
    typed = request.typed if request.pty else b""
    send_stdin(connection, script)
    mark = os.urandom(8).hex()
    path = script.path("b")
    checks = connection.ask(
        f"printf %s {quote(script.alone(folder, mark))} >{path}; "
        f"[ -d {quote(folder)} ] && echo folder; {CAN_MAKE_TERMINAL} && echo terminal"
    ).split()
    if b"folder" not in checks:
        raise ToolError(f"{folder} is no folder", hint="Give a workdir that exists.")
    if request.pty and transport.terminal == "remote" and b"terminal" not in checks:
        raise ToolError(
            f"no terminal can be had on {transport.label}: it has neither script nor python3",
            hint="Leave pty out, or use another image.",
        )
    process = Process(lambda *_: None, transport.guardian)
    local_terminal = request.pty and transport.terminal == "local"
    argv = transport.argv(["/bin/sh", path], tty=request.pty and transport.terminal == "transport")
    stdin = start(process, argv, task=connection.task, terminal=local_terminal)
    try:
        pid = connection.ask(
            f"i=0; while ! group {script.number} && [ $i -lt 200 ]; do i=$((i+1)); sleep 0.02; "
            'done; echo "$p"'
        )
    except BrokenChannelError:
        if stdin >= 0:
            os.close(stdin)
        process.guardian.stop(process.id)
        process.close()
        raise
    if typed:
        os.write(process.master if local_terminal else stdin, typed)
    elif script.data is not None:
        os.close(stdin)
        stdin = -1
    return Started(process, stdin, int(pid.strip() or 0), mark)


class RemoteBackground(Background):
    """A remote background command: its pids are remote, log and state come from a local process."""

    def __init__(
        self,
        connection: Connection,
        process: Process,
        *,
        worker: int,
        number: int,
        name: str,
        command: str,
        cwd: str,
        task: str,
        pid: int,
        mark: str = "",
        stdin: int = -1,
        pty: bool = False,
        make_spill: Callable[[], Spill] | None = None,
        ansi: bool = False,
    ) -> None:
        super().__init__(
            process,
            name=name,
            command=command,
            cwd=cwd,
            task=task,
            stdin=stdin,
            make_spill=make_spill,
            ansi=ansi,
        )
        self.pid = pid
        self.remote = connection.transport.label
        self.dies_with_backend = connection.transport.ends_with_connection
        # The greeting of the login, up to the mark at the beginning of each stream.
        self._mark = f"\x1e{mark}<".encode()
        self._greeting: dict[int, bytes] = {OUT: b"", ERR: b""} if mark else {}
        # A message with the same mark reports its end; not on a terminal, where no shell is left.
        self._reports_end = bool(mark) and not pty
        self._end_reported = False
        self._splitter = FrameSplitter(
            mark, on_output=self._log_output, on_message=self._set_end_reported
        )
        self._connection = connection
        self._worker = worker
        self._number = number

    def _on_output(self, stream: int, data: memoryview) -> None:
        if stream in self._greeting:
            text = self._greeting[stream] + bytes(data)
            at = text.find(self._mark)
            if at < 0:
                self._greeting[stream] = text[-_MAX_GREETING:]
                return
            del self._greeting[stream]
            data = memoryview(text[at + len(self._mark) :])
        if data and stream == OUT and self._reports_end:
            self._splitter.feed(bytes(data))
        elif data:
            super()._on_output(stream, data)

    def _log_output(self, data: bytes) -> None:
        super()._on_output(OUT, memoryview(data))

    def _set_end_reported(self, message: bytes) -> None:  # noqa: ARG002
        self._end_reported = True

    def _outcome(self) -> State:
        # Processes left running have no shell that reports their end; then the exit code is 0.
        if self._reports_end:
            reported = self._end_reported
        else:
            reported = not self.left_behind or not self.exit_code
        if reported or self.killed_by:
            return super()._outcome()
        self.killed_by = take_killer(self._local_pids)
        if self.killed_by:
            # So far only the local process was killed; this thread must not wait for the rest.
            threading.Thread(target=self._end_remote, name="hermes-end-remote", daemon=True).start()
            return "killed"
        # The exit code is that of the local process.
        self.exit_code = None
        return "lost"

    def settle(self) -> bool:
        """Whether all its processes are gone; records the outcome then."""
        if self._process.gone and len(self._greeting) == 2:
            # It did not even begin; the greeting has the error message.
            greeting, self._greeting = self._greeting, {}
            for stream, text in greeting.items():
                self._on_output(stream, memoryview(text))
        # A sweep after the loss of the guardian must not use a remote pid.
        pid, self.pid = self.pid, 0
        try:
            return super().settle()
        finally:
            self.pid = pid

    def signal(self, number: int) -> None:
        """Send a signal to all its processes."""
        if self.state == "running":
            self._signalled = True
            name = signal.Signals(number).name.removeprefix("SIG")
            with suppress(BrokenChannelError):
                self._connection.ask(f"hit {name} {self._worker} {self._number}")

    def kill(self, by: str) -> None:
        """End all its processes; `by` is recorded as the killer."""
        if self.state == "running":
            self.killed_by = self.killed_by or by
            self._connection.stop(self._worker, self._number)
            if not self.wait(4.0):
                self._process.guardian.stop(self.id)

    def detach(self) -> None:
        """Let it outlive the task."""
        if not self._connection.transport.detachable:
            raise ToolError(f"{self.name} ends with its sandbox", hint="Use a host of your own.")
        self.detached = True
        self._connection.ask(f': >"$D/d{self._number}"')

    def waits_for_input(self) -> bool:
        """Whether one of its processes is blocked on a read of the terminal or stdin."""
        try:
            return bool(self._connection.ask(f"waits {self._number}").strip())
        except BrokenChannelError:
            return False

    def hides_input(self) -> bool:
        """Whether the terminal's echo is off, as for a password."""
        number = self._number
        try:
            modes = self._connection.ask(f'group {number} {number}; stty -a <"/proc/$p/fd/0"')
        except BrokenChannelError:
            return False
        return {b"icanon", b"-echo"} <= set(modes.replace(b";", b" ").split())

    def _end_remote(self) -> None:
        with suppress(BrokenChannelError):
            self._connection.stop(self._worker, self._number)

    def pids(self) -> list[int]:
        """Its live processes on the remote."""
        members = self._connection.members(self._number)
        return members or self._connection.group(self._worker, self._number)

    def host_pids(self) -> list[int]:
        return []

    def ports(self) -> list[str]:
        """The addresses that its processes listen on there, as `address:port`."""
        try:
            sockets = self._connection.ask(f"set -- $(marked {self._number}.); {LIST_SOCKETS}")
        except BrokenChannelError:
            return []
        return parse_listeners(sockets.decode("ascii", "replace"))
