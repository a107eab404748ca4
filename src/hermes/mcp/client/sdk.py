"""The one place where the SDK comes in: connections are made from here, when first wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.requirements import require
from hermes.mcp.client.journal import Journal

if TYPE_CHECKING:
    from hermes.mcp.client.link import Link
    from hermes.mcp.client.servers import Servers


def links(servers: Servers) -> list[Link]:
    """A connection for each server that can be used; raises when the SDK is not installed."""
    require("mcp", extra="mcp")
    import logging

    from hermes.mcp.client.link import Link

    for name in ("mcp", "client"):
        # What the SDK has to say of a server's mistakes would be printed into whatever is on the
        # screen; it is told with the call, or in the server's log.
        if not logging.getLogger(name).handlers:
            logging.getLogger(name).addHandler(logging.NullHandler())

    made = []
    for known in servers.known.values():
        if known.server.problem or not known.server.enabled:
            continue
        known.link = Link(
            known.server,
            Journal(known.server.name),
            project=servers.project,
            settings=servers.settings,
            legacy=known.listing is not None and known.listing.legacy,
            on_state=servers.note_state,
            on_listing=servers.note_listing,
        )
        made.append(known.link)
    return made
