"""Journal entries about child agents, so that none stays "running" after a crash.

One note says that a child begins, with its session and the process that runs it; another one says
how it ended. Where the second note is missing and that process is gone, the child was cut off: its
report is made from its own session and the checkpoints, and it can be resumed.
"""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING, NamedTuple

from hermes.agent.delegation.child_report import UNFINISHED

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from hermes.agent.loop import Journal
    from hermes.core.model_protocol import Message, Usage

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
