"""The guardian: a small process that starts commands for Hermes and outlives it just long enough.

It is run by itself, with nothing of Hermes imported. Everything that a command starts is below
it in the tree of processes, for it is a child subreaper: what loses its parent becomes its child.
When Hermes ends, in whatever way, the guardian stops all that is left and ends too.

Hermes sends requests over a socket (fd 0) and hands over the files of each command with them. Each
command has a status pipe, in which one line is written for each thing that happens to it:

    started PID                       to whoever asked to be told
    failed ERRNO WHAT                 it could not be started
    exited PID STATUS SECONDS PIDS    as `waitpid` has it; CPU time; what it left running
    gone                              nothing of it is left; the pipe is closed
"""

from __future__ import annotations

import errno
import marshal
import os
import select
import signal
import sys
import time

# The plain one: `socket` would double the time to start.
from _socket import CMSG_SPACE, SCM_RIGHTS, SOL_SOCKET, socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    import hermes.environments.host.process_table as table
    from hermes.environments.host.guardian_processes import Command, Family
else:
    # Its neighbours, by their short names: nothing of Hermes is imported in this process.
    import process_table as table
    from guardian_processes import Command, Family

# Files that Hermes hands over are numbered above this, so that none is in another's way.
FIRST_FILE = 16
MOST_FILES = 8
TICK_SECONDS = 0.03
KILL_AGAIN_SECONDS = 0.2
# How long the end of everything may take before the guardian goes all the same.
LAST_SECONDS = 8.0
# The first commands are not to wait for that.
SWEEP_SECONDS = 1.0
_RESET = tuple(
    getattr(signal, name)
    for name in (
        "SIGPIPE", "SIGXFSZ", "SIGINT", "SIGQUIT", "SIGHUP", "SIGTERM",
        "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGCHLD", "SIGUSR1", "SIGUSR2",
    )
)  # fmt: skip


class Guardian:
    """Starts, watches and stops commands until Hermes is gone."""

    def __init__(self, control: socket, parent: int) -> None:
        self._control = control
        self._parent = parent
        # When to look for what a guardian that was killed has left.
        self._sweep_at: float | None = time.monotonic() + SWEEP_SECONDS if parent else None
        self._family = Family(os.getpid() if parent else 0)
        # Reply pipes of those who wait until a task has nothing left.
        self._waiting: list[tuple[str, int]] = []
        self._closing_until: float | None = None
        self._wake, told = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(told, False)
        signal.set_wakeup_fd(told, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: self._close())

    def serve(self) -> None:
        """Work until Hermes has ended and nothing of it is left."""
        try:
            self._serve()
            self._sweep()
        finally:
            # Whatever went wrong here, nothing may be left without an owner.
            self._family.kill([c for c in self._commands() if not c.detached])

    def _serve(self) -> None:
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        watched = _watch(self._parent)
        if watched is not None:
            poll.register(watched, select.POLLIN)
        while True:
            for file, _ in poll.poll(self._patience()):
                if file == self._wake:
                    os.read(file, 4096)
                    self._family.reap()
                    self._answer_waiting()
                elif file == watched or not self._request():
                    poll.unregister(file)
                    self._close()
            self._press()
            if self._sweep_at is not None and time.monotonic() >= self._sweep_at:
                self._sweep()
            if self._closing_until is not None and (
                all(command.detached for command in self._commands())
                or time.monotonic() > self._closing_until
            ):
                return

    def _patience(self) -> int | None:
        """How long to sleep, in milliseconds."""
        busy = self._closing_until is not None or any(
            command.kill_at is not None for command in self._commands()
        )
        if busy:
            return int(TICK_SECONDS * 1000)
        if self._sweep_at is not None:
            return int(SWEEP_SECONDS * 1000)
        # Elsewhere nobody says when an orphan ends.
        return None if table.LINUX or not self._commands() else 500

    def _commands(self) -> list[Command]:
        return list(self._family.commands.values())

    # -- requests -----------------------------------------------------------------------------

    def _request(self) -> bool:
        """Carry out the next request; False when Hermes is gone."""
        try:
            head, files = self._receive(4)
            body = b""
            wanted = int.from_bytes(head, "little")
            while head and len(body) < wanted:
                more = self._control.recv(min(wanted - len(body), 1 << 20))
                if not more:
                    return False
                body += more
        except OSError:
            return False
        if not head:
            return False
        what, *arguments = marshal.loads(body)
        handle: Callable[..., None] = getattr(self, f"_do_{what}")
        handle(files, *arguments)
        return True

    def _receive(self, size: int) -> tuple[bytes, list[int]]:
        data, extra, _, _ = self._control.recvmsg(size, CMSG_SPACE(4 * MOST_FILES))
        files: list[int] = []
        for level, kind, held in extra:
            if level == SOL_SOCKET and kind == SCM_RIGHTS:
                usable = len(held) - len(held) % 4
                files += [
                    int.from_bytes(held[at : at + 4], sys.byteorder) for at in range(0, usable, 4)
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
        places: list[int],
        tty: bytes | None,
        announce: bool,
    ) -> None:
        """Start a command: `files` has the status pipe, then one file for each of `places`."""
        if len(files) != len(places) + 1:
            # No room for so many files: its status pipe is closed, which says enough.
            for file in files:
                os.close(file)
            return
        status, *given = files
        actions: list[tuple[Any, ...]] = []
        if tty is not None:
            # The first terminal that the leader of a session opens becomes the session's own.
            actions.append((os.POSIX_SPAWN_OPEN, 0, tty, os.O_RDWR, 0))
            actions += [(os.POSIX_SPAWN_DUP2, 0, 1), (os.POSIX_SPAWN_DUP2, 0, 2)]
        elif 0 not in places:
            actions.append((os.POSIX_SPAWN_OPEN, 0, b"/dev/null", os.O_RDONLY, 0))
        actions += [
            (os.POSIX_SPAWN_DUP2, file, place) for file, place in zip(given, places, strict=True)
        ]
        command = Command(id, task, self._family.next_mark(), status)
        what = cwd
        try:
            os.chdir(cwd)
            what = program
            command.pid = os.posix_spawn(
                program, argv, env, file_actions=actions, setsid=True,
                setsigdef=_RESET, setsigmask=(),
            )  # fmt: skip
        except (OSError, ValueError) as error:
            number = getattr(error, "errno", None) or errno.EINVAL
            command.tell(f"failed {number} {os.fsdecode(what)}")
            os.close(status)
        else:
            self._family.add(command)
            if announce:
                command.tell(f"started {command.pid}")
            else:
                command.held = [
                    file for file, place in zip(given, places, strict=True) if place in (1, 2)
                ]
        finally:
            if self._family.marks is not None:
                self._family.marks.done()
            os.chdir("/")
            for file in given:
                if file not in command.held:
                    os.close(file)

    def _do_signal(self, files: list[int], id: int, number: int) -> None:  # noqa: A002, ARG002
        """Signal everything that belongs to a command."""
        command = self._family.commands.get(id)
        if command is not None:
            for pid in self._family.members([command]):
                table.kill(pid, number)

    def _do_stop(self, files: list[int], id: int, grace: float) -> None:  # noqa: A002, ARG002
        """End a command and everything it started: asked first, then killed."""
        command = self._family.commands.get(id)
        if command is not None:
            self._ask_to_end([command], grace)

    def _do_stop_task(self, files: list[int], task: str, grace: float) -> None:
        """End all that belongs to a task; the reply pipe is closed when nothing is left."""
        self._ask_to_end([c for c in self._commands() if c.task == task and not c.detached], grace)
        self._waiting.append((task, files[0]))
        self._answer_waiting()

    def _do_detach(self, files: list[int], id: int) -> None:  # noqa: A002, ARG002
        """Let a command live on when its task ends."""
        command = self._family.commands.get(id)
        if command is not None:
            self._family.detach(command)

    def _do_members(self, files: list[int], task: str) -> None:
        """Reply with the processes of each command of a task."""
        parents = table.parent_of_each()
        found = {
            command.id: sorted(self._family.members([command], parents))
            for command in self._commands()
            if command.task == task
        }
        _reply(files[0], marshal.dumps(found))

    def _answer_waiting(self) -> None:
        for task, reply in list(self._waiting):
            if not any(c.task == task and not c.detached for c in self._commands()):
                self._waiting.remove((task, reply))
                os.close(reply)

    # -- ending -------------------------------------------------------------------------------

    def _ask_to_end(self, commands: list[Command], grace: float) -> None:
        now = time.monotonic()
        for command in commands:
            if command.kill_at is None or command.kill_at > now + grace:
                command.kill_at = now + grace
        self._family.ask_to_end(commands)

    def _press(self) -> None:
        """Kill what was asked to end and has had its time."""
        now = time.monotonic()
        late = [
            command
            for command in self._commands()
            if command.kill_at is not None and command.kill_at <= now
        ]
        if late:
            self._family.kill(late)
            for command in late:
                command.kill_at = now + KILL_AGAIN_SECONDS
        if not table.LINUX:
            self._family.look()
            self._answer_waiting()

    def _sweep(self) -> None:
        """End what a guardian that was killed together with its Hermes has left; once."""
        if self._sweep_at is not None:
            self._sweep_at = None
            table.sweep()

    def _close(self) -> None:
        """Hermes is gone, or somebody wants us to go: end everything that is not detached."""
        if self._closing_until is None:
            self._closing_until = time.monotonic() + LAST_SECONDS
            self._ask_to_end([c for c in self._commands() if not c.detached], 1.0)


def _watch(parent: int) -> int | None:
    """A file that becomes readable when a process ends, where the system has such."""
    try:
        return os.pidfd_open(parent)
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


def main() -> None:
    """Run as a program: the socket is fd 0, the last argument is the process id of Hermes."""
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
    Guardian(socket(fileno=control), parent).serve()
