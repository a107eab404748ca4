"""Call results: content blocks of a server as a `ToolResult`, checked against the output schema."""

from __future__ import annotations

import base64
import hashlib
from itertools import islice
from typing import Any

from hermes.core.entry import ToolResult
from hermes.core.paths import home_path, write_private

_SUFFIXES = {
    "image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp",
    "image/svg+xml": ".svg", "audio/wav": ".wav", "audio/mpeg": ".mp3", "audio/ogg": ".ogg",
    "application/pdf": ".pdf",
}  # fmt: skip


def tool_result(answer: dict[str, Any], schema: Any) -> ToolResult:
    """A result of the protocol, after `sdk_compat.repair_result`, as one of Hermes.

    An error keeps all its content. Content that violates the tool's output schema is kept, with a
    note.
    """
    parts = [content_part(block) for block in answer["content"]]
    texts = [part for part in parts if isinstance(part, str)]
    others = [part for part in parts if not isinstance(part, str)]
    text = "\n".join(texts)
    structured = answer.get("structuredContent")
    more: dict[str, Any] = {"content": others} if others else {}
    if answer.get("isError"):
        error_text = text or "the server says that it failed, and not why"
        return ToolResult(structured, error=error_text, **more)
    if structured is None:
        notes = ["the server promised structured content and sent none"] if schema else []
        return ToolResult(text if texts or not others else None, notes=notes, **more)
    if text and not _is_repetition(text, structured):
        more["text"] = text
    return ToolResult(structured, notes=_schema_violations(structured, schema), **more)


def content_part(block: dict[str, Any]) -> Any:
    """A content block: text as text, binary data as a file, the rest as it is."""
    kind = block.get("type")
    if kind == "text":
        return block["text"]
    if kind in ("image", "audio"):
        return {"type": kind, **_save(block["data"], block["mimeType"])}
    if kind == "resource":
        return {"type": "resource", **resource_part(block["resource"])}
    kept = ("type", "uri", "name", "title", "description", "mimeType", "size")
    return {name: block[name] for name in kept if block.get(name) is not None}


def resource_part(resource: dict[str, Any]) -> dict[str, Any]:
    """The content of a resource; binary data as a file."""
    header = {name: resource[name] for name in ("uri", "mimeType") if resource.get(name)}
    if resource.get("text") is not None:
        return {**header, "text": resource["text"]}
    return {**header, **_save(resource.get("blob") or "", resource.get("mimeType") or "")}


def _schema_violations(value: Any, schema: Any) -> list[str]:
    if not isinstance(schema, dict):
        return []
    import jsonschema_rs

    try:
        validator = jsonschema_rs.validator_for(schema)
        messages = [error.message for error in islice(validator.iter_errors(value), 3)]
    except (ValueError, TypeError, jsonschema_rs.ValidationError):
        # An invalid schema checks nothing.
        return []
    return [f"not as the tool's output schema has it: {message[:200]}" for message in messages]


def _is_repetition(text: str, structured: Any) -> bool:
    """Whether a text repeats the structured content, as servers do for older clients."""
    import json

    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    inner = [*structured.values()] if isinstance(structured, dict) and len(structured) == 1 else []
    return bool(value == structured or inner in ([value], [text]))


def _save(data: str, kind: str) -> dict[str, Any]:
    try:
        content = base64.b64decode(data, validate=False)
    except ValueError:
        return {"mimeType": kind, "trouble": "its data could not be read"}
    name = hashlib.sha256(content).hexdigest()[:24] + _SUFFIXES.get(kind, ".bin")
    path = home_path("cache", "mcp", "files", name)
    try:
        write_private(path, content)
    except OSError as error:
        return {"mimeType": kind, "bytes": len(content), "trouble": f"not kept: {error.strerror}"}
    return {"mimeType": kind, "bytes": len(content), "path": path}
