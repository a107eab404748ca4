"""Context of a call: ToolContext, Task, the cancellation token, approval requests and rulings."""

from __future__ import annotations

import os
import threading

from hermes.core.errors import HermesError, UnavailableError

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Literal, TypeVar

    from hermes.core.protocols import (
        Application,
        Approver,
        ArtifactStore,
        AskPerson,
        CallEffects,
        CallRuntime,
        Delegate,
        Mixture,
        Programs,
        Sampler,
        SessionJournal,
        ShowForm,
        ToolOffer,
    )


class Answer(str):
    """The answer to a request, and its author for the audit log: `Answer("once", by="…")`."""

    __slots__ = ("by",)

    def __new__(cls, text: str, *, by: str = "") -> Answer:
        """The answer, which is text like any other."""
        answer = super().__new__(cls, text)
        answer.by = by
        return answer

    by: str


class ApprovalRequest:
    """A question to a person about one call: tool, arguments, reason and rules.

    `rule` is the first of `rules`; with `human_only`, no model may answer for the person. `batch`
    names a series that the answer `"batch"` approves as a whole, such as the rest of a script.
    """

    __slots__ = (
        "agent_path",
        "arguments",
        "batch",
        "call_id",
        "front_door",
        "human_only",
        "reason",
        "rule",
        "rules",
        "tool",
    )

    def __init__(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        reason: str,
        rule: str,
        rules: Sequence[str] = (),
        human_only: bool = False,
        call_id: str = "",
        front_door: str = "",
        agent_path: str = "",
    ) -> None:
        self.tool = tool
        self.arguments = arguments
        self.reason = reason
        self.rule = rule
        self.rules = tuple(rules) or (rule,)
        self.human_only = human_only
        self.call_id = call_id
        self.front_door = front_door
        self.agent_path = agent_path
        self.batch = ""


class Ruling:
    """A policy's ruling on one call: `allow`, `ask` or `refuse`, with the reason and the rule.

    `effects` has the call's effects and the analysis of its commands.
    `grants` is the scope of an approval and `targets` that of a refusal, for a policy that
    remembers answers. `paths` maps kind and spelling of the call's paths to the resolved path; `by`
    is the earlier approval of an allowed call; `human_only` keeps models from approving. `keeps`
    names the data that the call would store for later conversations, if it can wait for a review.
    """

    __slots__ = (
        "action", "by", "effects", "grants", "human_only", "keeps", "paths", "reason", "rule",
        "targets",
    )  # fmt: skip

    def __init__(
        self,
        action: Literal["allow", "ask", "refuse"],
        *,
        reason: str = "",
        rule: str = "",
        grants: tuple[Any, ...] = (),
        targets: frozenset[str] = frozenset(),
        paths: Mapping[tuple[str, str], str] | None = None,
        effects: CallEffects | None = None,
        by: str = "",
        human_only: bool = False,
        keeps: str = "",
    ) -> None:
        self.action = action
        self.reason = reason
        self.rule = rule
        self.grants = grants
        self.targets = targets
        self.paths = paths
        self.effects = effects
        self.by = by
        self.human_only = human_only
        self.keeps = keeps

    def __repr__(self) -> str:
        return f"<{self.action} by {self.rule}: {self.reason}>"


class CancelledError(HermesError):
    """The call was cancelled; its partial work is undone or reported."""


class Cancellation:
    """Cancellation token of one call: set once, polled or observed by callback; children follow."""

    __slots__ = ("_callbacks", "_children", "_event", "_parent", "reason")

    # One lock for all: it is held for a few instructions, and only when something is cancelled
    # or waited for, so that making one costs next to nothing.
    _lock = threading.Lock()

    def __init__(self, parent: Cancellation | None = None) -> None:
        self._event: threading.Event | None = None
        self._callbacks: list[Callable[[], object]] = []
        # A dict, which costs less to make than a set.
        self._children: dict[Cancellation, None] = {}
        self._parent = parent
        self.reason = ""
        if parent is not None:
            parent._children[self] = None  # noqa: SLF001 - one of its own kind
            # Looked at only now: a parent that was cancelled before could not tell us.
            if parent.reason:
                self.reason = parent.reason

    @property
    def cancelled(self) -> bool:
        """Whether the call is to stop."""
        return bool(self.reason)

    def check(self) -> None:
        """Raise `CancelledError` when the call is to stop."""
        if self.reason:
            raise CancelledError(self.reason)

    def cancel(self, reason: str = "cancelled") -> None:
        """Ask for the stop; the first reason is kept."""
        with self._lock:
            if self.reason:
                return
            self.reason = reason or "cancelled"
            # A copy: whoever is just taking a callback back does so in the list we had.
            callbacks, self._callbacks = tuple(self._callbacks), []
            children = tuple(self._children)
            if self._event is not None:
                self._event.set()
        for child in children:
            child.cancel(self.reason)
        for callback in callbacks:
            try:
                callback()
            except Exception:  # the others are to be told all the same
                import logging

                logging.getLogger("hermes.core").exception("a callback on cancellation failed")

    def wait(self, seconds: float) -> bool:
        """Sleep up to `seconds`; True at once when the stop is asked for."""
        with self._lock:
            if self._event is None:
                self._event = threading.Event()
                if self.reason:
                    self._event.set()
        return self._event.wait(seconds)

    def on_cancel(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Run `callback` when the stop is asked for; gives a function that takes it back."""
        with self._lock:
            if not self.reason:
                self._callbacks.append(callback)
                return lambda: self._forget(callback)
        callback()
        return lambda: None

    def close(self) -> None:
        """Let go of the parent: the call has ended."""
        if self._parent is not None:
            self._parent._children.pop(self, None)  # noqa: SLF001

    def _forget(self, callback: Callable[[], object]) -> None:
        try:
            self._callbacks.remove(callback)
        except ValueError:
            # Already run, or being run.
            return


if TYPE_CHECKING:
    T = TypeVar("T")


class Task:
    """One line of work, and the resources that live as long as it does."""

    def __init__(self, id: str, *, workspace: str = "") -> None:  # noqa: A002
        self.id = id
        self.workspace = workspace or os.getcwd()
        # Environment variables for the commands of this task; None removes one.
        self.env: dict[str, str | None] = {}
        # The folder of the next command, once a command has changed it.
        self.cwd = ""
        # The task list, and the clipboard where the desktop has none.
        self.todos: tuple[Any, ...] = ()
        self.clipboard = ""
        # The end of the input that was typed into each background process.
        self.typed: dict[str, str] = {}
        self._resources: dict[str, Any] = {}
        self._closers: list[Callable[[], None]] = []
        self._closed = False
        # Reentrant: making one resource may need another.
        self._lock = threading.RLock()

    def keep(self, name: str, make: Callable[[], T], close: Callable[[T], None]) -> T:
        """The resource of that name, made at first use and closed with the task.

        Raises `UnavailableError` once the task is closed.
        """
        with self._lock:
            if self._closed:
                raise UnavailableError(f"task {self.id} has ended")
            if name not in self._resources:
                self._resources[name] = resource = make()
                self._closers.append(lambda: close(resource))
            kept: T = self._resources[name]
            return kept

    def kept(self, name: str) -> Any:
        """The resource of that name; None before its first use."""
        return self._resources.get(name)

    def close(self) -> list[BaseException]:
        """Close the task's resources, last made first; the errors of those that failed."""
        with self._lock:
            self._closed = True
            closers, self._closers = self._closers, []
            self._resources.clear()
            self.todos = ()
        failures: list[BaseException] = []
        for closer in reversed(closers):
            try:
                closer()
            except Exception as error:  # noqa: BLE001 - one that can't close must not keep others open
                failures.append(error)
        return failures


class Services:
    """Services for handlers, each provided by an outer layer, or None. See `core/protocols.py`.

    A program may add its own by further names; handlers get those with `ToolContext.service`.
    """

    runtime: CallRuntime | None = None
    app: Application | None = None
    # Resolves a path that a running call meets, and refuses it where the policy says so.
    resolve_path: Callable[[ToolContext, str, str], str] | None = None
    artifacts: ArtifactStore | None = None
    # Set for all by `hermes.tools`.
    programs: Programs | None = None
    offer: ToolOffer | None = None
    journal: SessionJournal | None = None
    delegate: Delegate | None = None
    sample: Sampler | None = None
    mixture: Mixture | None = None
    ask_person: AskPerson | None = None
    show_form: ShowForm | None = None
    client_roots: Callable[..., Any] | None = None

    def __init__(self, **services: Any) -> None:
        self.__dict__.update(services)

    def replace(self, **services: Any) -> Services:
        """A copy with some services replaced, added, or removed by None."""
        return Services(**{**self.__dict__, **services})


class ToolContext:
    """Context of one call. An interface makes one per task; the runtime copies it for each call."""

    __slots__ = (
        "agent_path",
        "approver",
        "call_id",
        "cancellation",
        "front_door",
        "profiles",
        "report",
        "ruling",
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
        services: Services | None = None,
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
        self.services = services or Services()
        # Rights of this session or sub-agent, on top of everybody's: they can only take away.
        self.profiles = tuple(profiles)
        self.call_id = ""
        self.tool = ""
        # The policy's ruling on the call: resolved paths, effects, analysis of commands.
        self.ruling: Ruling | None = None
        self.report: Callable[[str, dict[str, Any]], None] | None = None
        # Whose words the call brings in, where these are neither ours nor the person's.
        self.source = ""

    def for_call(
        self,
        call_id: str,
        tool: str,
        cancellation: Cancellation,
        report: Callable[[str, dict[str, Any]], None] | None,
        ruling: Ruling | None = None,
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
        twin.ruling = ruling
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
        return self.task.cwd or self.task.workspace

    @property
    def paths(self) -> Mapping[tuple[str, str], str]:
        """Resolved paths of the call's arguments, by kind and spelling."""
        return (self.ruling.paths or {}) if self.ruling is not None else {}

    def resolve_path(self, path: str, kind: str = "read") -> str:
        """The absolute path without links; `PathRefusedError` where the policy refuses it.

        Paths among the arguments were judged before the call began. A path that the handler meets
        later is judged now, and refused where a person would have to be asked.

        Args:
            path: As the caller wrote it; relative to the workspace.
            kind: What is done there: `read`, `write` or `delete`.
        """
        judged = self.paths.get((kind, path))
        if judged is not None:
            return judged
        resolve = self.services.resolve_path
        if resolve is None:
            return os.path.realpath(os.path.join(self.workspace, os.path.expanduser(path)))
        return resolve(self, kind, path)

    @property
    def cancelled(self) -> bool:
        """Whether the handler should stop and return."""
        return self.cancellation.cancelled

    def check_cancelled(self) -> None:
        """Raise `CancelledError` when the call is to stop; for loops in sync handlers."""
        self.cancellation.check()

    def progress(self, message: str, *, fraction: float | None = None) -> None:
        """Report progress to the listeners of the call."""
        if self.report is not None:
            self.report("progress", {"message": message, "fraction": fraction})

    def output(self, text: str) -> None:
        """Show a piece of the output while the work goes on."""
        if self.report is not None:
            self.report("output", {"text": text})

    def service(self, name: str) -> Any:
        """A service by name; `UnavailableError` where the interface does not provide it."""
        service = getattr(self.services, name, None)
        if service is None:
            raise UnavailableError(
                f"{self.tool or 'this tool'} needs {name}, which this front door does not offer"
            )
        return service
