"""What the parent's journal keeps of its children, so that none stays "running" for ever.

A note says that a child begins, with who runs it and in which session it works; another how it
ended. Where the second is missing and the program of the first is gone, the child was cut off: what
its own session and the checkpoints tell of it is its report, and it can go on from there.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.agent.delegating.reporting import UNFINISHED

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from hermes.agent.loop import Journal
    from hermes.core.messages import Usage

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
        from hermes.agent.delegating.pages import Pages

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
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return pid, file.read().rpartition(b") ")[2].split()[19].decode()
    except (OSError, IndexError):
        pass
    if os.path.isdir("/proc/self"):
        return 0, ""
    try:
        os.kill(pid, 0)
    except OSError:
        return 0, ""
    return pid, ""
