"""Client of the guardian: one guardian per program, started with the first command."""

from __future__ import annotations

import marshal
import os
import signal
import socket
import struct
import sys
import threading
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING

import hermes.environments.host.process_table as process_table
from hermes.core.errors import UnavailableError
from hermes.environments.env_vars import MARK
from hermes.runtime.child_process import kill_marked

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


# How long a command may take to end when asked, before it is killed.
GRACE_SECONDS = 0.8
# The guardian is imported and not run by its file, so that it need not be compiled each time.
FOLDER = os.path.dirname(os.path.abspath(__file__))
_BEGIN = "import sys; sys.path.insert(0, sys.argv[1]); import guardian; guardian.main()"
_ids = count(1)


class Guardian:
    """Starts commands in a process that ends them should we end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self.pid = 0

    def run(
        self,
        argv: Sequence[bytes],
        *,
        program: bytes = b"",
        task: str,
        env: Mapping[bytes, bytes],
        cwd: str,
        files: Mapping[int, int],
        tty: str | None = None,
        announce: bool = False,
    ) -> tuple[int, int]:
        """Start a command; its id, and the pipe that says what becomes of it.

        The program is its first word, or where `program` says. `files` maps the numbers the command
        knows to files of ours; they stay ours to close. With `announce` the pipe says when it has
        started, and not only how it ended.
        """
        id_ = next(_ids)
        told, status = os.pipe()
        try:
            self._send(
                "run",
                id_,
                task,
                program or argv[0],
                list(argv),
                dict(env),
                os.fsencode(cwd),
                list(files),
                None if tty is None else os.fsencode(tty),
                announce,
                files=[status, *files.values()],
            )
        except BaseException:
            os.close(told)
            raise
        finally:
            os.close(status)
        return id_, told

    def signal(self, id_: int, number: int) -> None:
        """Signal everything that belongs to a command."""
        self._send("signal", id_, int(number))

    def stop(self, id_: int, *, grace: float = GRACE_SECONDS) -> None:
        """End a command and everything it started; its status pipe says when that is done."""
        self._send("stop", id_, grace)

    def detach(self, id_: int) -> None:
        """Let a command live on when its task, or Hermes, ends."""
        self._send("detach", id_)

    def stop_task(self, task: str, *, grace: float = GRACE_SECONDS, within: float = 5.0) -> bool:
        """End all that belongs to a task; whether nothing is left."""
        if self._socket is None:
            return True
        answer, _ = self._ask("stop_task", task, grace, within=within)
        return answer

    def members(self, task: str) -> dict[int, list[int]]:
        """The processes of each command of a task, by the command's id."""
        if self._socket is None:
            return {}
        whole, data = self._ask("members", task, within=2.0)
        found: dict[int, list[int]] = marshal.loads(data) if whole and data else {}
        return found

    def numbers(self, task: str) -> dict[int, list[int]]:
        """The same by the numbers that the commands themselves know."""
        return self.members(task)

    def open(self) -> None:
        """Start it now, if it does not run."""
        with self._lock:
            if self._socket is None:
                self._start()

    def sweep(self, task: str, leader: int) -> None:
        """End what is left of a task's command when whoever watched over it was killed."""

        sweep(task, leader)

    def close(self) -> None:
        """Have everything ended, as if the program had."""
        with self._lock:
            self._drop()

    def _ask(self, *request: Any, within: float) -> tuple[bool, bytes]:
        import select
        import time

        ours, theirs = os.pipe()
        try:
            try:
                self._send(*request, files=[theirs])
            finally:
                os.close(theirs)
            data = b""
            until = time.monotonic() + within
            poll = select.poll()
            poll.register(ours, select.POLLIN)
            while (left := until - time.monotonic()) > 0:
                if poll.poll(left * 1000):
                    piece = os.read(ours, 65_536)
                    if not piece:
                        return True, data
                    data += piece
            return False, data
        finally:
            os.close(ours)

    def _send(self, *request: Any, files: Sequence[int] = ()) -> None:
        body = marshal.dumps(request)
        data = len(body).to_bytes(4, "little") + body
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack(f"{len(files)}i", *files))]
        with self._lock:
            for again in (True, False):
                channel = self._socket or self._start()
                try:
                    sent = channel.sendmsg([data], rights if files else [])
                    if sent < len(data):
                        channel.sendall(data[sent:])
                    return
                except (BrokenPipeError, ConnectionResetError):
                    # Somebody killed it. What it watched over is gone from its sight for good.
                    self._drop()
                    if not again:
                        raise

    def _start(self) -> socket.socket:
        if os.name != "posix" or not sys.executable:
            raise UnavailableError("commands can't be run on this system")
        ours, theirs = socket.socketpair()
        try:
            self.pid = os.posix_spawn(
                sys.executable,
                self._words(),
                # Nothing of ours: what it starts gets its variables from us, one by one.
                {},
                file_actions=[(os.POSIX_SPAWN_DUP2, theirs.fileno(), 0)],
                setsid=True,
                setsigdef=(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD),
                setsigmask=(),
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self._socket = ours
        marks = process_table.prefix(self.pid) if process_table.LINUX else 0
        # From the start: somebody may kill it, and then it must not stay as a zombie.
        reaper = threading.Thread(target=self._reap, args=(self.pid, marks), name="hermes-reap")
        reaper.daemon = True
        reaper.start()
        return ours

    def _words(self) -> list[str]:
        return [sys.executable, "-I", "-S", "-c", _BEGIN, FOLDER, str(os.getpid())]

    def _reap(self, pid: int, marks: int) -> None:
        # Somebody else may wait for every child of this program.
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)
        if marks:
            # Should somebody have killed it: whatever it had started and not ended.
            process_table.sweep(marks)
        with self._lock:
            if self.pid == pid:
                # Nobody is at the other end any more.
                self._drop()

    def _drop(self) -> None:
        if self._socket is None:
            return
        self._socket.close()
        self._socket = None
        self.pid = 0

    def forget(self) -> None:
        """In a forked child: the guardian is our parent's, not ours."""
        self._lock = threading.Lock()
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            self.pid = 0


guardian = Guardian()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=guardian.forget)


def sweep(task: str, leader: int) -> None:
    """Kill a command's process group, and whatever else has the task's mark in its environment."""
    if leader > 1:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGKILL)
    kill_marked(MARK, task)
