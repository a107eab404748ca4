"""Resource and prompt tools: one tool each for the resources and the prompts of a server."""

from __future__ import annotations

from hermes.core.entry import ToolEntry, ToolResult
from hermes.core.wire_names import tool_name, toolset_name
from hermes.mcp.client.registration import wire_aliases

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from hermes.core.context import ToolContext
    from hermes.mcp.client.listing import Listing
    from hermes.mcp.client.registration import CheckedTools, Invoke
    from hermes.mcp.client.servers import Servers
    from hermes.mcp.client.settings import Server

_MAX_ITEMS = 200
_RESOURCE_SCHEMA = {
    "type": "object",
    "properties": {
        "uri": {"type": "string", "description": "Which one; left out, they are listed."}
    },
}
_PROMPT_SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "Which one; left out, they are listed."},
        "arguments": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}


def add_resource_tools(
    tools: CheckedTools, server: Server, listing: Listing, servers: Servers
) -> None:
    """Add `read_resource` and `get_prompt` for a server that has resources or prompts."""
    if listing.resources and server.includes("read_resource"):
        text = f"List or read the resources of the server {server.name}."
        _add(tools, server, "read_resource", text, _RESOURCE_SCHEMA, _resources(servers, server))
    if listing.prompts and server.includes("get_prompt"):
        text = f"List the prompts of the server {server.name}, or get one."
        _add(tools, server, "get_prompt", text, _PROMPT_SCHEMA, _prompts(servers, server))


def _add(
    tools: CheckedTools,
    server: Server,
    key: str,
    description: str,
    schema: dict[str, Any],
    invoke: Invoke,
) -> None:
    if key in tools.entries:
        # The server has a tool of that name itself.
        return
    name = tool_name(server.name, key)
    tools.entries[key] = ToolEntry(
        name,
        toolset_name(server.name),
        schema,
        _no_handler,
        invoke=invoke,
        is_async=True,
        description=description,
        emoji="🔌",
        aliases=wire_aliases(name),
        permissions=(f"mcp:{server.name}:{key}",),
        effect="read",
        tags=(server.name,),
        origin="mcp",
        owner=server.name,
    )


async def _no_handler() -> None:
    """Calls go through `invoke`."""


def _resources(servers: Servers, server: Server) -> Invoke:
    async def read(client: Any, uri: str) -> Any:
        from hermes.mcp.client.results import resource_part

        answer = await client.read_resource(uri)
        parts = [
            resource_part(content.model_dump(by_alias=True, mode="json"))
            for content in answer.contents
        ]
        return parts[0] if len(parts) == 1 else parts

    async def list_all(client: Any) -> ToolResult:
        resources, cut = await _fetch_all(client.list_resources, "resources")
        templates, more = await _fetch_all(client.list_resource_templates, "resource_templates")
        value = {"resources": [_summary(resource, "uri") for resource in resources]}
        if templates:
            value["templates"] = [_summary(template, "uriTemplate") for template in templates]
        return ToolResult(value, notes=[*cut, *more])

    async def invoke(arguments: dict[str, Any], context: ToolContext) -> Any:
        uri = arguments.get("uri")
        label = f"the resource {uri}" if uri else "the list of resources"

        async def work(client: Any) -> Any:
            return await (read(client, uri) if uri else list_all(client))

        return await _use(servers, server.name, work, label, context)

    return invoke


def _prompts(servers: Servers, server: Server) -> Invoke:
    async def get(client: Any, name: str, arguments: dict[str, str]) -> Any:
        from hermes.mcp.client.results import content_part

        answer = await client.get_prompt(name, arguments or None)
        return [
            {
                "role": message.role,
                "content": content_part(message.content.model_dump(by_alias=True, mode="json")),
            }
            for message in answer.messages
        ]

    async def list_all(client: Any) -> ToolResult:
        prompts, cut = await _fetch_all(client.list_prompts, "prompts")
        value = [
            {
                **_summary(prompt, "name"),
                "arguments": [argument.name for argument in prompt.arguments or ()],
            }
            for prompt in prompts
        ]
        return ToolResult(value, notes=cut)

    async def invoke(arguments: dict[str, Any], context: ToolContext) -> Any:
        name = arguments.get("name")
        label = f"the prompt {name}" if name else "the list of prompts"

        async def work(client: Any) -> Any:
            if not name:
                return await list_all(client)
            return await get(client, name, arguments.get("arguments") or {})

        return await _use(servers, server.name, work, label, context)

    return invoke


async def _use(
    servers: Servers, name: str, work: Callable[[Any], Any], label: str, context: ToolContext
) -> Any:
    from hermes.mcp.client.server_requests import Caller

    caller = Caller(context)
    return await servers.submit(name, lambda connection: connection.use(work, label, caller))


async def _fetch_all(request: Any, kind: str) -> tuple[list[Any], list[str]]:
    """The items of a paged list up to a limit, and a note when there are more."""
    from mcp_types import METHOD_NOT_FOUND

    from hermes.mcp.client.tool_list import pages
    from mcp import MCPError

    items: list[Any] = []
    try:
        async for page in pages(request, _MAX_ITEMS + 1):
            items += getattr(page, kind)
            if len(items) > _MAX_ITEMS:
                label = kind.replace("_", " ")
                note = f"only the first {_MAX_ITEMS} {label} are shown; there are more"
                return items[:_MAX_ITEMS], [note]
    except MCPError as error:
        if error.error.code != METHOD_NOT_FOUND:
            raise
    return items, []


def _summary(item: Any, key: str) -> dict[str, Any]:
    from hermes.mcp.untrusted_text import clean

    values = item.model_dump(by_alias=True, mode="json")
    return {
        name: clean(values[name], 500)
        for name in dict.fromkeys((key, "name", "description", "mimeType"))
        if values.get(name)
    }
