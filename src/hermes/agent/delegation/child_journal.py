"""Journal entries about child agents, so that none stays "running" after a crash."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING, NamedTuple

from hermes.agent.delegation.child_report import UNFINISHED

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from hermes.agent.loop import Journal
    from hermes.core.messages import Message, Usage


class _Intent(NamedTuple):
    seq: int
    call_id: str


class _Outcome(NamedTuple):
    call_seq: int
    content: str


class _Line(NamedTuple):
    kind: str
    value: Any


class Pages:
    """As much of a journal as a conversation needs to go on after a break; a `Journal`."""

    def __init__(self, id: str) -> None:  # noqa: A002
        self.id = id
        self._numbers = itertools.count(1)
        self._messages: list[Message] = []
        self._intents: list[_Intent] = []
        self._lines: list[_Line] = []

    def append(self, message: Message, *, usage: Usage | None = None, turn: str = "") -> int:  # noqa: ARG002
        """Keep a message."""
        self._messages.append(message)
        return next(self._numbers)

    def intend(self, turn: str, call_id: str, tool: str, arguments: str, effect: str) -> int:  # noqa: ARG002
        """Keep what is about to be called."""
        self._intents.append(_Intent(next(self._numbers), call_id))
        return self._intents[-1].seq

    def outcome(self, call_seq: int, status: str, content: str, seconds: float) -> int:  # noqa: ARG002
        """Keep what came of a call."""
        self._lines.append(_Line("outcome", _Outcome(call_seq, content)))
        return next(self._numbers)

    def messages(self) -> list[Message]:
        """The conversation so far."""
        return list(self._messages)

    def note(self, kind: str, data: Any, **_: Any) -> int:
        """Keep anything else."""
        self._lines.append(_Line(kind, data))
        return next(self._numbers)

    def compact(
        self,
        upto_seq: int,  # noqa: ARG002
        summary: list[Message],
        *,
        usage: Usage | None = None,  # noqa: ARG002
    ) -> int:
        """Let a summary stand for the conversation so far."""
        self._messages = list(summary)
        return next(self._numbers)

    def intents(self) -> list[_Intent]:
        """Every call that was begun."""
        return list(self._intents)

    def journal(self) -> list[_Line]:
        """Every line that is neither a message nor an intent."""
        return list(self._lines)


NOTE = "delegated"
_KEPT = ("goal", "toolsets", "timeout_seconds", "idle_timeout_seconds")


def new_journal(
    parent: Any,
    *,
    name: str,
    workspace: str,
    model: str,
    title: str,
) -> Journal:
    """Where a child's conversation is kept: a session of its own beside its parent's."""
    store = getattr(parent, "store", None)
    if store is None:
        return Pages(name)
    begun: Journal = store.begin(
        title=title[:200],
        workspace=workspace,
        model=model,
        parent=parent.id,
        front_door=parent.front_door,
    )
    return begun


def begun(
    journal: Any, agent: str, task: Mapping[str, Any], *, session: str, turns: list[str]
) -> None:
    """Keep that a child begins."""
    if journal is not None:
        kept = {key: task[key] for key in _KEPT if task.get(key) is not None}
        note = {"agent": agent, "status": "running", **kept, "session": session, "turns": turns}
        journal.note(NOTE, {**note, "owner": list(process(os.getpid()))})


def ended(
    journal: Any,
    report: Mapping[str, Any],
    task: Mapping[str, Any],
    *,
    session: str,
    turns: list[str],
    cost: tuple[Usage, str] | None,
) -> None:
    """Keep how a child ended; what it cost where no session of its own has that."""
    if journal is None:
        return
    kept = {key: task[key] for key in _KEPT if task.get(key) is not None}
    usage, model = cost or (None, "")
    data = {**report, **kept, "session": session, "turns": turns}
    journal.note(NOTE, data, usage=usage, model=model)


def known(journal: Any) -> dict[str, dict[str, Any]]:
    """The last that is kept of every child, by its path."""
    notes = getattr(journal, "notes", None)
    if notes is None:
        return {}
    return {one.data["agent"]: one.data for one in notes(NOTE) if "session" in one.data}


def cut_off(data: Mapping[str, Any]) -> bool:
    """Whether a child was at work in a program that is no more."""
    if data["status"] not in UNFINISHED:
        return False
    pid, since = data.get("owner") or (0, "")
    return (pid, since) != process(pid) or pid == os.getpid()


def process(pid: int) -> tuple[int, str]:
    """A process and when it began, for a number alone is given to others later."""
    from hermes.environments.host.process_table import start_time

    since = start_time(pid)
    if since != "unknown":
        return (pid, since) if since else (0, "")
    try:
        os.kill(pid, 0)
    except OSError:
        return 0, ""
    return pid, ""
