"""Processes of the guardian's commands: process tree, adopted orphans, signals to a whole command.

The guardian is a child subreaper: a process that loses its parent becomes its child, and belongs to
the command whose mark it carries. Imported by short name in the guardian's process.
"""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

if TYPE_CHECKING or __package__:
    import hermes.environments.host.process_table as table
else:
    # Its neighbour: nothing of Hermes is imported in the guardian's process.
    import process_table as table


class Command:
    """One command: its first process, and what it left running."""

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
        # Where its output goes: held open, so that Hermes is not woken by the end of each stream
        # when it is about to hear that all of it has ended.
        self.held: list[int] = []
        # Processes of it that are our children now, since those that started them have ended.
        self.adopted: set[int] = set()
        # When to stop asking and kill; None while it may run.
        self.kill_at: float | None = None

    def tell(self, line: str) -> None:
        """Write one line into the status pipe; nobody may be reading any more."""
        try:
            os.write(self.status, f"{line}\n".encode())
        except OSError:
            return

    def let_go(self) -> None:
        """Let its output end."""
        for file in self.held:
            os.close(file)
        self.held = []


class Family:
    """All commands that have not ended or left something running, and their processes."""

    def __init__(self, guardian: int) -> None:
        self.commands: dict[int, Command] = {}
        self._leaders: dict[int, Command] = {}
        self._adopted: dict[int, Command] = {}
        # In a sandbox nothing outlives us in any case: then the number is 0.
        self.marks = table.Marks(guardian) if table.LINUX else None

    def next_mark(self) -> int:
        """Give what is started next a mark of its own; 0 where that can't be."""
        return self.marks.next(self.commands.values()) if self.marks is not None else 0

    def add(self, command: Command) -> None:
        """Take in a command that was started."""
        self.commands[command.id] = self._leaders[command.pid] = command

    def detach(self, command: Command) -> None:
        """Let a command live on without us."""
        command.detached = True
        if self.marks is not None:
            command.mark = self.marks.free(command.mark, self.members([command]))

    def reap(self) -> None:
        """Take note of everything that has ended, and tell."""
        ended: list[tuple[Command, str]] = []
        touched: list[Command] = []
        alone = False
        while True:
            try:
                pid, status, used = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                alone = True
                break
            if not pid:
                break
            leader = self._leaders.pop(pid, None)
            if leader is not None:
                leader.ended = True
                seconds = used.ru_utime + used.ru_stime
                ended.append((leader, f"exited {pid} {status} {seconds:.4f}"))
            elif (owner := self._adopted.pop(pid, None)) is not None:
                owner.adopted.discard(pid)
                touched.append(owner)
        if (ended or touched) and not alone:
            self._adopt(ended[0][0] if ended else touched[0])
        for command, line in ended:
            if command.adopted or not table.LINUX:
                left = self.members([command]) if table.LINUX else table.group(command.pid)
                command.tell(f"{line} {','.join(map(str, sorted(left)))}".rstrip())
                command.let_go()
            else:
                # All in one, for whoever listens.
                self._end(command, f"{line}\n")
        for command in set(touched):
            if command.ended and not command.adopted and command.id in self.commands:
                self._end(command)

    def look(self) -> None:
        """The same where nobody says when an orphan ends: commands whose groups are empty."""
        for command in list(self.commands.values()):
            if command.ended and not table.group(command.pid):
                self._end(command)

    def _end(self, command: Command, before: str = "") -> None:
        self.commands.pop(command.id, None)
        command.tell(f"{before}gone")
        os.close(command.status)
        command.let_go()

    def _adopt(self, likely: Command) -> None:
        """Find what became our child since we last looked, and whose it is."""
        if self.marks is None:
            return
        for pid in table.children():
            if pid in self._leaders or pid in self._adopted:
                continue
            owner = self.marks.owner(pid, self.commands.values()) or likely
            owner.adopted.add(pid)
            self._adopted[pid] = owner

    def members(
        self, commands: Iterable[Command], parents: dict[int, int] | None = None
    ) -> set[int]:
        """Every process that belongs to some commands."""
        parents = table.parent_of_each() if parents is None else parents
        roots: set[int] = set()
        for command in commands:
            roots |= command.adopted
            if not command.ended:
                roots.add(command.pid)
            if not table.LINUX:
                roots |= table.group(command.pid)
        found = set(roots)
        below: dict[int, list[int]] = {}
        for pid, parent in parents.items():
            below.setdefault(parent, []).append(pid)
        queue = list(roots)
        while queue:
            for pid in below.get(queue.pop(), ()):
                if pid not in found:
                    found.add(pid)
                    queue.append(pid)
        return found

    def ask_to_end(self, commands: list[Command]) -> None:
        """Ask everything that belongs to some commands to end."""
        for pid in self.members(commands) if commands else ():
            table.kill(pid, signal.SIGTERM)
            # One that was stopped can't do as it is asked.
            table.kill(pid, signal.SIGCONT)

    def kill(self, commands: list[Command]) -> None:
        """End everything that belongs to some commands."""
        # Halted first, so that none can start another while the others are killed.
        halted: set[int] = set()
        for _ in range(20):
            members = self.members(commands) - halted if commands else set()
            if not members:
                break
            for pid in members:
                table.kill(pid, signal.SIGSTOP)
            halted |= members
        for pid in halted:
            table.kill(pid, signal.SIGKILL)
