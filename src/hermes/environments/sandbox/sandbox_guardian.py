"""Client of the guardian inside a sandbox: starts bubblewrap with the first command."""

from __future__ import annotations

import marshal
import os
import select
import socket
import struct
import sys
import time
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING

import hermes.environments.sandbox.bwrap as limiting
from hermes.core.errors import UnavailableError
from hermes.core.paths import find_program
from hermes.environments.command import BackendError
from hermes.environments.host.guardian_client import GuardianClient, guardian
from hermes.environments.host.process import Process
from hermes.environments.sandbox.bwrap import GUARDIAN_FOLDER, bwrap_arguments

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hermes.environments.sandbox.bwrap import Bind, Limits

INFO_FILE = 10
_PYTHON = os.path.realpath(sys.executable)
# A terminal is handed over as an open file, since its name means nothing inside.
_ON_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "os.execv(sys.argv[1], sys.argv[1:])"
)
_clients: weakref.WeakSet[NamespaceGuardian] = weakref.WeakSet()


class NamespaceGuardian(GuardianClient):
    """A guardian in namespaces that bubblewrap makes, with everything that it starts."""

    def __init__(self, *, task: str, start_seconds: float) -> None:
        super().__init__()
        self.limits: Limits | None = None
        # The first process inside, by its number out here.
        self.first = 0
        self._task = f"sandbox of {task}/{os.urandom(4).hex()}"
        self._start_seconds = start_seconds
        self._process: Process | None = None
        _clients.add(self)

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
        """Start a command inside; its id, and the status pipe."""
        if tty is None:
            return super().run(
                argv, program=program, task=task, env=env, cwd=cwd, files=files, announce=announce
            )
        terminal = os.open(tty, os.O_RDWR | os.O_NOCTTY)
        try:
            steps = [os.fsencode(_PYTHON), b"-I", b"-S", b"-c", _ON_TERMINAL.encode()]
            return super().run(
                [*steps, program or argv[0], *argv[1:]],
                task=task,
                env=env,
                cwd=cwd,
                files={0: terminal, 1: terminal, 2: terminal, **files},
                announce=announce,
            )
        finally:
            os.close(terminal)

    def pids_inside(self, task: str) -> dict[int, list[int]]:
        """The process ids of each command of a task, in the sandbox's pid namespace."""
        return super().pids(task)

    def pids(self, task: str) -> dict[int, list[int]]:
        """The same in the pid namespace of this machine."""
        inside = self.pids_inside(task)
        if not inside:
            return {}
        outside = _numbers(self.first)
        return {
            id_: [outside[pid] for pid in pids if pid in outside] for id_, pids in inside.items()
        }

    def sweep(self, task: str, leader: int) -> None:  # noqa: ARG002
        """End the whole sandbox, since its guardian was killed."""
        with self._lock:
            self._drop()

    def is_folder(self, path: str) -> bool:
        """Whether there is such a folder inside."""
        inside = f"/proc/{self.first}/root"
        if not self.first or not os.path.isdir(inside):
            # Without a sandbox: the next one starts from the folders here.
            return os.path.isdir(path)
        return os.path.isdir(f"{inside}{path}")

    def close(self) -> None:
        """End the sandbox and everything in it."""
        with self._lock:
            self._drop()

    def _start(self) -> socket.socket:
        bwrap = find_program("bwrap")
        if bwrap is None or sys.platform != "linux":
            raise UnavailableError(
                "the sandbox needs bubblewrap, which is not installed",
                hint="Run apt-get install bubblewrap, or choose another terminal.env_type.",
            )
        argv = self._command(bwrap)
        ours, theirs = socket.socketpair()
        info_read, info = os.pipe()
        self._process = process = Process(lambda *_: None)
        try:
            process.start(
                [os.fsencode(word) for word in argv],
                task=self._task,
                env={b"PATH": b"/usr/sbin:/usr/bin:/sbin:/bin"},
                cwd="/",
                files={0: theirs.fileno(), INFO_FILE: info},
            )
            # The other ends are theirs alone now, so that their end is seen here.
            os.close(info)
            info = -1
            theirs.close()
            ours.sendall(self._greeting())
            self._greeted(ours)
            self.first = self._first_inside(info_read)
            _ping(ours, self._start_seconds)
        except (OSError, TimeoutError, ValueError) as error:
            ours.close()
            raise self._not_started(error) from None
        finally:
            theirs.close()
            os.close(info_read)
            if info >= 0:
                os.close(info)
        self._socket = ours
        return ours

    def _command(self, bwrap: str) -> list[str]:
        """The words that start bubblewrap with a guardian inside."""
        raise NotImplementedError

    def _greeting(self) -> bytes:
        """What the guardian inside reads first."""
        return b""

    def _greeted(self, channel: socket.socket) -> None:
        """Take what the guardian inside hands over before it answers."""

    def _first_inside(self, info_read: int) -> int:
        """The pid of the first process inside, as bubblewrap reports it."""
        import json

        text = b""
        until = time.monotonic() + self._start_seconds
        poll = select.poll()
        poll.register(info_read, select.POLLIN)
        while b"}" not in text:
            if not poll.poll(max(0.0, until - time.monotonic()) * 1000):
                raise TimeoutError(f"bubblewrap was silent for {self._start_seconds:g} s")
            piece = os.read(info_read, 4096)
            if not piece:
                raise ValueError("bubblewrap ended at once")
            text += piece
        return int(json.loads(text)["child-pid"])

    def _not_started(self, error: Exception) -> BackendError:
        """The error for a sandbox that did not start; the rest of it is removed."""
        text = bytearray()
        process = self._process
        if process is not None:
            process.on_output = lambda _, data: text.extend(data)
            until = time.monotonic() + 1.0
            while process.streams and time.monotonic() < until:
                process.drain()
                time.sleep(0.01)
        self._drop()
        cause = text.decode("utf-8", "replace").strip()[-500:] or str(error)
        return BackendError(
            f"the sandbox can't be started: {cause}",
            hint="Check with: bwrap --ro-bind / / --unshare-all true",
        )

    def _drop(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        self.first = 0
        process, self._process = self._process, None
        if process is not None:
            if process.id:
                guardian.stop_task(self._task, grace=0.3)
            process.close()
        if self.limits is not None:
            self.limits.remove()

    def forget(self) -> None:
        """In a forked child: the sandbox is our parent's, not ours."""
        super().forget()
        self.first = 0
        self._process = None
        self.limits = None


class SandboxGuardian(NamespaceGuardian):
    """The guardian of a sandbox."""

    def __init__(
        self,
        workspace: str,
        *,
        task: str,
        network: bool,
        binds: Sequence[Bind],
        memory: int,
        pids: int,
        tmp_bytes: int,
        start_seconds: float,
    ) -> None:
        super().__init__(task=task, start_seconds=start_seconds)
        self.workspace = workspace
        self._network = network
        self._binds = binds
        self._memory = memory
        self._pids = pids
        self._tmp_bytes = tmp_bytes

    @property
    def user(self) -> tuple[int, int] | None:
        """The user to switch to inside (uid, gid); None to stay the same, without privileges."""
        if os.getuid():
            return None
        found = os.stat(self.workspace)
        # Only root can write to root's files: root without privileges, then.
        return (found.st_uid, found.st_gid) if found.st_uid else None

    def _command(self, bwrap: str) -> list[str]:
        """The words that start bubblewrap with a guardian inside."""
        limiting.prune()
        user = self.user
        self.limits = limiting.create_limits(
            self._memory, self._pids, as_root=os.getuid() == 0 and user is None
        )
        inner = bwrap_arguments(
            self.workspace,
            network=self._network,
            binds=self._binds,
            tmp_bytes=self._tmp_bytes,
            same_user=user is None,
        )
        begin = (
            "import sys; sys.path.insert(0, sys.argv[1]); import guardian; "
            f"guardian.restrict({self.limits.rlimits!r}, {user!r}); guardian.main()"
        )
        # Into the cgroups first, so that nothing is ever outside of them.
        enter = 'for g in $1; do echo $$ > "$g/cgroup.procs" || exit 1; done; shift; exec "$@"'
        return [
            "/bin/sh", "-c", enter, "sh", " ".join(self.limits.folders),
            bwrap, *inner, "--info-fd", str(INFO_FILE), "--",
            _PYTHON, "-I", "-S", "-c", begin, GUARDIAN_FOLDER, "0",
        ]  # fmt: skip


def _ping(channel: socket.socket, seconds: float) -> None:
    """Wait until the guardian inside answers."""
    ours, theirs = os.pipe()
    try:
        body = marshal.dumps(("members", ""))
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", theirs))]
        channel.sendmsg([len(body).to_bytes(4, "little") + body], rights)
        os.close(theirs)
        theirs = -1
        poll = select.poll()
        poll.register(ours, select.POLLIN)
        if not poll.poll(seconds * 1000):
            raise TimeoutError(f"nothing answered inside for {seconds:g} s")
        if not os.read(ours, 4096):
            raise ValueError("it ended at once")
    finally:
        os.close(ours)
        if theirs >= 0:
            os.close(theirs)


def _numbers(first: int) -> dict[int, int]:
    """The pids out here of all processes below one, by their pids inside."""
    found: dict[int, int] = {}
    queue = [first]
    while queue:
        pid = queue.pop()
        with suppress(OSError):
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
                    queue += [int(word) for word in file.read().split()]
            with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
                for line in file:
                    if line.startswith("NSpid:"):
                        found[int(line.split()[-1])] = pid
                        break
    return found


def _forget_all() -> None:
    for client in list(_clients):
        client.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
