"""Status of a child agent: activity while it runs, report when it has ended."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.errors import HermesError
from hermes.core.log import Log
from hermes.core.model_protocol import Discarded, Done, TextDelta

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from hermes.agent.delegation.child import ChildAgent
    from hermes.agent.loop import Conversation, Result
    from hermes.core.context import ToolContext
    from hermes.core.model_protocol import Event, Message
    from hermes.runtime.hooks import Event as CallEvent

log = Log("hermes.agent")

_LINE = 120

# Status of a child that reached a limit, and the name of that limit.
LIMITS = {"timeout": "timeout_seconds", "idle_timeout": "idle_timeout_seconds"}
# States of a child without a report.
UNFINISHED = ("waiting", "running")


class ChildStatus(NamedTuple):
    """Status of a child. `state` is `waiting`, `running`, or the status of its report."""

    handle: str
    goal: str
    state: str
    seconds: float
    steps: int
    tokens: int
    last_line: str
    background: bool = False
    last_tool: str = ""

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return self.state in UNFINISHED


class Activity:
    """Activity of a child's conversation: its text, its tools, the time of the last event."""

    def __init__(self) -> None:
        self.began = self.last = time.monotonic()
        self.tools: set[str] = set()
        self.last_tool = ""
        # Receives the names of the tools that it calls.
        self.progress: Callable[[str], None] | None = None
        self._conversation: Conversation | None = None
        self._partial: list[str] = []

    def begin(self, conversation: Conversation) -> None:
        """Watch a conversation."""
        self._conversation = conversation
        self._partial.clear()
        self.began = self.last = time.monotonic()

    def touch(self) -> None:
        """Restart the idle timer."""
        self.last = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self.began

    @property
    def idle(self) -> float:
        """Seconds since the last event; negative while it waits for a person."""
        return time.monotonic() - self.last

    @property
    def text(self) -> str:
        """Its last text, or the part of an answer that has arrived."""
        messages = self._conversation.messages if self._conversation is not None else ()
        return last_text(messages, self._partial)

    def on_model_event(self, event: Event) -> None:
        """Take an event of its model."""
        self.touch()
        if isinstance(event, TextDelta):
            self._partial.append(event.text)
        elif isinstance(event, Done | Discarded):
            self._partial.clear()
        if isinstance(event, Done) and event.message.calls:
            names = [use.name for use in event.message.calls]
            self.tools.update(names)
            self.last_tool = names[-1]
            if self.progress is not None:
                self.progress(", ".join(names))

    def on_call_event(self, event: CallEvent) -> None:
        """Take an event of a tool call, perhaps of another conversation."""
        messages = self._conversation.messages if self._conversation is not None else ()
        # Two conversations may use the same ids: at worst the idle timer restarts too early.
        if messages and any(use.id == event.call_id for use in messages[-1].calls):
            asked = event.kind == "approval_requested"
            self.last = float("inf") if asked else time.monotonic()


def last_text(messages: Sequence[Message], partial: Sequence[str] = ()) -> str:
    """The last text of the model: the streamed part, or the last message."""
    texts = (message.text for message in reversed(messages) if message.role == "assistant")
    return "".join(partial).strip() or next(filter(None, texts), "")


def one_line(text: str, most: int = _LINE) -> str:
    """The last non-empty line of a text, cut to `most` characters."""
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    last = lines[-1] if lines else ""
    return last if len(last) <= most else f"{last[: most - 1]}…"


def files_changed(child: ChildAgent, context: ToolContext, tools: Iterable[str]) -> list[str]:
    """The files that a child changed, from the checkpoint store.

    Args:
        child: The child.
        context: Of a call in its parent's session.
        tools: The tools it called; if all of them only read, the store is not queried.
    """
    resolve = child.app.runtime.registry.resolve
    if all(entry.effect == "read" for entry in map(resolve, tools) if entry is not None):
        return []
    from hermes.stores.checkpoints.checkpoint_store import checkpoints
    from hermes.stores.checkpoints.types import CheckpointError

    paths: dict[str, None] = {}
    for turn in child.turns:
        try:
            changes = checkpoints(context).show(f"{context.session_id}/{turn}")
        except CheckpointError:
            # No changes in this turn.
            continue
        paths |= dict.fromkeys(
            change.place
            for change in changes
            # Changes by its own children count too.
            if f"{change.author.agent}/".startswith(f"{child.handle}/")
        )
    return list(paths)


def report_of(
    task: asyncio.Task[Result] | None,
    status: str,
    reason: str,
    limits: Mapping[str, Any],
    handle: str,
) -> dict[str, Any]:
    """The report of an ended child: status, text and reason.

    Args:
        task: Its turn; None when it never began.
        status: A limit that it reached, `crashed`, or `ended` when the turn ended by itself.
        reason: The reason of a cancellation or a failure.
        limits: Its task with the limits.
        handle: Its path.
    """
    report: dict[str, Any] = {"agent": handle, "status": status, "text": ""}
    if task is None or status == "crashed":
        report["reason"] = reason or "stopped before it began"
    elif not task.done() or task.cancelled():
        limit = LIMITS.get(status)
        report["status"] = status if limit else "cancelled"
        cause = f"{limit} {limits[limit]:g}" if limit else reason or "with its parent"
        left = "" if task.done() else "; it did not stop when told and was left behind"
        report["reason"] = f"stopped: {cause}{left}"
    elif (error := task.exception()) is not None:
        report["status"], report["reason"] = failure(error, handle)
    else:
        result = task.result()
        report["status"] = "completed" if result.ended == "answered" else result.ended
        report["text"] = result.text
        if result.refused:
            report["refused"] = list(result.refused)
    return report


def failure(error: BaseException, path: str) -> tuple[str, str]:
    """Status and reason of a child that raised an error."""
    if isinstance(error, HermesError):
        return "failed", f"{error} ({error.hint})" if error.hint else str(error)
    import traceback

    log.warning("%s failed:\n%s", path, "".join(traceback.format_exception(error)))
    return "crashed", f"a bug of ours: {type(error).__name__}; the log has more"


def end_notice(report: dict[str, Any], goal: str) -> str:
    """Notice for the parent's model about the end of a background child."""
    reason = f" ({one_line(report['reason'])})" if report.get("reason") else ""
    changed = len(report["files_changed"])
    files = f", {changed} file{'s' if changed != 1 else ''} changed" if changed else ""
    return (
        f"[notice, not a request: your background agent {report['agent']} has ended: "
        f"{report['status']}{reason} after {report['seconds']:g} s{files}. Its task: "
        f"{one_line(goal)!r}. delegate_task with action=wait, handle={report['agent']} gives its "
        "report; action=resume lets it go on.]"
    )
