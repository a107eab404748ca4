"""`session_search`: search past sessions, read around a match, list the recent ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from hermes.core import ToolContext, ToolError, tool
from hermes.core.schema import Field

if TYPE_CHECKING:
    from typing import Any

    from hermes.core.model_protocol import Message
    from hermes.stores.sessions import Sessions

_TEXT = 2_000


@tool(
    toolset="agent",
    permissions=["session:read"],
    effect="read",
    # Past conversations quote pages and files of others.
    untrusted=True,
    emoji="🕰️",
    max_result_size_chars=60_000,
    tags=[
        "past conversation", "what did we say", "earlier session", "history", "last time",
        "previous chat", "recall", "transcript",
    ],
)  # fmt: skip
def session_search(
    ctx: ToolContext,
    query: str | None = None,
    session: str | None = None,
    seq: int | None = None,
    limit: Annotated[int, Field(ge=1, le=50)] = 10,
) -> dict[str, Any]:
    """Search past conversations; without arguments, list the recent ones.

    Args:
        query: Words that must all be there; "a phrase", OR and NOT work.
        session: Only this one; without query, read it.
        seq: Read around this hit of the session.
        limit: How many sessions, hits or messages.
    """
    from hermes.stores.sessions import Sessions

    if seq is not None and not session:
        raise ToolError("seq needs the session of the hit")
    with Sessions() as store:
        if session and (seq is not None or not _said(query)):
            return _read(store, session, seq, limit)
        if not _said(query):
            recent = store.list(limit=limit, children=False)
            return {"sessions": [_info(info, ctx) for info in recent]}
        matches = store.search(query or "", limit=limit, session=session, check=ctx.check_cancelled)
    hits = [
        {
            "session": hit.session,
            "seq": hit.seq,
            "title": hit.title,
            "role": hit.role,
            "at": _when(hit.at),
            "text": hit.snippet,
        }
        for hit in matches.hits
    ]
    answer: dict[str, Any] = {"hits": hits}
    if not matches.complete:
        answer["note"] = "there are older hits; narrow the query to see them"
    if not hits:
        answer["note"] = "nothing found; try fewer or other words"
    return answer


def _read(store: Sessions, name: str, seq: int | None, limit: int) -> dict[str, Any]:
    """Messages of a session around a line, or its last ones."""
    session_view = store.open(name)
    if seq is None:
        messages = session_view.around(2**62, before=limit - 1, after=0)
    else:
        messages = session_view.around(seq, before=limit // 2, after=limit - limit // 2 - 1)
    return {
        "session": session_view.id,
        "title": session_view.title,
        "messages": [_message(number, message) for number, message in messages],
    }


def _message(number: int, message: Message) -> dict[str, Any]:
    from hermes.safety.sanitise import shorten

    shown: dict[str, Any] = {
        "seq": number,
        "role": message.role,
        "text": shorten(message.text, _TEXT),
    }
    if message.calls:
        shown["calls"] = [
            f"{call.name} {shorten(call.arguments, _TEXT // 4)}" for call in message.calls
        ]
    return shown


def _info(info: Any, ctx: ToolContext) -> dict[str, Any]:
    shown = {
        "session": info.id,
        "title": info.title,
        "workspace": info.workspace,
        "messages": info.messages,
        "at": _when(info.touched),
    }
    return {**shown, "current": True} if info.id == ctx.session_id else shown


def _when(at: float) -> str:
    import time

    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))


def _said(query: str | None) -> bool:
    return bool(query and query.strip())
