"""Conversion to protocol types: tool descriptions, call results, artifacts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from mcp_types import (
    CallToolResult,
    ListToolsResult,
    ResourceLink,
    TextContent,
    Tool,
    ToolAnnotations,
    methods,
)
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION
from pydantic import TypeAdapter, ValidationError

from hermes.core.json_text import to_json
from hermes.core.log import Log
from hermes.core.wire_names import wire_name
from hermes.mcp.untrusted_text import valid_unicode, valid_unicode_value

if TYPE_CHECKING:
    from typing import Any

    from mcp_types import ContentBlock

    from hermes.core.entry import ToolEntry, ToolOutcome


log = Log("hermes.mcp")


def described(entry: ToolEntry, function: dict[str, Any]) -> Tool | None:
    """The tool with the schema and description that this conversation is offered.

    None where the protocol can't describe it: one odd tool must not cost a client all the others.
    """
    try:
        tool = Tool(
            name=wire_name(entry.name),
            title=title_of(entry),
            description=valid_unicode(str(function["description"])),
            input_schema=valid_unicode_value(json.loads(to_json(function["parameters"]))),
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
    return valid_unicode(f"{entry.emoji} {words}".strip())


def annotations_of(entry: ToolEntry) -> ToolAnnotations:
    """Annotations from the effect; a tool that is not known to be harmless is destructive."""
    reads = entry.effect == "read"
    return ToolAnnotations(
        read_only_hint=reads,
        # A message adds to the world and takes nothing away; the others may do both.
        destructive_hint=not reads and entry.effect != "message",
        idempotent_hint=reads,
        open_world_hint=entry.effect in ("network", "message", "execute"),
    )


ARTIFACT = "hermes://artifact/"
_SHOWN = ("image", "audio")
_BLOCKS = ("text", "resource", "resource_link", *_SHOWN)
_KINDS = ("mimeType", "mime_type", "media_type")
# Values inside values: past this, programs that read JSON may give up.
_DEEP = 100
_HANDLE = '"artifact":"art_'
_block: Any = None


def result_of(outcome: ToolOutcome) -> CallToolResult:
    """The outcome of a call as the client gets it."""
    shown = outcome.content
    if _is_deep(shown):
        # As data it could not be sent; as text it can.
        return CallToolResult(
            content=[TextContent(text=valid_unicode(shown))], is_error=not outcome.ok
        )
    value = outcome.value
    if "\\ud" in shown or valid_unicode(shown) != shown:
        value = valid_unicode_value(value)
        shown = to_json(value)
    blocks = _only_blocks(value)
    if blocks is not None:
        value = None
    else:
        seen: list[ContentBlock] = []
        value = _without_pictures(value, seen)
        text = value if isinstance(value, str) else to_json(value) if seen else shown
        blocks = [TextContent(text=text), *seen]
    handle = artifact_of(outcome)
    if handle is not None:
        blocks.append(link(handle, outcome.name))
    return CallToolResult(
        content=blocks,
        structured_content=value if isinstance(value, dict) else None,
        is_error=not outcome.ok,
    )


def _is_deep(content: str) -> bool:
    """Whether values may be inside of each other too often; most have too few for that."""
    if content.count("[") + content.count("{") <= _DEEP:
        return False
    depth = deepest = 0
    for character in content:
        if character in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "]}":
            depth -= 1
    # Those in texts count as well: then it is sent as text only, which is no loss.
    return deepest > _DEEP


def artifact_of(outcome: ToolOutcome) -> str | None:
    """The handle of the whole, where a result, or the tool itself, kept more than it shows."""
    if outcome.artifact is not None:
        return outcome.artifact
    if _HANDLE not in outcome.content:
        return None
    value = outcome.value
    handle = value.get("artifact") if isinstance(value, dict) else None
    return handle if isinstance(handle, str) and handle.startswith("art_") else None


def link(handle: str, tool: str) -> ResourceLink:
    """Where the whole of a result is that was too large."""
    return ResourceLink(
        uri=f"{ARTIFACT}{handle}",
        name=handle,
        title=f"The whole result of {tool}",
        mime_type="text/plain",
    )


def _only_blocks(value: Any) -> list[ContentBlock] | None:
    """The blocks that a value is made of; None where it is anything else."""
    if isinstance(value, dict) and set(value) == {"content"}:
        value = value["content"]
    items = value if isinstance(value, list) else [value]
    if not items or not all(isinstance(i, dict) and i.get("type") in _BLOCKS for i in items):
        return None
    made = [_made(item) for item in items]
    return [block for block in made if block is not None] if all(made) else None


def _without_pictures(value: Any, seen: list[ContentBlock], depth: int = 0) -> Any:
    """The value with a note in place of each picture; those go to `seen`."""
    if isinstance(value, list) and depth < 3:
        return [_without_pictures(item, seen, depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get("type") in _SHOWN and (block := _made(value)) is not None:
        seen.append(block)
        kind = next(value[name] for name in _KINDS if name in value)
        return f"({value['type']} {len(seen)}: {kind})"
    if depth >= 3:
        return value
    return {key: _without_pictures(item, seen, depth + 1) for key, item in value.items()}


def _made(item: dict[str, Any]) -> ContentBlock | None:
    """The block that a value describes, if it does so rightly."""
    global _block
    if _block is None:
        from mcp_types import ContentBlock

        _block = TypeAdapter(ContentBlock)
    if item["type"] in _SHOWN:
        kind = next((item[name] for name in _KINDS if name in item), None)
        item = {"type": item["type"], "data": item.get("data"), "mimeType": kind}
    try:
        block: ContentBlock = _block.validate_python(item, by_name=False)
    except ValidationError:
        return None
    return block
