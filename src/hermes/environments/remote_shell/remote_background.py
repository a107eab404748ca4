"""Remote background command: start, log and state through the local program that holds it."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.errors import ToolError
from hermes.environments.host.background_process import LocalBackground
from hermes.environments.host.guardian_client import guardian
from hermes.environments.host.process import ERR, OUT, Process
from hermes.environments.host.process_listing import who_ended
from hermes.environments.remote_shell.framing import BrokenChannelError, Splitter, start
from hermes.environments.remote_shell.run import hand_over
from hermes.environments.remote_shell.scripts import SCRIPT, listening, quoted

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.environments.background import State
    from hermes.environments.command import Order
    from hermes.environments.command_output import Spill
    from hermes.environments.remote_shell.connection import Connection
    from hermes.environments.remote_shell.run import Request


class Started(NamedTuple):
    """The program that holds a command, where its input is written to, the command's process id.

    On each stream a mark comes first: what a login prints is before it.
    """

    process: Process
    input_file: int
    pid: int
    mark: str


def begin(connection: Connection, request: Request, order: Order, folder: str) -> Started:
    """Start a command there; raises `BrokenChannelError` when the connection is gone."""
    link = connection.link
    typed = order.typed if order.pty else b""
    hand_over(connection, request)
    mark = os.urandom(8).hex()
    place = request.place("b")
    answer = connection.ask(
        f"printf %s {quoted(request.alone(folder, mark))} >{place}; "
        f"[ -d {quoted(folder)} ] && echo y"
    )
    if not answer.strip():
        raise ToolError(f"{folder} is no folder", hint="Give a workdir that exists.")
    process = Process(lambda *_: None)
    on_terminal = order.pty and not link.gives_terminal
    argv = link.argv(["/bin/sh", place], tty=order.pty)
    input_file = start(process, argv, task=connection.task, terminal=on_terminal)
    said = connection.ask(
        f"i=0; while ! group {request.number} && [ $i -lt 200 ]; do i=$((i+1)); sleep 0.02; done; "
        'echo "$p"'
    )
    if typed:
        os.write(process.master if on_terminal else input_file, typed)
    elif request.data is not None:
        os.close(input_file)
        input_file = -1
    return Started(process, input_file, int(said.strip() or 0), mark)


_LONGEST_GREETING = 8000


class FarBackground(LocalBackground):
    """Its process ids are those of the far end; log and state are the program's that holds it."""

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
        known: list[int],
        mark: str = "",
        input_file: int = -1,
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
            input_file=input_file,
            make_spill=make_spill,
            ansi=ansi,
        )
        self.pid = known[0]
        # Its processes as they were when it came here.
        self.known = known
        # What a login prints comes before the command, which begins with this mark on each stream.
        self._mark = f"\x1e{mark}<".encode()
        self._before: dict[int, bytes] = {OUT: b"", ERR: b""} if mark else {}
        # With the same mark it says that it has ended; on a terminal there is nobody to say so.
        self._says_end = bool(mark) and not pty
        self._said_end = False
        self._splitter = Splitter(mark, printed=self._printed, told=self._told)
        self.place = connection.link.label
        self._connection = connection
        self._worker = worker
        self._number = number

    def _feed(self, stream: int, data: memoryview) -> None:
        if stream in self._before:
            held = self._before[stream] + bytes(data)
            at = held.find(self._mark)
            if at < 0:
                self._before[stream] = held[-_LONGEST_GREETING:]
                return
            del self._before[stream]
            data = memoryview(held[at + len(self._mark) :])
        if data and stream == OUT and self._says_end:
            self._splitter.feed(bytes(data))
        elif data:
            super()._feed(stream, data)

    def _printed(self, data: bytes) -> None:
        super()._feed(OUT, memoryview(data))

    def _told(self, message: bytes) -> None:  # noqa: ARG002
        self._said_end = True

    def _outcome(self) -> State:
        # What is left of a command ends well, whenever that is; a shell says that it ended.
        heard = self._said_end if self._says_end else not self.left_behind or not self.exit_code
        if heard or self.killed_by:
            return super()._outcome()
        self.killed_by = who_ended(self._held_by)
        if self.killed_by:
            # Only what held it is gone so far; this is no place to wait for the rest.
            threading.Thread(target=self._end_there, name="hermes-end-there", daemon=True).start()
            return "killed"
        # All that is known is the end of the program here.
        self.exit_code = None
        return "lost"

    def settle(self) -> bool:
        """Whether nothing of it is left; notes how it ended."""
        if self._process.gone and len(self._before) == 2:
            # It did not even begin: then this says why.
            before, self._before = self._before, {}
            for stream, said in before.items():
                self._feed(stream, memoryview(said))
        # Should the process that watches over commands here be gone, what has that number on this
        # machine is somebody else's.
        pid, self.pid = self.pid, 0
        try:
            return super().settle()
        finally:
            self.pid = pid

    def signal(self, number: int) -> None:
        """Signal everything that belongs to it."""
        if self.state == "running":
            self._signalled = True
            word = signal.Signals(number).name.removeprefix("SIG")
            try:
                self._connection.ask(f"hit {word} {self._worker} {self._number}")
            except BrokenChannelError:
                return

    def kill(self, by: str) -> None:
        """End everything that belongs to it, and note who wanted that."""
        if self.state == "running":
            self.killed_by = self.killed_by or by
            self._connection.stop(self._worker, self._number)
            if not self.wait(4.0):
                guardian.stop(self.id)

    def detach(self) -> None:
        """Let it live on when the task ends."""
        self.detached = True
        self._connection.ask(f': >"$D/d{self._number}"')

    def waits(self) -> bool:
        """Whether one of its processes is seen to wait for somebody to type."""
        try:
            return bool(self._connection.ask(f"waits {self._number}").strip())
        except BrokenChannelError:
            return False

    def hides(self) -> bool:
        """Whether what is typed now is not shown."""
        number = self._number
        try:
            said = self._connection.ask(f'group {number} {number}; stty -a <"/proc/$p/fd/0"')
        except BrokenChannelError:
            return False
        return {b"icanon", b"-echo"} <= set(said.replace(b";", b" ").split())

    def _end_there(self) -> None:
        with suppress(BrokenChannelError):
            self._connection.stop(self._worker, self._number)

    def pids(self) -> list[int]:
        """Its processes that are alive, by their numbers there."""
        found = self._connection.members(self._number)
        return found or self._connection.group(self._worker, self._number)

    def here(self) -> list[int]:
        """They are elsewhere."""
        return []

    def ports(self) -> list[str]:
        """Where they listen there, as `address:port`."""
        try:
            said = self._connection.ask(f"set -- $(marked {self._number}.); {SCRIPT}")
        except BrokenChannelError:
            return []
        return listening(said.decode("ascii", "replace"))
