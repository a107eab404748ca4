"""What is done with children that are there already, one function for each action of the tool."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hermes.core.errors import ToolError

if TYPE_CHECKING:
    from typing import Any

    from hermes.agent.delegating.delegation import Delegation
    from hermes.agent.delegating.reporting import Child
    from hermes.agent.delegating.worker import Worker
    from hermes.core.context import ToolContext


async def act(
    delegation: Delegation,
    action: str,
    handle: str,
    context: ToolContext,
    *,
    message: str = "",
    seconds: float | None = None,
    background: bool = False,
) -> dict[str, Any]:
    """Carry out one action; what the model is told.

    Args:
        delegation: Whose children they are.
        action: list, status, wait, cancel, steer, extend or resume.
        handle: Which child; for list and wait it may be left out and means all.
        context: Of the call.
        message: What to tell it, for steer and resume.
        seconds: How long to wait, or how much longer it may work.
        background: Whether one that is resumed is not waited for.
    """
    if action == "list" or (action == "wait" and not handle.strip()):
        workers = delegation.workers(context)
        if action == "wait":
            await _waited(workers, seconds)
            return {"results": [_still(worker) for worker in workers]}
        return {"agents": [shown(worker.seen()) for worker in workers]}
    if not handle.strip():
        raise ToolError(f"{action} needs a handle", hint="action=list shows them.")
    if action == "resume":
        worker = delegation.resume(handle, message, context, background=background, seconds=seconds)
        if background:
            return shown(worker.seen())
        return (await delegation.finished([worker]))[0]
    worker = delegation.worker(handle, context)
    if action == "status":
        return _known(worker)
    if action == "wait":
        await _waited([worker], seconds)
        return _still(worker)
    if action == "cancel":
        if worker.unfinished:
            worker.cancel("cancelled by the agent that it worked for")
            await _waited([worker], None)
        return _known(worker)
    if not worker.unfinished:
        raise ToolError(f"{worker.handle} has ended ({worker.state})", hint="Resume it.")
    if action == "extend":
        if seconds is None:
            raise ToolError("extend needs timeout_seconds, counted from now")
        worker.extend(seconds)
        return shown(worker.seen())
    if not message.strip():
        raise ToolError("steer needs a message")
    worker.steer(message)
    return {**shown(worker.seen()), "told": "it reads that at its next step"}


def shown(child: Child) -> dict[str, Any]:
    """A child at a glance, as the model reads it."""
    found = child._asdict()
    return {key: value for key, value in found.items() if value not in ("", False)}


def _known(worker: Worker) -> dict[str, Any]:
    return shown(worker.seen()) if worker.unfinished else worker.report


def _still(worker: Worker) -> dict[str, Any]:
    known = _known(worker)
    # Whoever waits does not go round in circles: something has changed, if only the time.
    return {**known, "at_work_for": known["seconds"]} if worker.unfinished else known


async def _waited(workers: list[Worker], seconds: float | None) -> None:
    """Wait for the end of children, who go on when the wait is over or given up."""
    waits = [asyncio.wrap_future(worker.done) for worker in workers if worker.unfinished]
    if waits:
        # Not cancelled with us: the future is the child's, too.
        await asyncio.wait([asyncio.shield(wait) for wait in waits], timeout=seconds)
