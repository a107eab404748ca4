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
from hermes.core.paths import MARK
from hermes.runtime.child_process import kill_marked

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


# Time between SIGTERM and SIGKILL.
GRACE_SECONDS = 0.8
# The guardian is imported, not run by its file name: that way its byte code is cached.
FOLDER = os.path.dirname(os.path.abspath(__file__))
_BEGIN = "import sys; sys.path.insert(0, sys.argv[1]); import guardian; guardian.main()"
_ids = count(1)


class GuardianClient:
    """Starts commands through the guardian, which ends them when this program ends."""

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
        """Start a command; its id, and the status pipe (see `guardian`).

        `program` is the executable, `argv[0]` by default. `files` maps descriptor numbers of the
        command to descriptors here, which the caller closes. With `announce` the status pipe also
        reports the start.
        """
        id_ = next(_ids)
        status, status_write = os.pipe()
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
                files=[status_write, *files.values()],
            )
        except BaseException:
            os.close(status)
            raise
        finally:
            os.close(status_write)
        return id_, status

    def signal(self, id_: int, number: int) -> None:
        """Send a signal to all processes of a command."""
        self._send("signal", id_, int(number))

    def stop(self, id_: int, *, grace: float = GRACE_SECONDS) -> None:
        """Stop all processes of a command; the status pipe reports when they are gone."""
        self._send("stop", id_, grace)

    def detach(self, id_: int) -> None:
        """Let a command outlive its task and this program."""
        self._send("detach", id_)

    def stop_task(self, task: str, *, grace: float = GRACE_SECONDS, within: float = 5.0) -> bool:
        """Stop all commands of a task; whether none is left."""
        if self._socket is None:
            return True
        complete, _ = self._ask("stop_task", task, grace, within=within)
        return complete

    def pids(self, task: str) -> dict[int, list[int]]:
        """The process ids of each command of a task, by the command's id."""
        if self._socket is None:
            return {}
        complete, data = self._ask("members", task, within=2.0)
        pids: dict[int, list[int]] = marshal.loads(data) if complete and data else {}
        return pids

    def pids_inside(self, task: str) -> dict[int, list[int]]:
        """The same in the pid namespace of the commands."""
        return self.pids(task)

    def expect_output(self, id_: int, seconds: float) -> None:
        """A hint for relays that poll: the output of a command is read during these seconds."""

    def open(self) -> None:
        """Start the guardian, if it does not run."""
        with self._lock:
            if self._socket is None:
                self._start()

    def sweep(self, task: str, leader: int) -> None:
        """After the guardian was killed: kill a command's process group, and the task's processes.

        The latter are found by the mark in their environment.
        """
        if leader > 1:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(leader, signal.SIGKILL)
        kill_marked(MARK, task)

    def close(self) -> None:
        """End all commands, as if this program had ended."""
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
            deadline = time.monotonic() + within
            poll = select.poll()
            poll.register(ours, select.POLLIN)
            while (left := deadline - time.monotonic()) > 0:
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
            for retry in (True, False):
                channel = self._socket or self._start()
                try:
                    sent = channel.sendmsg([data], rights if files else [])
                    if sent < len(data):
                        channel.sendall(data[sent:])
                    return
                except (BrokenPipeError, ConnectionResetError):
                    # The guardian was killed; a new one knows nothing of its commands.
                    self._drop()
                    if not retry:
                        raise

    def _start(self) -> socket.socket:
        if os.name != "posix" or not sys.executable:
            raise UnavailableError("commands can't be run on this system")
        ours, theirs = socket.socketpair()
        try:
            self.pid = os.posix_spawn(
                sys.executable,
                self._argv(),
                # Empty: each command gets its own environment.
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
        # From the start, so that a killed guardian does not stay as a zombie.
        reaper = threading.Thread(target=self._reap, args=(self.pid, marks), name="hermes-reap")
        reaper.daemon = True
        reaper.start()
        return ours

    def _argv(self) -> list[str]:
        """The command line of the guardian."""
        return [sys.executable, "-I", "-S", "-c", _BEGIN, FOLDER, str(os.getpid())]

    def _reap(self, pid: int, marks: int) -> None:
        # Another thread of this program may have reaped all children.
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)
        if marks:
            # If the guardian was killed, its commands still run.
            process_table.sweep(marks)
        with self._lock:
            if self.pid == pid:
                self._drop()

    def _drop(self) -> None:
        if self._socket is None:
            return
        self._socket.close()
        self._socket = None
        self.pid = 0

    def forget(self) -> None:
        """In a forked child: the guardian belongs to the parent."""
        self._lock = threading.Lock()
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            self.pid = 0


guardian = GuardianClient()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=guardian.forget)
