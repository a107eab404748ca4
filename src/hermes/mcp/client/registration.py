"""Registration: tools of a server checked one by one, named and put into the registry.

A tool that can't be used is quarantined alone, with the reason. The annotations of a tool may only
make us more careful: a tool without annotations may do anything. A server with resources or prompts
gets one tool for each of the two.
"""

from __future__ import annotations

from hermes.core.availability import Requirement
from hermes.core.entry import ToolEntry, ToolResult
from hermes.core.errors import HermesError
from hermes.core.wire_names import tool_name, toolset_name, wire_name
from hermes.mcp.client.listing import MAX_TOOLS, PROBLEM
from hermes.mcp.client.pins import tool_key
from hermes.mcp.schemas import repair_schema
from hermes.mcp.untrusted_text import clean, tool_description

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from hermes.core.context import ToolContext
    from hermes.core.entry import Effect
    from hermes.core.registry import ToolRegistry
    from hermes.mcp.client.listing import Listing
    from hermes.mcp.client.pins import Pin
    from hermes.mcp.client.servers import Servers
    from hermes.mcp.client.settings import Server


if TYPE_CHECKING:
    Invoke = Callable[[dict[str, Any], ToolContext], Any]

# Parameter names that mark a command, path or URL; the gate checks such values.
_COMMANDS = frozenset(("command", "cmd", "commands", "shell_command", "command_line", "bash"))
_PATHS = frozenset(
    ("path", "paths", "file", "files", "filename", "filepath", "directory", "dir", "folder",
     "source", "destination", "root")
)  # fmt: skip
_PATH_ENDS = ("_path", "_paths", "_file", "_dir", "_directory", "_folder", "path", "filename")
_RELAUNCHED = "the server's command or address changed since it was approved"
_URLS = frozenset(("url", "urls", "uri", "endpoint", "webhook"))


class Suspended(Requirement):
    """`check_fn` of a tool whose definition has to be approved again."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        super().__init__()
        self.reason = reason

    def missing(self) -> str | None:
        """The reason."""
        return self.reason


class CheckedTools:
    """The tools of a listing: usable, suspended and quarantined ones, with reasons."""

    __slots__ = ("entries", "notes", "quarantined", "suspended")

    def __init__(self) -> None:
        self.entries: dict[str, ToolEntry] = {}
        self.suspended: dict[str, str] = {}
        self.quarantined: dict[str, str] = {}
        self.notes: dict[str, list[str]] = {}


def check_listing(
    server: Server,
    listing: Listing,
    pin: Pin | None,
    invoke: Callable[[str, Any], Invoke],
    *,
    checked_before: bool = False,
) -> CheckedTools:
    """Check each tool of a listing and make its registry entry.

    Args:
        invoke: Makes the function that calls a tool, from its name and output schema.
        checked_before: The listing comes from the cache, so its schemas compile.
    """
    tools = CheckedTools()
    seen: set[str] = set()
    names: set[str] = set()
    relaunched = pin is not None and not pin.launched_as(server)
    if listing.beyond:
        tools.quarantined[f"({listing.beyond} more)"] = (
            f"a server may have {MAX_TOOLS} tools, or 16 MB of them; `include` says which"
        )
    for index, tool in enumerate(listing.tools):
        key = tool_key(tool)
        shown = clean(key, 100) or f"(the tool at place {index + 1})"
        if not key:
            tools.quarantined[shown] = "it has no name"
        elif PROBLEM in tool:
            tools.quarantined[shown] = clean(tool[PROBLEM], 200)
        elif key in seen:
            tools.quarantined[f"{shown} (again)"] = "another tool of the server has the same name"
        elif server.includes(key):
            seen.add(key)
            if shown in tools.entries:
                # Two long names with the same start.
                shown = f"{shown} ({index + 1})"
            try:
                schema = repair_schema(tool.get("inputSchema"), checked_before=checked_before)
                reason = _RELAUNCHED if relaunched else pin.objection(tool) if pin else ""
                if reason:
                    tools.suspended[key] = reason
                if schema.notes:
                    tools.notes[key] = schema.notes
                call = invoke(key, tool.get("outputSchema"))
                entry = _entry(server, key, tool, schema.schema, reason, call)
                if entry.name in names:
                    raise HermesError(f"another tool of the server is called {entry.name} here")
                names.add(entry.name)
                tools.entries[shown] = entry
            except HermesError as error:
                tools.quarantined[shown] = str(error)
    return tools


def _entry(
    server: Server,
    key: str,
    tool: dict[str, Any],
    schema: dict[str, Any],
    reason: str,
    invoke: Invoke,
) -> ToolEntry:
    annotations = tool.get("annotations")
    if reason:
        reason += f"; `hermes mcp diff {server.name}`, then `hermes mcp approve {server.name}`"
    name = tool_name(server.name, key)
    effect = effect_of(annotations if isinstance(annotations, dict) else {})
    return ToolEntry(
        name,
        toolset_name(server.name),
        schema,
        _no_handler,
        invoke=invoke,
        is_async=True,
        check_fn=Suspended(reason) if reason else None,
        description=tool_description(tool, server.name),
        emoji="🔌",
        aliases=wire_aliases(name),
        permissions=(f"mcp:{server.name}:{key}",),
        effect=effect,
        acts=_effects_function(schema, reads=effect == "read"),
        tags=(server.name, *clean(tool.get("title"), 60).split()),
        origin="mcp",
        owner=server.name,
    )


def wire_aliases(name: str) -> tuple[str, ...]:
    """The name for model APIs, if it differs."""
    alias = wire_name(name)
    return (alias,) if alias != name else ()


async def _no_handler() -> None:
    """Calls go through `invoke`."""


def effect_of(annotations: Mapping[str, Any]) -> Effect:
    """The effect of a tool by its annotations; `execute` without any."""
    if annotations.get("readOnlyHint") is True:
        return "network" if annotations.get("openWorldHint") is True else "read"
    return "write" if annotations.get("destructiveHint") is False else "execute"


def _effects_function(schema: Mapping[str, Any], *, reads: bool) -> Callable[..., Any] | None:
    """A function that lists the commands, paths and URLs of a call for the gate; or None."""
    kinds: dict[str, str] = {}
    for name, field in schema.get("properties", {}).items():
        if not isinstance(field, dict) or field.get("type") not in ("string", "array", None):
            continue
        key = name.lower().replace("-", "_")
        if key in _COMMANDS:
            kinds[name] = "execute"
        elif key in _URLS or key.endswith(("_url", "_uri")):
            kinds[name] = "fetch"
        elif key in _PATHS or key.endswith(_PATH_ENDS):
            kinds[name] = "read" if reads else "write"
    if not kinds:
        return None

    def effects(arguments: Mapping[str, Any], context: ToolContext) -> list[tuple[str, str]]:
        pairs = []
        for name, kind in kinds.items():
            value = arguments.get(name)
            for text in value if isinstance(value, list) else [value]:
                if not isinstance(text, str) or not text:
                    continue
                is_url = text.lower().startswith(("http://", "https://"))
                if is_url or kind != "fetch":
                    pairs.append(("fetch" if is_url and kind != "execute" else kind, text))
        # A call that changes something asks anyway: only effects that are refused matter.
        return pairs if reads else [pair for pair in pairs if _is_refused(*pair, context)]

    return effects


def _is_refused(kind: str, value: str, context: ToolContext) -> bool:
    import os

    home = os.path.expanduser("~")
    if kind == "execute":
        from hermes.safety.shell import detect_dangerous_command

        return detect_dangerous_command(value, cwd=context.cwd, home=home).action == "refuse"
    if kind == "fetch":
        return False
    from hermes.safety.paths import check_path

    rules = {"allow_read": ["/**"], "allow_write": ["/**"], "deny": []}
    return not check_path(value, "write", rules=rules, cwd=context.workspace, home=home).allowed


def register(registry: ToolRegistry, before: CheckedTools | None, now: CheckedTools) -> bool:
    """Bring the registry from one listing to the next; whether anything changed.

    An unchanged tool keeps its entry and all that is computed for it; a running call ends with the
    entry it started with.
    """
    changed = False
    old = {} if before is None else before.entries
    kept = {entry.name for entry in now.entries.values()}
    for entry in old.values():
        if entry.name not in kept:
            changed = registry.deregister(entry.name) or changed
    for key, entry in list(now.entries.items()):
        previous = old.get(key)
        if (
            previous is not None
            and _is_same(previous, entry)
            and registry.get(previous.name) is previous
        ):
            now.entries[key] = previous
            continue
        try:
            now.entries[key] = registry.add(entry)
            changed = True
        except HermesError as error:
            del now.entries[key]
            now.quarantined[key] = str(error)
    return changed


def _is_same(left: ToolEntry, right: ToolEntry) -> bool:
    return (
        left.name == right.name
        and left.description == right.description
        and left.parameters == right.parameters
        and left.effect == right.effect
        and getattr(left.check_fn, "reason", "") == getattr(right.check_fn, "reason", "")
    )


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
