"""Resource and prompt tools: one tool each for the resources and the prompts of a server."""

from __future__ import annotations

from hermes.core.entry import ToolEntry
from hermes.core.result import ToolResult
from hermes.core.wire_names import tool_name, toolset_name
from hermes.mcp.client.registration import aliases_of

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from hermes.core.context import ToolContext
    from hermes.mcp.client.listing import Listing
    from hermes.mcp.client.registration import Invoke, Offering
    from hermes.mcp.client.servers import Servers
    from hermes.mcp.client.settings import Server

_MOST = 200
_RESOURCE = {
    "type": "object",
    "properties": {
        "uri": {"type": "string", "description": "Which one; left out, they are listed."}
    },
}
_PROMPT = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "Which one; left out, they are listed."},
        "arguments": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}


def with_reach(found: Offering, server: Server, listing: Listing, servers: Servers) -> None:
    """Add the two tools, for a server that has what they reach."""
    if listing.resources and server.wants("read_resource"):
        said = f"List or read the resources of the server {server.name}."
        _add(found, server, "read_resource", said, _RESOURCE, _resources(servers, server))
    if listing.prompts and server.wants("get_prompt"):
        said = f"List the prompts of the server {server.name}, or get one."
        _add(found, server, "get_prompt", said, _PROMPT, _prompts(servers, server))


def _add(
    found: Offering,
    server: Server,
    key: str,
    description: str,
    schema: dict[str, Any],
    invoke: Invoke,
) -> None:
    if key in found.entries:
        # The server has a tool of that name itself.
        return
    name = tool_name(server.name, key)
    found.entries[key] = ToolEntry(
        name,
        toolset_name(server.name),
        schema,
        _elsewhere,
        invoke=invoke,
        is_async=True,
        description=description,
        emoji="🔌",
        aliases=aliases_of(name),
        permissions=(f"mcp:{server.name}:{key}",),
        effect="read",
        tags=(server.name,),
        origin="mcp",
        owner=server.name,
    )


async def _elsewhere() -> None:
    """Stands where a handler would: calls go through `invoke`."""


def _resources(servers: Servers, server: Server) -> Invoke:
    async def read(client: Any, uri: str) -> Any:
        from hermes.mcp.client.results import resource_of

        found = await client.read_resource(uri)
        parts = [resource_of(one.model_dump(by_alias=True, mode="json")) for one in found.contents]
        return parts[0] if len(parts) == 1 else parts

    async def everything(client: Any) -> ToolResult:
        plain, cut = await _listed(client.list_resources, "resources")
        templates, more = await _listed(client.list_resource_templates, "resource_templates")
        found = {"resources": [_named(one, "uri") for one in plain]}
        if templates:
            found["templates"] = [_named(one, "uriTemplate") for one in templates]
        return ToolResult(found, notes=[*cut, *more])

    async def invoke(arguments: dict[str, Any], context: ToolContext) -> Any:
        uri = arguments.get("uri")
        what = f"the resource {uri}" if uri else "the list of resources"

        async def work(client: Any) -> Any:
            return await (read(client, uri) if uri else everything(client))

        return await _through(servers, server.name, work, what, context)

    return invoke


def _prompts(servers: Servers, server: Server) -> Invoke:
    async def get(client: Any, name: str, arguments: dict[str, str]) -> Any:
        from hermes.mcp.client.results import part_of

        found = await client.get_prompt(name, arguments or None)
        return [
            {
                "role": one.role,
                "content": part_of(one.content.model_dump(by_alias=True, mode="json")),
            }
            for one in found.messages
        ]

    async def everything(client: Any) -> ToolResult:
        plain, cut = await _listed(client.list_prompts, "prompts")
        found = [
            {
                **_named(one, "name"),
                "arguments": [argument.name for argument in one.arguments or ()],
            }
            for one in plain
        ]
        return ToolResult(found, notes=cut)

    async def invoke(arguments: dict[str, Any], context: ToolContext) -> Any:
        name = arguments.get("name")
        what = f"the prompt {name}" if name else "the list of prompts"

        async def work(client: Any) -> Any:
            if not name:
                return await everything(client)
            return await get(client, name, arguments.get("arguments") or {})

        return await _through(servers, server.name, work, what, context)

    return invoke


async def _through(
    servers: Servers, name: str, work: Callable[[Any], Any], what: str, context: ToolContext
) -> Any:
    from hermes.mcp.client.server_requests import Behalf

    behalf = Behalf(context)
    return await servers.through(name, lambda link: link.use(work, what, behalf))


async def _listed(ask: Any, what: str) -> tuple[list[Any], list[str]]:
    """The items of a paged list, up to a limit; and a remark where there are more."""
    from mcp_types import METHOD_NOT_FOUND

    from hermes.mcp.client.tool_list import pages
    from mcp import MCPError

    found: list[Any] = []
    try:
        async for page in pages(ask, _MOST + 1):
            found += getattr(page, what)
            if len(found) > _MOST:
                kind = what.replace("_", " ")
                return found[:_MOST], [f"only the first {_MOST} {kind} are shown; there are more"]
    except MCPError as error:
        if error.error.code != METHOD_NOT_FOUND:
            raise
    return found, []


def _named(one: Any, key: str) -> dict[str, Any]:
    from hermes.mcp.untrusted_text import plain

    said = one.model_dump(by_alias=True, mode="json")
    return {
        name: plain(said[name], 500)
        for name in dict.fromkeys((key, "name", "description", "mimeType"))
        if said.get(name)
    }
