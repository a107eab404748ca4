"""Processes of the guardian's commands: process tree, adopted orphans, signals to a whole command.

The guardian is a child subreaper: a process that loses its parent becomes its child, and belongs to
the command whose mark it carries. Imported by its short name in the guardian's process.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Iterable
else:
    # Without the enumerations of `signal`, which take long to import.
    import _signal as signal

if TYPE_CHECKING or __package__:
    import hermes.environments.host.process_table as table
else:
    import process_table as table


class GuardedCommand:
    """One command: its first process, its status pipe, and the orphans that it left running."""

    __slots__ = (
        "adopted", "detached", "ended", "held", "id", "kill_at", "mark", "pid", "status", "task",
    )  # fmt: skip

    def __init__(self, id: int, task: str, mark: int, status: int) -> None:  # noqa: A002
        self.id = id
        self.task = task
        self.pid = 0
        self.mark = mark
        self.status = status
        self.ended = False
        self.detached = False
        # Its output pipes, held open until the status is written: Hermes then wakes up once for
        # the exit, and not for the end of each stream as well.
        self.held: list[int] = []
        # Orphans that are children of the guardian now.
        self.adopted: set[int] = set()
        # Time of the SIGKILL, once it was asked to stop.
        self.kill_at: float | None = None

    def write_status(self, line: str) -> None:
        """Write one line to the status pipe; its reader may be gone."""
        try:
            os.write(self.status, f"{line}\n".encode())
        except OSError:
            return

    def close_held(self) -> None:
        """Close the output pipes."""
        for file in self.held:
            os.close(file)
        self.held = []


class CommandProcesses:
    """All commands with live processes. `guardian` is the own pid, 0 inside a sandbox."""

    def __init__(self, guardian: int) -> None:
        self.commands: dict[int, GuardedCommand] = {}
        self._leaders: dict[int, GuardedCommand] = {}
        self._adopted: dict[int, GuardedCommand] = {}
        self.marks = table.Marks(guardian) if table.LINUX else None

    def next_mark(self) -> int:
        """Set a new mark for the process that is started next; 0 where marks are not possible."""
        return self.marks.next(self.commands.values()) if self.marks is not None else 0

    def add(self, command: GuardedCommand) -> None:
        """Register a command that was started."""
        self.commands[command.id] = self._leaders[command.pid] = command

    def detach(self, command: GuardedCommand) -> None:
        """Let a command outlive the guardian."""
        command.detached = True
        if self.marks is not None:
            command.mark = self.marks.free(command.mark, self.members([command]))

    def reap(self) -> None:
        """Collect all exited children, adopt new orphans, and write the status of the commands."""
        ended: list[tuple[GuardedCommand, str]] = []
        touched: list[GuardedCommand] = []
        alone = False
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                alone = True
                break
            if not pid:
                break
            leader = self._leaders.pop(pid, None)
            if leader is not None:
                leader.ended = True
                seconds = usage.ru_utime + usage.ru_stime
                ended.append((leader, f"exited {pid} {status} {seconds:.4f}"))
            elif (owner := self._adopted.pop(pid, None)) is not None:
                owner.adopted.discard(pid)
                touched.append(owner)
        if (ended or touched) and not alone:
            self._adopt(ended[0][0] if ended else touched[0])
        for command, line in ended:
            if command.adopted or not table.LINUX:
                left = self.members([command]) if table.LINUX else table.group(command.pid)
                command.write_status(f"{line} {','.join(map(str, sorted(left)))}".rstrip())
                command.close_held()
            else:
                # Both lines in one write, so that the reader wakes up once.
                self._end(command, f"{line}\n")
        for command in set(touched):
            if command.ended and not command.adopted and command.id in self.commands:
                self._end(command)

    def reap_by_group(self) -> None:
        """Without a subreaper: end the commands whose process groups are empty."""
        for command in list(self.commands.values()):
            if command.ended and not table.group(command.pid):
                self._end(command)

    def _end(self, command: GuardedCommand, before: str = "") -> None:
        self.commands.pop(command.id, None)
        command.write_status(f"{before}gone")
        os.close(command.status)
        command.close_held()

    def _adopt(self, likely: GuardedCommand) -> None:
        """Assign new children of the guardian to their commands: by mark, else to `likely`."""
        if self.marks is None:
            return
        for pid in table.children():
            if pid in self._leaders or pid in self._adopted:
                continue
            owner = self.marks.owner(pid, self.commands.values()) or likely
            owner.adopted.add(pid)
            self._adopted[pid] = owner

    def members(
        self, commands: Iterable[GuardedCommand], parents: dict[int, int] | None = None
    ) -> set[int]:
        """All process ids of some commands, from the process tree."""
        parents = table.parent_of_each() if parents is None else parents
        roots: set[int] = set()
        for command in commands:
            roots |= command.adopted
            if not command.ended:
                roots.add(command.pid)
            if not table.LINUX:
                roots |= table.group(command.pid)
        members = set(roots)
        below: dict[int, list[int]] = {}
        for pid, parent in parents.items():
            below.setdefault(parent, []).append(pid)
        queue = list(roots)
        while queue:
            for pid in below.get(queue.pop(), ()):
                if pid not in members:
                    members.add(pid)
                    queue.append(pid)
        return members

    def terminate(self, commands: list[GuardedCommand]) -> None:
        """Send SIGTERM to all processes of some commands."""
        for pid in self.members(commands) if commands else ():
            table.kill(pid, signal.SIGTERM)
            # A stopped process handles no signal before it continues.
            table.kill(pid, signal.SIGCONT)

    def kill(self, commands: list[GuardedCommand]) -> None:
        """Send SIGKILL to all processes of some commands."""
        # SIGSTOP first, so that none can fork while the others are killed.
        stopped: set[int] = set()
        for _ in range(20):
            members = self.members(commands) - stopped if commands else set()
            if not members:
                break
            for pid in members:
                table.kill(pid, signal.SIGSTOP)
            stopped |= members
        for pid in stopped:
            table.kill(pid, signal.SIGKILL)
