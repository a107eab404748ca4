"""Results of calls to a server, as results of Hermes; errors of a server or its transport."""

from __future__ import annotations

import base64
import hashlib
from itertools import islice
from typing import TYPE_CHECKING, Any

from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT
from pydantic import ValidationError

from hermes.core.entry import ToolResult
from hermes.core.errors import HermesError, ToolError
from hermes.core.paths import home_path, write_private
from hermes.runtime.workers import StoppedLateError
from mcp import MCPError

if TYPE_CHECKING:
    from hermes.mcp.client.connection import Connection
    from hermes.mcp.client.settings import Server


# The SDK's messages for a closed connection. Servers use its code for errors of every kind.
_CLOSED = ("Connection closed", "SSE stream ")
# Messages of HTTP servers that restarted and lost our session.
_UNKNOWN_SESSION = ("session", "server not initialized")


class NeedsLoginError(HermesError):
    """A server requires a login that only a person can do."""

    def __init__(self, server: str, reason: str) -> None:
        super().__init__(
            f"{server} needs somebody to log in: {reason} (hermes mcp login {server})",
            hint=f"hermes mcp login {server}",
        )


def is_connection_lost(error: BaseException, server: Server) -> bool:
    """Whether an error means that the connection has to be made again."""
    first = innermost(error)
    if isinstance(first, MCPError):
        message = first.error.message
        if first.error.code == CONNECTION_CLOSED and message.startswith(_CLOSED):
            return True
        return server.remote and any(words in message.lower() for words in _UNKNOWN_SESSION)
    return not isinstance(first, (ValidationError, HermesError))


def call_error(
    error: BaseException, connection: Connection, label: str, seconds: float
) -> Exception:
    """The error of a failed call: server, tool, duration and the server's last log lines."""
    server = connection.server.name
    first = innermost(error)
    if isinstance(first, HermesError):
        return ToolError(str(first), hint=first.hint)
    last = connection.log.last()
    words = f"; its last words: {' | '.join(last)}" if last else ""
    # Servers use the same code for other errors.
    late = seconds >= 0.9 * connection.server.call_seconds
    if isinstance(first, MCPError) and first.error.code == REQUEST_TIMEOUT and late:
        return StoppedLateError(
            f"gave no answer within {connection.server.call_seconds:g} s: the server {server} "
            f"was told to stop {label}, and can be used on{words}",
            stuck=False,
        )
    if is_connection_lost(error, connection.server):
        reason = connection.lost_reason or connect_error(error)
        if connection.state == "needs_reauth":
            return ToolError(reason, hint=f"hermes mcp login {server}")
        return ToolError(
            f"the server {server} was lost during {label}, after {seconds:.1f} s: {reason}{words}",
            hint="It is being started again. Check what was done before you repeat the call.",
        )
    if isinstance(first, ValidationError):
        faults = first.error_count()
        return ToolError(f"{server} answered {label} with what is no answer ({faults} faults)")
    text = first.error.message[:1000] if isinstance(first, MCPError) else str(first)
    return ToolError(f"{server} refused {label}: {text}")


def connect_error(error: BaseException) -> str:
    """The reason of a failed connection, in one line."""
    first = innermost(error)
    if isinstance(first, MCPError):
        return first.error.message[:500] or f"error {first.error.code}"
    if isinstance(first, ValidationError):
        return f"it answered with what is no answer ({first.error_count()} faults)"
    text = " ".join(str(first).split())[:500]
    if isinstance(first, HermesError):
        return text
    return f"{type(first).__name__}: {text}" if text else type(first).__name__


def innermost(error: BaseException) -> BaseException:
    """The cause in an exception group: a required login, or else the first error."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        login = [inner for inner in error.exceptions if isinstance(inner, NeedsLoginError)]
        error = login[0] if login else error.exceptions[0]
    return error


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
