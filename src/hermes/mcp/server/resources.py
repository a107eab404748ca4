"""Resources a client can read: stored results of its calls, and resource tools."""

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
from hermes.mcp.server import offered_tools
from hermes.mcp.server.content import ARTIFACT
from hermes.mcp.untrusted_text import valid_unicode
from hermes.runtime.artifacts import PAGE

if TYPE_CHECKING:
    from hermes.core.entry import ToolOutcome
    from hermes.mcp.server.sessions import Context, Session

# More than this is for `read_artifact`, page by page.
MOST_CHARS = 2_000_000
_NOT_FOUND = -32002
# What the address of a large result looks like.
TEMPLATE = f"{ARTIFACT}{{handle}}"


def listed(session: Session) -> ListResourcesResult:
    """The resource tools, and the stored results of this session, newest first."""
    return ListResourcesResult(
        resources=[
            *offered_tools.listed(session.offering.resources()),
            *(
                Resource(
                    uri=f"{ARTIFACT}{handle}",
                    name=handle,
                    title=f"The whole result of {tool}",
                    mime_type="text/plain",
                )
                for handle, tool in reversed(session.artifacts.items())
            ),
        ]
    )


def templates(session: Session) -> ListResourceTemplatesResult:
    """The URI templates of resources."""
    return ListResourceTemplatesResult(
        resource_templates=[
            *offered_tools.templates(session.offering.resources()),
            ResourceTemplate(
                uri_template=TEMPLATE,
                name="artifact",
                title="A large result",
                description="A result that was too large to be sent whole, by its art_… handle.",
                mime_type="text/plain",
            ),
        ]
    )


async def read(session: Session, uri: str, ctx: Context) -> ReadResourceResult:
    """The text of one resource."""
    handle = uri.removeprefix(ARTIFACT)
    if handle == uri or session.runtime.artifacts is None:
        meant = offered_tools.resource_tool(session.offering.resources(), uri)
        if meant is None:
            raise _missing(f"there is no resource {uri[:200]!r}", uri, ctx)
        entry, arguments = meant
        outcome = await _called(session, ToolCall(entry.name, arguments), uri, ctx)
        return ReadResourceResult(contents=offered_tools.contents(outcome, uri))
    outcome = await _called(session, ToolCall("read_artifact", {"handle": handle}), uri, ctx)
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
        contents=[TextResourceContents(uri=uri, text=valid_unicode(text), mime_type="text/plain")]
    )


async def _called(session: Session, call: ToolCall, uri: str, ctx: Context) -> ToolOutcome:
    # Whatever this client is offered as a tool: what it was sent a link to, it may follow.
    services = session.offering.services.replace(offer=None)
    outcome = await session.runtime.call(
        call,
        ToolContext(task=session.task, session_id=session.id, front_door="mcp", services=services),
    )
    if not outcome.ok:
        raise _missing(str(outcome.error), uri, ctx)
    return outcome


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
