"""Tells a client that something is another than what it knows, in the way of its era."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
from mcp.server.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp_types import (
    PromptListChangedNotification,
    ResourceListChangedNotification,
    ResourceUpdatedNotification,
    ResourceUpdatedNotificationParams,
    ToolListChangedNotification,
)

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


async def resources_changed(session: Session, ctx: Context | None = None) -> None:
    """Tell a client that there is more to read."""
    await session.bus.publish(ResourcesListChanged())
    if session.link is not None:
        await _told(session.link, ResourceListChangedNotification(), ctx)


async def prompts_changed(session: Session, ctx: Context | None = None) -> None:
    """Tell a client that there are other prompts."""
    await session.bus.publish(PromptsListChanged())
    if session.link is not None:
        await _told(session.link, PromptListChangedNotification(), ctx)


async def changed_meanwhile(session: Session, ctx: Context | None = None) -> None:
    """Tell a client of whatever its lists hold now that they did not when it was last told."""
    if session.offering.changed():
        await tools_changed(session, ctx)
    if session.offering.prompts_changed():
        await prompts_changed(session, ctx)
    if session.offering.resources_changed():
        await resources_changed(session, ctx)


async def resource_updated(session: Session, uri: str) -> None:
    """Tell a client that what it watches is another."""
    await session.bus.publish(ResourceUpdated(uri=uri))
    if session.link is not None:
        params = ResourceUpdatedNotificationParams(uri=uri)
        await _told(session.link, ResourceUpdatedNotification(params=params), None)


async def _told(link: ServerSession, notification: Any, ctx: Context | None) -> None:
    try:
        if ctx is None:
            await link.send_notification(notification)
        else:
            await ctx.session.send_notification(notification, related_request_id=ctx.request_id)
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        log.info("a client has gone before it could be told of a change")
