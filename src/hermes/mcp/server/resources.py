"""Large results as resources: what a session's calls left behind, readable whole.

Reading one is a call of `read_artifact`: the gate rules on it and the audit log has its line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio.to_thread
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from hermes.core.context import ToolContext
from hermes.core.entry import ToolCall
from hermes.core.errors import ToolError
from hermes.mcp.server.content import ARTIFACT, whole
from hermes.runtime.artifacts import PAGE

if TYPE_CHECKING:
    from hermes.mcp.server.sessions import Context, Session

# More than this is for `read_artifact`, page by page.
MOST_CHARS = 2_000_000
_NOT_FOUND = -32002


def listed(session: Session) -> ListResourcesResult:
    """The large results of this session, newest first."""
    return ListResourcesResult(
        resources=[
            Resource(
                uri=f"{ARTIFACT}{handle}",
                name=handle,
                title=f"The whole result of {tool}",
                mime_type="text/plain",
            )
            for handle, tool in reversed(session.artifacts.items())
        ]
    )


def templates() -> ListResourceTemplatesResult:
    """What the addresses of resources look like."""
    return ListResourceTemplatesResult(
        resource_templates=[
            ResourceTemplate(
                uri_template=f"{ARTIFACT}{{handle}}",
                name="artifact",
                title="A large result",
                description="A result that was too large to be sent whole, by its art_… handle.",
                mime_type="text/plain",
            )
        ]
    )


async def read(session: Session, uri: str, ctx: Context) -> ReadResourceResult:
    """The text of one resource."""
    handle = uri.removeprefix(ARTIFACT)
    if handle == uri or session.runtime.artifacts is None:
        raise _missing(f"there is no resource {uri[:200]!r}", uri, ctx)
    # Whatever this client is offered as a tool: what it was sent a link to, it may follow.
    services = {name: it for name, it in session.offering.services.items() if name != "offer"}
    outcome = await session.runtime.call(
        ToolCall("read_artifact", {"handle": handle}),
        ToolContext(task=session.task, session_id=session.id, front_door="mcp", services=services),
    )
    if not outcome.ok:
        raise _missing(str(outcome.error), uri, ctx)
    first = outcome.value
    text: str = first["text"]
    total: int = first["total_chars"]
    if total > MOST_CHARS:
        raise MCPError(
            INVALID_PARAMS,
            f"it has {total} characters, more than can be sent at once; page through it with"
            " the tool read_artifact",
        )
    if "next_offset" in first:
        text += await anyio.to_thread.run_sync(_rest, session, handle, first["next_offset"])
    return ReadResourceResult(
        contents=[TextResourceContents(uri=uri, text=whole(text), mime_type="text/plain")]
    )


def _rest(session: Session, handle: str, offset: int) -> str:
    assert session.runtime.artifacts is not None
    pieces = []
    following: int | None = offset
    while following is not None:
        try:
            page = session.runtime.artifacts.read(handle, offset=following, limit=PAGE)
        except ToolError as error:
            raise MCPError(INVALID_PARAMS, str(error)) from None
        pieces.append(page["text"])
        following = page.get("next_offset")
    return "".join(pieces)


def _missing(message: str, uri: str, ctx: Context) -> MCPError:
    modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
    return MCPError(INVALID_PARAMS if modern else _NOT_FOUND, message, {"uri": uri[:2000]})
