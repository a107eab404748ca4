"""ToolContext: session, task, workspace, cancellation and services of the call that a handler
serves.
"""

from __future__ import annotations

import os
import threading

from hermes.core.approval import Answer, ApprovalRequest
from hermes.core.cancellation import Cancellation, CancelledError
from hermes.core.errors import UnavailableError

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Protocol

    from hermes.core.approval import Approver

    class Delegate(Protocol):
        """Hand tasks to fresh agents and wait for their reports, in the order of the tasks.

        A task has a `goal` and may have `context`, `toolsets`, `timeout_seconds` and
        `idle_timeout_seconds`; `context` is that of the call which hands them on. `start` does not
        wait; `act` does something with agents that were started: list, wait, cancel, ….
        """

        async def __call__(
            self, tasks: Sequence[Mapping[str, Any]], context: ToolContext
        ) -> list[dict[str, Any]]: ...

        def start(
            self, tasks: Sequence[Mapping[str, Any]], context: ToolContext
        ) -> Sequence[Any]: ...

        async def act(
            self,
            action: str,
            handle: str,
            context: ToolContext,
            *,
            message: str = "",
            seconds: float | None = None,
            background: bool = False,
        ) -> dict[str, Any]: ...


__all__ = ["Answer", "ApprovalRequest", "Cancellation", "CancelledError", "Task", "ToolContext"]


class Task:
    """One line of work: what belongs to it lives as long as it does, and no longer."""

    def __init__(self, id: str, *, workspace: str = "") -> None:  # noqa: A002
        self.id = id
        self.workspace = workspace or os.getcwd()
        # Variables for the commands of this task; None takes one away.
        self.env: dict[str, str | None] = {}
        self.state: dict[str, Any] = {}
        self._closers: list[Callable[[], None]] = []
        self._closed = False
        # What is made may need something else of the task's.
        self._lock = threading.RLock()

    def keep(self, name: str, make: Callable[[], Any], close: Callable[[Any], None]) -> Any:
        """The thing of that name, made at first use and closed with the task.

        Raises `UnavailableError` once the task was closed: nobody would close the thing.
        """
        with self._lock:
            if self._closed:
                raise UnavailableError(f"task {self.id} has ended")
            if name not in self.state:
                self.state[name] = thing = make()
                self._closers.append(lambda: close(thing))
            return self.state[name]

    def close(self) -> list[BaseException]:
        """End everything that belongs to the task, last made first; what failed to end."""
        with self._lock:
            self._closed = True
            closers, self._closers = self._closers, []
            self.state.clear()
        failures: list[BaseException] = []
        for closer in reversed(closers):
            try:
                closer()
            except Exception as error:  # noqa: BLE001 - one that can't close must not keep others open
                failures.append(error)
        return failures


class ToolContext:
    """One call's surroundings. A front door makes one; the runtime makes a copy for each call."""

    __slots__ = (
        "agent_path",
        "approver",
        "call_id",
        "cancellation",
        "front_door",
        "places",
        "profiles",
        "report",
        "services",
        "session_id",
        "source",
        "task",
        "tool",
        "turn",
    )

    def __init__(
        self,
        *,
        task: Task | None = None,
        task_id: str = "main",
        workspace: str = "",
        session_id: str = "",
        turn: str = "",
        front_door: str = "library",
        agent_path: str = "",
        approver: Approver | None = None,
        cancellation: Cancellation | None = None,
        services: Mapping[str, Any] | None = None,
        profiles: Sequence[Any] = (),
    ) -> None:
        self.task = task or Task(task_id, workspace=workspace)
        self.session_id = session_id
        # One request of a person and all that is done for it; a call alone is a turn of its own.
        self.turn = turn
        self.front_door = front_door
        self.agent_path = agent_path
        self.approver = approver
        self.cancellation = cancellation or Cancellation()
        self.services = {} if services is None else services
        # Rights of this session or sub-agent, on top of everybody's: they can only take away.
        self.profiles = tuple(profiles)
        self.call_id = ""
        self.tool = ""
        # Where the paths among a call's arguments lead, as the gate judged them.
        self.places: Mapping[tuple[str, str], str] = {}
        self.report: Callable[[str, dict[str, Any]], None] | None = None
        # Whose words the call brings in, where these are neither ours nor the person's.
        self.source = ""

    def for_call(
        self,
        call_id: str,
        tool: str,
        cancellation: Cancellation,
        report: Callable[[str, dict[str, Any]], None] | None,
        places: Mapping[tuple[str, str], str] | None = None,
        source: str = "",
    ) -> ToolContext:
        """The same surroundings for one call."""
        twin = ToolContext.__new__(ToolContext)
        twin.task = self.task
        twin.session_id = self.session_id
        twin.turn = self.turn
        twin.front_door = self.front_door
        twin.agent_path = self.agent_path
        twin.approver = self.approver
        twin.services = self.services
        twin.profiles = self.profiles
        twin.cancellation = cancellation
        twin.call_id = call_id
        twin.tool = tool
        twin.report = report
        twin.places = places or {}
        twin.source = source
        return twin

    @property
    def task_id(self) -> str:
        """The id of the task this call belongs to."""
        return self.task.id

    @property
    def workspace(self) -> str:
        """The folder that relative paths start from."""
        return self.task.workspace

    @property
    def cwd(self) -> str:
        """The folder that the task's commands run in: the workspace, until one changes it."""
        return str(self.task.state.get("cwd") or self.task.workspace)

    def place(self, path: str, kind: str = "read") -> str:
        """Where a path leads, links resolved; refused where the gate does not let this call go.

        What the call named in its arguments was judged before it began. A path it comes upon
        later is judged now, and what would have to be asked for is refused.

        Args:
            path: As the caller wrote it; relative to the workspace.
            kind: What is done there: `read`, `write` or `delete`.
        """
        judged = self.places.get((kind, path))
        if judged is not None:
            return judged
        judge = self.services.get("place")
        if judge is None:
            return os.path.realpath(os.path.join(self.workspace, os.path.expanduser(path)))
        return str(judge(self, kind, path))

    @property
    def cancelled(self) -> bool:
        """Whether the handler should stop and return."""
        return self.cancellation.cancelled

    def check_cancelled(self) -> None:
        """Raise `CancelledError` when the call is to stop; for loops in sync handlers."""
        self.cancellation.check()

    def progress(self, message: str, *, fraction: float | None = None) -> None:
        """Tell whoever watches how far the work is."""
        if self.report is not None:
            self.report("progress", {"message": message, "fraction": fraction})

    def output(self, text: str) -> None:
        """Show a piece of the output while the work goes on."""
        if self.report is not None:
            self.report("output", {"text": text})

    def service(self, name: str) -> Any:
        """Something that an outer layer provides; says so where it is not provided."""
        found = self.services.get(name)
        if found is None:
            raise UnavailableError(
                f"{self.tool or 'this tool'} needs {name}, which this front door does not offer"
            )
        return found
