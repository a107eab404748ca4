"""A tool as the protocol describes it: name, title, schema, and hints on what it may change."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from mcp_types import ListToolsResult, Tool, ToolAnnotations, methods
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

from hermes.core.jsontext import to_json
from hermes.core.log import Log
from hermes.mcp.naming import wire_name
from hermes.mcp.texts import whole, whole_value

if TYPE_CHECKING:
    from typing import Any

    from hermes.core.entry import ToolEntry

log = Log("hermes.mcp")


def described(entry: ToolEntry, function: dict[str, Any]) -> Tool | None:
    """The tool with the schema and description that this conversation is offered.

    None where the protocol can't describe it: one odd tool must not cost a client all the others.
    """
    try:
        tool = Tool(
            name=wire_name(entry.name),
            title=title_of(entry),
            description=whole(str(function["description"])),
            input_schema=whole_value(json.loads(to_json(function["parameters"]))),
            annotations=annotations_of(entry),
        )
        result = ListToolsResult(tools=[tool]).model_dump(by_alias=True, exclude_none=True)
        for version in (LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION):
            methods.serialize_server_result("tools/list", version, result)
    except (ValueError, TypeError, RecursionError) as error:
        log.warning("%s can't be offered over MCP: %s", entry.name, error)
        return None
    return tool


def title_of(entry: ToolEntry) -> str:
    """The name for people: `📖 Read file`."""
    words = entry.name.rpartition(":")[2].replace("_", " ").replace("-", " ").strip()
    words = words[:1].upper() + words[1:]
    return whole(f"{entry.emoji} {words}".strip())


def annotations_of(entry: ToolEntry) -> ToolAnnotations:
    """Hints from the effect; what is not known to be harmless is said to be destructive."""
    reads = entry.effect == "read"
    return ToolAnnotations(
        read_only_hint=reads,
        # A message adds to the world and takes nothing away; the others may do both.
        destructive_hint=not reads and entry.effect != "message",
        idempotent_hint=reads,
        open_world_hint=entry.effect in ("network", "message", "execute"),
    )
