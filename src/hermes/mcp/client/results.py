"""Call results: content blocks of a server converted to a `ToolResult`, checked against the output
schema.
"""

from __future__ import annotations

import base64
import hashlib
from itertools import islice
from typing import Any

from hermes.core.home import home_path, write_private
from hermes.core.result import ToolResult

_ENDINGS = {
    "image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp",
    "image/svg+xml": ".svg", "audio/wav": ".wav", "audio/mpeg": ".mp3", "audio/ogg": ".ogg",
    "application/pdf": ".pdf",
}  # fmt: skip


def result_of(answer: dict[str, Any], schema: Any) -> ToolResult:
    """The answer of a tool, as the protocol writes it, mended (`mending.mend_result`).

    An error keeps all that came with it. What its own schema does not allow is delivered with a
    remark.
    """
    parts = [part_of(block) for block in answer["content"]]
    texts = [part for part in parts if isinstance(part, str)]
    others = [part for part in parts if not isinstance(part, str)]
    text = "\n".join(texts)
    structured = answer.get("structuredContent")
    more: dict[str, Any] = {"content": others} if others else {}
    if answer.get("isError"):
        said = text or "the server says that it failed, and not why"
        return ToolResult(structured, error=said, **more)
    if structured is None:
        notes = ["the server promised structured content and sent none"] if schema else []
        return ToolResult(text if texts or not others else None, notes=notes, **more)
    if text and not _same(text, structured):
        more["text"] = text
    return ToolResult(structured, notes=objections(structured, schema), **more)


def part_of(block: dict[str, Any]) -> Any:
    """One block: text as text, data as a file of ours, the rest as it is."""
    kind = block.get("type")
    if kind == "text":
        return block["text"]
    if kind in ("image", "audio"):
        return {"type": kind, **_saved(block["data"], block["mimeType"])}
    if kind == "resource":
        return {"type": "resource", **resource_of(block["resource"])}
    kept = ("type", "uri", "name", "title", "description", "mimeType", "size")
    return {name: block[name] for name in kept if block.get(name) is not None}


def resource_of(resource: dict[str, Any]) -> dict[str, Any]:
    """What a resource holds; bytes as a file of ours."""
    shown = {name: resource[name] for name in ("uri", "mimeType") if resource.get(name)}
    if resource.get("text") is not None:
        return {**shown, "text": resource["text"]}
    return {**shown, **_saved(resource.get("blob") or "", resource.get("mimeType") or "")}


def objections(value: Any, schema: Any) -> list[str]:
    """What a tool's own output schema says against what it sent."""
    if not isinstance(schema, dict):
        return []
    import jsonschema_rs

    try:
        validator = jsonschema_rs.validator_for(schema)
        found = [error.message for error in islice(validator.iter_errors(value), 3)]
    except (ValueError, TypeError, jsonschema_rs.ValidationError):
        # A schema that can't be read says nothing.
        return []
    return [f"not as the tool's output schema has it: {message[:200]}" for message in found]


def _same(text: str, structured: Any) -> bool:
    """Whether a text only repeats the structured content, as servers do for older clients."""
    import json

    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        said = text
    inner = [*structured.values()] if isinstance(structured, dict) and len(structured) == 1 else []
    return bool(said == structured or inner in ([said], [text]))


def _saved(data: str, kind: str) -> dict[str, Any]:
    try:
        content = base64.b64decode(data, validate=False)
    except ValueError:
        return {"mimeType": kind, "trouble": "its data could not be read"}
    name = hashlib.sha256(content).hexdigest()[:24] + _ENDINGS.get(kind, ".bin")
    path = home_path("cache", "mcp", "files", name)
    try:
        write_private(path, content)
    except OSError as error:
        # What came beside it is not lost with it.
        return {"mimeType": kind, "bytes": len(content), "trouble": f"not kept: {error.strerror}"}
    return {"mimeType": kind, "bytes": len(content), "path": path}
