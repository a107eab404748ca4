"""Tells a client that a list is another than the one it knows, in the way of its era."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
from mcp.server.subscriptions import ResourcesListChanged, ToolsListChanged
from mcp_types import ResourceListChangedNotification, ToolListChangedNotification

from hermes.core.log import Log

if TYPE_CHECKING:
    from typing import Any

    from mcp.server.session import ServerSession

    from hermes.mcp.server.sessions import Context, Session

log = Log("hermes.mcp")


async def tools_changed(session: Session, ctx: Context | None = None) -> None:
    """Tell a client that its list of tools is another, on the stream of `ctx` where it can be."""
    await session.bus.publish(ToolsListChanged())
    if session.link is not None:
        await _told(session.link, ToolListChangedNotification(), ctx)


async def resources_changed(session: Session, ctx: Context) -> None:
    """Tell a client that there is more to read."""
    await session.bus.publish(ResourcesListChanged())
    if session.link is not None:
        await _told(session.link, ResourceListChangedNotification(), ctx)


async def _told(link: ServerSession, notification: Any, ctx: Context | None) -> None:
    try:
        if ctx is None:
            await link.send_notification(notification)
        else:
            await ctx.session.send_notification(notification, related_request_id=ctx.request_id)
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        log.info("a client has gone before it could be told of a change")
