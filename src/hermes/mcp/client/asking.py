"""Asking a connected server what it has, to the last page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from hermes.core.jsontext import to_json
from hermes.mcp.client.listing import MOST_TOOLS, TROUBLE, Listing, launch_digest
from hermes.mcp.client.paging import pages

if TYPE_CHECKING:
    from typing import Any

    import mcp_types as types

    from hermes.mcp.client.settings import Server
    from hermes.mcp.client.wire import Wire
    from mcp import Client

# How many tools are looked at, to find those that are wanted; and how much they may say: one of
# them, and all that are kept.
_MOST_LISTED = 20_000
_MOST_CHARS = 256_000
_MOST_CHARS_IN_ALL = 16_000_000


async def listing_of(client: Client, wire: Wire, server: Server) -> Listing:
    """What the server says it has: its tools as it wrote them, odd ones too."""
    capabilities = client.server_capabilities
    tools: list[Any] = []
    wire.take_tools()
    known: set[str] = set()
    async for page in pages(client.list_tools, _MOST_LISTED if capabilities.tools else 0):
        tools += wire.take_tools()
        known |= {tool.name for tool in page.tools}
        if len(tools) >= _MOST_LISTED:
            break
    # What a tool promises of its results is looked at by us, and never a reason to lose one.
    client.session.validate_tool_result = _nothing_wrong  # type: ignore[method-assign]
    info = client.server_info
    kept = _kept(tools, server)
    return Listing(
        launch_digest(server),
        [_marked(tool, known) for tool in kept],
        beyond=len(tools) - len(kept),
        resources=capabilities.resources is not None,
        prompts=capabilities.prompts is not None,
        legacy=client.protocol_version not in MODERN_PROTOCOL_VERSIONS,
        instructions=client.instructions or "",
        version=f"{info.name} {info.version}" if info is not None else "",
    )


def _kept(tools: list[Any], server: Server) -> list[Any]:
    """As many of a server's tools as it may have, those first that the settings want."""
    if len(tools) > MOST_TOOLS:
        wanted = [tool for tool in tools if isinstance(tool, dict) and _is_wanted(tool, server)]
        tools = wanted[:MOST_TOOLS]
    kept = []
    left = _MOST_CHARS_IN_ALL
    for tool in tools:
        size = len(to_json(tool))
        if size > _MOST_CHARS and isinstance(tool, dict):
            name = tool.get("name")
            tool = {"name": name, TROUBLE: f"its definition has {size} characters"}
            size = 0
        left -= size
        if left < 0:
            break
        kept.append(tool)
    return kept


def _is_wanted(tool: dict[str, Any], server: Server) -> bool:
    name = tool.get("name")
    return isinstance(name, str) and server.wants(name)


def _marked(tool: Any, known: set[str]) -> Any:
    """A tool that the SDK left out: it names headers that can't be sent, so it can't be called."""
    name = tool.get("name") if isinstance(tool, dict) else None
    if isinstance(name, str) and name and name not in known:
        return {**tool, TROUBLE: "x-mcp-header names what can't be a header"}
    return tool


async def _nothing_wrong(name: str, result: types.CallToolResult) -> None:
    """In place of the SDK's check, which would throw a usable result away."""
