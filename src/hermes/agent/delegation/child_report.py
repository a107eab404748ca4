"""Status of a child agent: activity while it runs, report when it has ended, journal entries.

One journal note says that a child begins, with its session and the process that runs it; another
one says
how it ended. Where the second note is missing and that process is gone, the child was cut off: its
report is made from its own session and the checkpoints, and it can be resumed.
"""

from __future__ import annotations

import itertools
import os
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
    from hermes.agent.loop import Conversation, Journal, Result
    from hermes.core.context import ToolContext
    from hermes.core.model_protocol import Event, Message, Usage
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


NOTE = "delegated"
_TASK_FIELDS = ("goal", "toolsets", "timeout_seconds", "idle_timeout_seconds")


def new_journal(parent: Any, *, name: str, workspace: str, model: str, title: str) -> Journal:
    """The journal of a child: a session beside its parent's, or in memory if that has none."""
    store = getattr(parent, "store", None)
    if store is None:
        return InMemoryJournal(name)
    session: Journal = store.begin(
        title=title[:200],
        workspace=workspace,
        model=model,
        parent=parent.id,
        front_door=parent.front_door,
    )
    return session


def note_begin(
    journal: Any, agent: str, task: Mapping[str, Any], *, session: str, turns: list[str]
) -> None:
    """Record the start of a child."""
    if journal is not None:
        fields = {"agent": agent, "status": "running", **_fields(task), "session": session}
        owner = list(process_identity(os.getpid()))
        journal.note(NOTE, {**fields, "turns": turns, "owner": owner})


def note_end(
    journal: Any,
    report: Mapping[str, Any],
    task: Mapping[str, Any],
    *,
    session: str,
    turns: list[str],
    cost: tuple[Usage, str] | None,
) -> None:
    """Record the end of a child; its cost too, unless a session of its own has that."""
    if journal is None:
        return
    usage, model = cost or (None, "")
    data = {**report, **_fields(task), "session": session, "turns": turns}
    journal.note(NOTE, data, usage=usage, model=model)


def _fields(task: Mapping[str, Any]) -> dict[str, Any]:
    return {key: task[key] for key in _TASK_FIELDS if task.get(key) is not None}


def last_notes(journal: Any) -> dict[str, dict[str, Any]]:
    """The last note about each child, by its path."""
    notes = getattr(journal, "notes", None)
    if notes is None:
        return {}
    return {note.data["agent"]: note.data for note in notes(NOTE) if "session" in note.data}


def cut_off(data: Mapping[str, Any]) -> bool:
    """Whether a child was running in a process that has ended."""
    if data["status"] not in UNFINISHED:
        return False
    pid, start = data.get("owner") or (0, "")
    return (pid, start) != process_identity(pid) or pid == os.getpid()


def process_identity(pid: int) -> tuple[int, str]:
    """A pid and its start time, because pids are reused; (0, "") if there is no such process."""
    from hermes.environments.host.process_table import start_time

    start = start_time(pid)
    if start != "unknown":
        return (pid, start) if start else (0, "")
    try:
        os.kill(pid, 0)
    except OSError:
        return 0, ""
    return pid, ""


class _Intent(NamedTuple):
    seq: int
    call_id: str


class _Outcome(NamedTuple):
    call_seq: int
    content: str


class _Line(NamedTuple):
    kind: str
    value: Any


class InMemoryJournal:
    """The part of a `Journal` that resuming needs, in memory."""

    def __init__(self, id: str) -> None:  # noqa: A002
        self.id = id
        self._numbers = itertools.count(1)
        self._messages: list[Message] = []
        self._intents: list[_Intent] = []
        self._lines: list[_Line] = []

    def append(self, message: Message, *, usage: Usage | None = None, turn: str = "") -> int:  # noqa: ARG002
        self._messages.append(message)
        return next(self._numbers)

    def intend(self, turn: str, call_id: str, tool: str, arguments: str, effect: str) -> int:  # noqa: ARG002
        self._intents.append(_Intent(next(self._numbers), call_id))
        return self._intents[-1].seq

    def outcome(self, call_seq: int, status: str, content: str, seconds: float) -> int:  # noqa: ARG002
        self._lines.append(_Line("outcome", _Outcome(call_seq, content)))
        return next(self._numbers)

    def messages(self) -> list[Message]:
        return list(self._messages)

    def note(self, kind: str, data: Any, **_: Any) -> int:
        self._lines.append(_Line(kind, data))
        return next(self._numbers)

    def compact(self, upto_seq: int, summary: list[Message], **_: Any) -> int:  # noqa: ARG002
        self._messages = list(summary)
        return next(self._numbers)

    def intents(self) -> list[_Intent]:
        return list(self._intents)

    def journal(self) -> list[_Line]:
        return list(self._lines)
