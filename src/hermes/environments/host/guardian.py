"""Guardian: a small process that starts the commands of Hermes, and ends them when Hermes ends.

It runs as a program of its own (`python -I -S`), with nothing of Hermes imported. It is a child
subreaper: every process that a command starts stays below it in the process tree, even when its
parent exits. When Hermes ends for any reason, the guardian stops all that is left and exits.

Hermes sends requests over a socket (fd 0), with the file descriptors of each command. Each command
has a status pipe. The guardian writes one line per event:

    started PID                       only if the request asked for it
    failed ERRNO PATH                 it could not be started
    exited PID STATUS SECONDS PIDS    wait status; CPU time; processes that it left running
    gone                              no process is left; the pipe is closed
"""

from __future__ import annotations

import errno
import marshal
import os
import select
import sys
import time

# Not `socket`: it would double the start-up time.
from _socket import CMSG_SPACE, SCM_RIGHTS, SOL_SOCKET, socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from typing import Any

    import hermes.environments.host.process_table as table
    from hermes.environments.host.guardian_processes import CommandProcesses, GuardedCommand
else:
    # Not `signal`: its enumerations take longer to import than everything else here.
    import _signal as signal

    # By their short names: the package itself is not imported in this process.
    import process_table as table
    from guardian_processes import CommandProcesses, GuardedCommand

# Descriptors received from Hermes are numbered from here on, above those of a command.
FIRST_FILE = 16
MAX_FILES = 8
TICK_SECONDS = 0.03
KILL_AGAIN_SECONDS = 0.2
# Limit for the shutdown as a whole.
SHUTDOWN_SECONDS = 8.0
# Delay of the search for orphans, so that the first commands do not wait for it.
SWEEP_SECONDS = 1.0
_DEFAULT_SIGNALS = tuple(
    getattr(signal, name)
    for name in (
        "SIGPIPE", "SIGXFSZ", "SIGINT", "SIGQUIT", "SIGHUP", "SIGTERM",
        "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGCHLD", "SIGUSR1", "SIGUSR2",
    )
)  # fmt: skip


class Guardian:
    """Starts, watches and stops commands until Hermes is gone.

    `parent` is the pid of Hermes, 0 inside a sandbox; `own` the pid that Hermes knows this by.
    """

    def __init__(self, control: socket, parent: int, own: int) -> None:
        self._control = control
        self._parent = parent
        self._sweep_at: float | None = time.monotonic() + SWEEP_SECONDS if parent else None
        self._processes = CommandProcesses(own if parent else 0)
        # (task, reply pipe) of requests that wait for the end of a task.
        self._waiting: list[tuple[str, int]] = []
        self._shutdown_by: float | None = None
        self._wake, wake_write = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: self._shut_down())

    def serve(self) -> None:
        """Serve requests until Hermes has ended and none of its processes is left."""
        try:
            self._serve()
            self._sweep()
        finally:
            # After an error too, no process may be left without an owner.
            self._processes.kill([c for c in self._commands() if not c.detached])

    def _serve(self) -> None:
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        parent_fd = _pidfd(self._parent)
        if parent_fd is not None:
            poll.register(parent_fd, select.POLLIN)
        while True:
            for file, _ in poll.poll(self._poll_timeout()):
                if file == self._wake:
                    os.read(file, 4096)
                    self._processes.reap()
                    self._answer_waiting()
                elif file == parent_fd or not self._handle_request():
                    poll.unregister(file)
                    self._shut_down()
            self._kill_overdue()
            if self._sweep_at is not None and time.monotonic() >= self._sweep_at:
                self._sweep()
            if self._shutdown_by is not None and (
                all(command.detached for command in self._commands())
                or time.monotonic() > self._shutdown_by
            ):
                return

    def _poll_timeout(self) -> int | None:
        busy = self._shutdown_by is not None or any(
            command.kill_at is not None for command in self._commands()
        )
        if busy:
            return int(TICK_SECONDS * 1000)
        if self._sweep_at is not None:
            return int(SWEEP_SECONDS * 1000)
        # Without a subreaper there is no signal when an orphan ends.
        return None if table.LINUX or not self._commands() else 500

    def _commands(self) -> list[GuardedCommand]:
        return list(self._processes.commands.values())

    # -- requests -----------------------------------------------------------------------------

    def _handle_request(self) -> bool:
        """Carry out the next request; False at the end of the stream."""
        try:
            head, files = self._receive(4)
            body = b""
            size = int.from_bytes(head, "little")
            while head and len(body) < size:
                more = self._control.recv(min(size - len(body), 1 << 20))
                if not more:
                    return False
                body += more
        except OSError:
            return False
        if not head:
            return False
        name, *arguments = marshal.loads(body)
        handler: Callable[..., None] = getattr(self, f"_do_{name}")
        handler(files, *arguments)
        return True

    def _receive(self, size: int) -> tuple[bytes, list[int]]:
        data, ancillary, _, _ = self._control.recvmsg(size, CMSG_SPACE(4 * MAX_FILES))
        files: list[int] = []
        for level, kind, packed in ancillary:
            if level == SOL_SOCKET and kind == SCM_RIGHTS:
                usable = len(packed) - len(packed) % 4
                files += [
                    int.from_bytes(packed[at : at + 4], sys.byteorder) for at in range(0, usable, 4)
                ]
        for file in files:
            os.set_inheritable(file, False)
        return data, files

    def _do_run(
        self,
        files: list[int],
        id: int,  # noqa: A002
        task: str,
        program: bytes,
        argv: list[bytes],
        env: dict[bytes, bytes],
        cwd: bytes,
        numbers: list[int],
        tty: bytes | None,
        announce: bool,
    ) -> None:
        """Start a command. `files`: the status pipe, then one descriptor for each of `numbers`."""
        if len(files) != len(numbers) + 1:
            # Out of descriptors. The closed status pipe tells Hermes.
            for file in files:
                os.close(file)
            return
        status, *given = files
        actions: list[tuple[Any, ...]] = []
        if tty is not None:
            # The first terminal that a session leader opens becomes its controlling terminal.
            actions.append((os.POSIX_SPAWN_OPEN, 0, tty, os.O_RDWR, 0))
            actions += [(os.POSIX_SPAWN_DUP2, 0, 1), (os.POSIX_SPAWN_DUP2, 0, 2)]
        elif 0 not in numbers:
            actions.append((os.POSIX_SPAWN_OPEN, 0, b"/dev/null", os.O_RDONLY, 0))
        pairs = list(zip(given, numbers, strict=True))
        actions += [(os.POSIX_SPAWN_DUP2, file, number) for file, number in pairs]
        command = GuardedCommand(id, task, self._processes.next_mark(), status)
        path = cwd
        try:
            os.chdir(cwd)
            path = program
            command.pid = os.posix_spawn(
                program, argv, env, file_actions=actions, setsid=True,
                setsigdef=_DEFAULT_SIGNALS, setsigmask=(),
            )  # fmt: skip
        except (OSError, ValueError) as error:
            number = getattr(error, "errno", None) or errno.EINVAL
            command.write_status(f"failed {number} {os.fsdecode(path)}")
            os.close(status)
        else:
            self._processes.add(command)
            if announce:
                command.write_status(f"started {command.pid}")
            else:
                command.held = [file for file, number in pairs if number in (1, 2)]
        finally:
            if self._processes.marks is not None:
                self._processes.marks.done()
            os.chdir("/")
            for file in given:
                if file not in command.held:
                    os.close(file)

    def _do_signal(self, files: list[int], id: int, number: int) -> None:  # noqa: A002, ARG002
        command = self._processes.commands.get(id)
        if command is not None:
            for pid in self._processes.members([command]):
                table.kill(pid, number)

    def _do_stop(self, files: list[int], id: int, grace: float) -> None:  # noqa: A002, ARG002
        """SIGTERM to all processes of a command, SIGKILL after the grace period."""
        command = self._processes.commands.get(id)
        if command is not None:
            self._terminate([command], grace)

    def _do_stop_task(self, files: list[int], task: str, grace: float) -> None:
        """Stop all commands of a task; the reply pipe is closed when none is left."""
        self._terminate([c for c in self._commands() if c.task == task and not c.detached], grace)
        self._waiting.append((task, files[0]))
        self._answer_waiting()

    def _do_detach(self, files: list[int], id: int) -> None:  # noqa: A002, ARG002
        command = self._processes.commands.get(id)
        if command is not None:
            self._processes.detach(command)

    def _do_members(self, files: list[int], task: str) -> None:
        """Reply with the process ids of each command of a task."""
        commands = [command for command in self._commands() if command.task == task]
        parents = table.parent_of_each() if commands else {}
        pids = {
            command.id: sorted(self._processes.members([command], parents)) for command in commands
        }
        _reply(files[0], marshal.dumps(pids))

    def _answer_waiting(self) -> None:
        for task, reply in list(self._waiting):
            if not any(c.task == task and not c.detached for c in self._commands()):
                self._waiting.remove((task, reply))
                os.close(reply)

    # -- shutdown -----------------------------------------------------------------------------

    def _terminate(self, commands: list[GuardedCommand], grace: float) -> None:
        now = time.monotonic()
        for command in commands:
            if command.kill_at is None or command.kill_at > now + grace:
                command.kill_at = now + grace
        self._processes.terminate(commands)

    def _kill_overdue(self) -> None:
        """SIGKILL for commands whose grace period is over."""
        now = time.monotonic()
        overdue = [
            command
            for command in self._commands()
            if command.kill_at is not None and command.kill_at <= now
        ]
        if overdue:
            self._processes.kill(overdue)
            for command in overdue:
                command.kill_at = now + KILL_AGAIN_SECONDS
        if not table.LINUX:
            self._processes.reap_by_group()
            self._answer_waiting()

    def _sweep(self) -> None:
        """Kill the orphans of guardians that were killed together with their Hermes; once."""
        if self._sweep_at is not None:
            self._sweep_at = None
            table.sweep()

    def _shut_down(self) -> None:
        """Begin to stop everything that is not detached."""
        if self._shutdown_by is None:
            self._shutdown_by = time.monotonic() + SHUTDOWN_SECONDS
            self._terminate([c for c in self._commands() if not c.detached], 1.0)


def _pidfd(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends; None without such a system call."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _reply(file: int, data: bytes) -> None:
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(file, view) :]
    except OSError:
        return
    finally:
        os.close(file)


def restrict(limits: dict[str, int], user: tuple[int, int] | None) -> None:
    """In a sandbox: set resource limits by name, and switch to `user` (uid, gid) for good."""
    import resource

    for name, limit in limits.items():
        kind = getattr(resource, name)
        _, hard = resource.getrlimit(kind)
        value = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (value, value))
    if user is not None:
        os.setgroups([])
        os.setresgid(user[1], user[1], user[1])
        os.setresuid(user[0], user[0], user[0])


def main(own: int = 0) -> None:
    """Entry point. The socket is fd 0, the last argument is the pid of Hermes."""
    parent = int(sys.argv[-1])
    control = FIRST_FILE - 1
    os.dup2(0, control, inheritable=False)
    os.closerange(3, control)
    for file in (0, 1, 2):
        os.close(file)
    while os.open(os.devnull, os.O_RDWR) < control - 1:
        continue
    os.closerange(FIRST_FILE, 65_536)
    if table.LINUX:
        table.become_subreaper()
    os.chdir("/")
    Guardian(socket(fileno=control), parent, own or os.getpid()).serve()
