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

    from hermes.agent.delegation.child import Worker
    from hermes.agent.loop import Conversation, Result
    from hermes.core.context import ToolContext
    from hermes.core.messages import Message
    from hermes.core.model_protocol import Event
    from hermes.runtime.events import Event as CallEvent


log = Log("hermes.agent")

_LINE = 120

# How a child ends that ran into a limit, and which one that is.
LIMITS = {"timeout": "timeout_seconds", "idle_timeout": "idle_timeout_seconds"}
# What a child can be besides one of the ends that a report names.
UNFINISHED = ("waiting", "running")


class Child(NamedTuple):
    """A child at a glance. `state` is `waiting`, `running` or how it ended."""

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


def last_text(messages: Sequence[Message], partial: Sequence[str] = ()) -> str:
    """What it said last, be it half of an answer."""
    said = (message.text for message in reversed(messages) if message.role == "assistant")
    return "".join(partial).strip() or next(filter(None, said), "")


def one_line(text: str, most: int = _LINE) -> str:
    """The last line of a text that says something, cut where it is long."""
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    last = lines[-1] if lines else ""
    return last if len(last) <= most else f"{last[: most - 1]}…"


def files_changed(worker: Worker, context: ToolContext, tools: Iterable[str]) -> list[str]:
    """The files that a child changed, as the checkpoint store knows them.

    Args:
        worker: The child.
        context: Of a call in its parent's session.
        tools: What it called; one that only read is not looked up.
    """
    resolve = worker.app.runtime.registry.resolve
    if all(entry.effect == "read" for entry in map(resolve, tools) if entry is not None):
        return []
    from hermes.stores.checkpoints.checkpoint_store import checkpoints
    from hermes.stores.checkpoints.types import CheckpointError

    found: dict[str, None] = {}
    for turn in worker.turns:
        try:
            changes = checkpoints(context).show(f"{context.session_id}/{turn}")
        except CheckpointError:
            # Nothing was changed in this turn.
            continue
        mine = [
            change.place
            for change in changes
            # Its own children worked for it.
            if f"{change.author.agent}/".startswith(f"{worker.handle}/")
        ]
        found |= dict.fromkeys(mine)
    return list(found)


def outcome(
    working: asyncio.Task[Result] | None,
    status: str,
    why: str,
    task: Mapping[str, Any],
    handle: str,
) -> dict[str, Any]:
    """How a child ended: status, text and reason.

    Args:
        working: Its turn; None when it never began.
        status: What ended the watch over it: a limit, a failure of ours, or the turn's own end.
        why: Who stopped it, or what failed.
        task: What it was to do, with its limits.
        handle: Its path.
    """
    report: dict[str, Any] = {"agent": handle, "status": status, "text": ""}
    if working is None or status == "crashed":
        report["reason"] = why or "stopped before it began"
    elif not working.done() or working.cancelled():
        limit = LIMITS.get(status)
        report["status"] = status if limit else "cancelled"
        because = f"{limit} {task[limit]:g}" if limit else why or "with its parent"
        left = "" if working.done() else "; it did not stop when told and was left behind"
        report["reason"] = f"stopped: {because}{left}"
    elif (error := working.exception()) is not None:
        report["status"], report["reason"] = failure(error, handle)
    else:
        result = working.result()
        report["status"] = "completed" if result.ended == "answered" else result.ended
        report["text"] = result.text
        if result.refused:
            report["refused"] = list(result.refused)
    return report


def failure(error: BaseException, path: str) -> tuple[str, str]:
    """How a child ended that raised something, and why, in words for its parent."""
    if isinstance(error, HermesError):
        return "failed", f"{error} ({error.hint})" if error.hint else str(error)
    import traceback

    log.warning("%s failed:\n%s", path, "".join(traceback.format_exception(error)))
    return "crashed", f"a bug of ours: {type(error).__name__}; the log has more"


def news(report: dict[str, Any], goal: str) -> str:
    """What a parent is told, as data, when a child has ended that it did not wait for."""
    reason = f" ({one_line(report['reason'])})" if report.get("reason") else ""
    changed = len(report["files_changed"])
    files = f", {changed} file{'s' if changed != 1 else ''} changed" if changed else ""
    return (
        f"[notice, not a request: your background agent {report['agent']} has ended: "
        f"{report['status']}{reason} after {report['seconds']:g} s{files}. Its task: "
        f"{one_line(goal)!r}. delegate_task with action=wait, handle={report['agent']} gives its "
        "report; action=resume lets it go on.]"
    )


class Signs:
    """What is seen of a conversation from outside."""

    def __init__(self) -> None:
        self.began = self.last = time.monotonic()
        self.tools: set[str] = set()
        self.last_tool = ""
        # Told which tools it calls.
        self.progress: Callable[[str], None] | None = None
        self._conversation: Conversation | None = None
        self._partial: list[str] = []

    def begin(self, conversation: Conversation) -> None:
        """Watch a conversation from now on."""
        self._conversation = conversation
        self._partial.clear()
        self.began = self.last = time.monotonic()

    def beat(self) -> None:
        """Something happened."""
        self.last = time.monotonic()

    @property
    def seconds(self) -> float:
        """How long it has been at work."""
        return time.monotonic() - self.began

    @property
    def silent(self) -> float:
        """How long nothing has happened; waiting for a person is no silence."""
        return time.monotonic() - self.last

    @property
    def text(self) -> str:
        """What it said last, be it half of an answer."""
        messages = self._conversation.messages if self._conversation is not None else ()
        return last_text(messages, self._partial)

    def said(self, event: Event) -> None:
        """Something came from the model."""
        self.beat()
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

    def heard(self, event: CallEvent) -> None:
        """Something happened to a call, perhaps one of its own."""
        messages = self._conversation.messages if self._conversation is not None else ()
        # Ids of two conversations may be alike: at worst another child's life is taken for ours.
        if messages and any(use.id == event.call_id for use in messages[-1].calls):
            asked = event.kind == "approval_requested"
            self.last = float("inf") if asked else time.monotonic()
