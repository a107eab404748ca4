"""A command that runs beside others at the far end, held by a program here."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from hermes.environments.far.channel import BrokenChannelError
from hermes.environments.listening import SCRIPT, listening
from hermes.environments.local.background import LocalBackground
from hermes.environments.local.owner import guardian
from hermes.environments.local.process import ERR, OUT

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.environments.far.connection import Connection
    from hermes.environments.local.process import Process
    from hermes.environments.output.spill import Spill

_LONGEST_GREETING = 8000


class FarBackground(LocalBackground):
    """Its process ids are those of the far end; log and state are the program's that holds it."""

    # Whoever wants to look at its processes must not look here.
    far = True

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
        if data:
            super()._feed(stream, data)

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

    def pids(self) -> list[int]:
        """Its processes that are alive, by their numbers there."""
        found = self._connection.members(self._number)
        return found or self._connection.group(self._worker, self._number)

    def ports(self) -> list[str]:
        """Where they listen there, as `address:port`."""
        try:
            said = self._connection.ask(f"set -- $(marked {self._number}.); {SCRIPT}")
        except BrokenChannelError:
            return []
        return listening(said.decode("ascii", "replace"))
