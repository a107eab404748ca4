"""Asking a connected server what it has, to the last page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from hermes.mcp.client.listing import MOST_TOOLS, Listing, launch_digest

if TYPE_CHECKING:
    from typing import Any

    import mcp_types as types

    from hermes.mcp.client.settings import Server
    from hermes.mcp.client.wire import Wire
    from mcp import Client

_PAGES = 100


async def listing_of(client: Client, wire: Wire, server: Server) -> Listing:
    """What the server says it has: its tools as it wrote them, odd ones too."""
    capabilities = client.server_capabilities
    tools: list[Any] = []
    wire.take_tools()
    cursor: str | None = None
    known: set[str] = set()
    for _ in range(_PAGES if capabilities.tools is not None else 0):
        page = await client.list_tools(cursor=cursor)
        tools += wire.take_tools()
        known |= {tool.name for tool in page.tools}
        cursor = page.next_cursor
        if not cursor or len(tools) >= MOST_TOOLS:
            break
    # What a tool promises of its results is looked at by us, and never a reason to lose one.
    client.session.validate_tool_result = _nothing_wrong  # type: ignore[method-assign]
    info = client.server_info
    return Listing(
        launch_digest(server),
        [_marked(tool, known) for tool in tools[:MOST_TOOLS]],
        resources=capabilities.resources is not None,
        prompts=capabilities.prompts is not None,
        legacy=client.protocol_version not in MODERN_PROTOCOL_VERSIONS,
        instructions=client.instructions or "",
        version=f"{info.name} {info.version}" if info is not None else "",
    )


def _marked(tool: Any, known: set[str]) -> Any:
    """A tool that the SDK left out: it names headers that can't be sent, so it can't be called."""
    name = tool.get("name") if isinstance(tool, dict) else None
    if isinstance(name, str) and name and name not in known:
        return {**tool, "inputSchema": "x-mcp-header names what can't be a header"}
    return tool


async def _nothing_wrong(name: str, result: types.CallToolResult) -> None:
    """In place of the SDK's check, which would throw a usable result away."""
