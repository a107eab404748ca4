"""What waits for review: what it would do, and having it done."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.core.entry import ToolCall
from hermes.core.jsontext import to_json

if TYPE_CHECKING:
    from hermes.core.entry import ToolOutcome
    from hermes.interfaces.cli.main import CliApp
    from hermes.runtime.reviews import Review, Reviews

_MOST = 1024 * 1024


def would_do(review: Review) -> str:
    """The change as lines with + and - where that can be told; else the call itself."""
    given = review.arguments
    if review.tool == "memory":
        old = given.get("old_text") or []
        gone = [old] if isinstance(old, str) else list(old)
        lines = [f"- {text}" for text in gone]
        if given.get("action") != "remove":
            lines += [f"+ {line}" for line in str(given.get("content") or "").splitlines()]
        return "\n".join([f"{given.get('action')} in {given.get('target', 'memory')}:", *lines])
    path, content = given.get("path"), given.get("content")
    if isinstance(path, str) and isinstance(content, str):
        return _difference(os.path.join(review.workspace, os.path.expanduser(path)), content)
    return "\n".join(f"{name}: {_shown(value)}" for name, value in given.items())


def approve(app: CliApp, reviews: Reviews, review: Review) -> ToolOutcome:
    """Carry out what waits, in its folder, as the person who approved it; it waits on if it fails.

    The gate judges it anew: what is refused in every mode stays refused.
    """
    reviews.settle(review, "approved", "cli")
    runtime = app.runtime
    name = f"review-{review.id}"
    task = runtime.task(name, workspace=review.workspace)
    context = runtime.context(name, session_id=name, turn=name, front_door="cli", approver=_yes)
    for source in review.sources:
        # Approved or not, that is where the words came from, and what is written says so.
        runtime.heard.note(name, source)
    try:
        outcome = runtime.call_sync(ToolCall(review.tool, review.arguments), context)
    except BaseException:
        reviews.reopen(review)
        raise
    finally:
        runtime.close_task(task.id)
    if not outcome.ok:
        reviews.reopen(review)
    return outcome


def when(at: float) -> str:
    """A time as people read it."""
    import time

    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def _yes(_: object) -> str:
    # The person has just seen this very call and said yes to it.
    return "once"


def _difference(place: str, content: str) -> str:
    import difflib

    try:
        with open(place, encoding="utf-8", errors="replace") as file:
            before = file.read(_MOST)
    except OSError:
        before = ""
    lines = difflib.unified_diff(
        before.splitlines(), content.splitlines(), place, place, lineterm=""
    )
    return "\n".join(lines)


def _shown(value: object) -> str:
    return value if isinstance(value, str) else to_json(value)
