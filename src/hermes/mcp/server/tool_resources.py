"""Resource tools: the tools of the toolset `resources`, each with a URI."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    EmbeddedResource,
    ImageContent,
    Resource,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
)

from hermes.mcp.server.content import result_of, title_of
from hermes.mcp.untrusted_text import valid_unicode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes.core.entry import ToolEntry, ToolOutcome

TOOLSET = "resources"
ADDRESS = "x-mcp-uri"
_PLACE = re.compile(r"\{(\w+)\}")


def is_resource(entry: ToolEntry) -> bool:
    """Whether a tool is offered as something to read, and not as a tool."""
    return entry.toolset == TOOLSET and entry.effect == "read"


def address_of(entry: ToolEntry) -> str:
    """Where it is read, with a `{place}` for each of its parameters."""
    said = entry.parameters.get(ADDRESS)
    if isinstance(said, str) and said:
        return said
    places = "".join(f"/{{{name}}}" for name in entry.parameters.get("properties", {}))
    return f"hermes://resource/{entry.name}{places}"


def listed(entries: Iterable[ToolEntry]) -> list[Resource]:
    """Those that are read as they are."""
    return [
        Resource(
            uri=address_of(entry),
            name=entry.name,
            title=title_of(entry),
            description=valid_unicode(entry.description),
        )
        for entry in entries
        if not _PLACE.search(address_of(entry))
    ]


def templates(entries: Iterable[ToolEntry]) -> list[ResourceTemplate]:
    """The resource tools with variables in their URI."""
    return [
        ResourceTemplate(
            uri_template=address_of(entry),
            name=entry.name,
            title=title_of(entry),
            description=valid_unicode(entry.description),
        )
        for entry in entries
        if _PLACE.search(address_of(entry))
    ]


def found(entries: Iterable[ToolEntry], uri: str) -> tuple[ToolEntry, dict[str, str]] | None:
    """The resource tool of a URI, and the values of its variables."""
    for entry in entries:
        pieces = _PLACE.split(address_of(entry))
        # Every second piece is the name of a place.
        names, texts = pieces[1::2], pieces[::2]
        match = re.fullmatch("([^/?#]+)".join(map(re.escape, texts)), uri)
        if match is not None:
            return entry, dict(zip(names, map(unquote, match.groups()), strict=True))
    return None


def contents(outcome: ToolOutcome, uri: str) -> list[TextResourceContents | BlobResourceContents]:
    """The contents of a resource, from the outcome of its call."""
    made: list[TextResourceContents | BlobResourceContents] = []
    for block in result_of(outcome).content:
        if isinstance(block, TextContent):
            kind = "application/json" if block.text[:1] in ("{", "[") else "text/plain"
            made.append(TextResourceContents(uri=uri, text=block.text, mime_type=kind))
        elif isinstance(block, (ImageContent, AudioContent)):
            made.append(BlobResourceContents(uri=uri, blob=block.data, mime_type=block.mime_type))
        elif isinstance(block, EmbeddedResource):
            made.append(block.resource)
    return made
