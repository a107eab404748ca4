"""Protocols between layers: services that outer layers provide, and the policy on calls.

    Approver, AskPerson, ShowForm   questions to the person
    Sampler, Mixture, Delegate      the conversation's model, several models, child agents
    ToolOffer, ArtifactStore        tools of the conversation, large results on disk
    Programs                        programs that tools start on this machine
    SessionJournal                  the session's record
    Policy                          rulings on calls and paths
    UndoCoverage                    what undo would not restore of paths to be destroyed
    CallRuntime, Application        the runtime and the program around a call

`ToolContext.services` holds one of each, or None.
"""

# ruff: noqa: ARG002 - the defaults of `Policy` ignore their arguments
from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, Literal

    from hermes.core.config import Config
    from hermes.core.context import ApprovalRequest, Ruling, ToolContext
    from hermes.core.entry import ToolEntry
    from hermes.core.registry import ToolRegistry


class Approver(Protocol):
    """Asks a person to approve a call; sync or async.

    Returns an `Answer`, True, `"once"`, `"session"` or `"always"` for yes, None when no person can
    be asked. Every other value is a no.
    """

    def __call__(self, request: ApprovalRequest) -> Any: ...


class AskPerson(Protocol):
    """Asks the person a question; sync or async. An empty answer or None means no answer."""

    def __call__(self, question: str, choices: list[str]) -> Any: ...


class ShowForm(Protocol):
    """Shows the person a form with the fields of a JSON Schema; None when it is dismissed."""

    def __call__(self, message: str, schema: dict[str, Any], name: str = ...) -> Any: ...


class Sampler(Protocol):
    """One request to the conversation's model: its text, the model's name, the tokens used."""

    async def __call__(
        self, messages: Sequence[dict[str, str]], *, system: str = ..., max_tokens: int = ...
    ) -> tuple[str, str, int]: ...


class Mixture(Protocol):
    """One question to several models; their answers merged into one."""

    async def __call__(self, question: str, context: ToolContext) -> dict[str, Any]: ...


class Delegate(Protocol):
    """Runs tasks in child agents. The call waits for their reports, in the order of the tasks.

    A task has a `goal`, and optionally `context`, `toolsets`, `timeout_seconds` and
    `idle_timeout_seconds`; `context` is that of the delegating call. `start` does not wait; `act`
    controls running children: list, wait, cancel, ….
    """

    async def __call__(
        self, tasks: Sequence[Mapping[str, Any]], context: ToolContext
    ) -> list[dict[str, Any]]: ...

    def start(self, tasks: Sequence[Mapping[str, Any]], context: ToolContext) -> Sequence[Any]: ...

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


class ToolOffer(Protocol):
    """The tools of one conversation: sent with the prompt, or loaded by `tool_search`."""

    reachable: frozenset[str]

    def search(self, query: str, *, limit: int = 5) -> tuple[list[dict[str, Any]], list[str]]: ...

    def nearest(self, name: str) -> list[str]: ...


class ArtifactStore(Protocol):
    """Large results on disk."""

    def put(self, text: str, *, source: str = "") -> Any: ...

    def adopt(self, path: str, *, source: str = "") -> Any: ...

    def source(self, handle: str) -> str: ...

    def read(
        self, handle: str, *, offset: int = 0, limit: int = ..., pattern: str | None = None
    ) -> dict[str, Any]: ...


class Programs(Protocol):
    """Programs that tools start on this machine, with the limits of `terminal.confine`."""

    def limits(self, context: ToolContext, argv: Sequence[str]) -> tuple[Any, ...]:
        """The last fields of its `CallEffect`: confinement, no reason to leave it, undo."""
        ...

    def run(
        self, context: ToolContext, argv: Sequence[str], *, cwd: str, env: Mapping[str, str]
    ) -> Any:
        """Run a program to its end; its `CommandResult`. Whatever it leaves running is ended."""
        ...


class SessionJournal(Protocol):
    """The record of one session on disk."""

    id: str

    def note(self, kind: str, data: Any) -> Any: ...

    def notes(self, kind: str) -> Sequence[Any]: ...


class SecretRedactor(Protocol):
    """Masks secrets in text; `add` registers a further one."""

    def add(self, value: str) -> Any: ...

    def redact(self, text: str) -> str: ...


class TaintRecord(Protocol):
    """Untrusted sources that a conversation has read."""

    def sources(self, context: ToolContext) -> tuple[str, ...]: ...


class CallRuntime(Protocol):
    """The runtime that carries out a call."""

    registry: ToolRegistry

    @property
    def policy(self) -> Policy: ...

    @property
    def redactor(self) -> SecretRedactor: ...

    @property
    def heard(self) -> TaintRecord: ...


class Application(Protocol):
    """The program's settings."""

    @property
    def config(self) -> Config: ...


class CallEffects(Protocol):
    """Effects of a call as its policy judged them: files, commands, addresses."""

    @property
    def acts(self) -> Sequence[Any]: ...

    @property
    def reads_only(self) -> bool: ...

    def commands(self) -> Iterable[Any]: ...

    def scripts_changed(self) -> bool: ...

    def cwd(self, act: Any) -> str: ...

    def verdict(self, act: Any) -> Any: ...


class Uncovered(NamedTuple):
    """A file or folder that undo would not restore, and the reason."""

    path: str
    size: int
    reason: str


class Coverage(NamedTuple):
    """What undo does for paths that a command is about to destroy.

    Attributes:
        uncovered: What it would not restore, the largest first, at most 20.
        more: How many further ones there are.
        disposable: The given paths of which git ignores every file, or this session made it; with
            the reason, for people.
    """

    uncovered: tuple[Uncovered, ...]
    more: int
    disposable: Mapping[str, str]


class UndoCoverage(Protocol):
    """Tells what undo would restore if a command destroyed some paths, and everything in them."""

    def __call__(
        self, paths: Sequence[str], context: ToolContext, *, cwd: str = ""
    ) -> Coverage: ...


class Policy(Protocol):
    """Rules on calls. An exception of `judge` refuses the call.

    Subclass it to get defaults for everything but `judge`: every right is allowed, approvals and
    refusals are not remembered, and a path that a handler meets later leads where its links lead.
    """

    def judge(
        self, entry: ToolEntry, arguments: Mapping[str, Any], context: ToolContext
    ) -> Ruling: ...

    def resolve_path(self, context: ToolContext, kind: Any, path: str) -> str:
        """Resolve a path that a running call meets; raise `PathRefusedError` to refuse it."""
        import os

        return os.path.realpath(os.path.join(context.workspace, os.path.expanduser(path)))

    def allows(self, right: str, context: ToolContext) -> bool:
        """Whether the call has a right without a question."""
        return True

    def remember(
        self, ruling: Ruling, answer: Literal["session", "always"], context: ToolContext
    ) -> None:
        """Store an approval for the session, or for good."""
        return

    def approved(self, ruling: Ruling, context: ToolContext) -> bool:
        """Whether a person approved the grants of a ruling before, for the session or for good."""
        return False

    def denied(self, ruling: Ruling, context: ToolContext) -> None:
        """Note that the person refused a call."""
        return

    def session_ended(self, session_id: str) -> None:
        """Forget approvals of a session."""
        return
