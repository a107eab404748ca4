"""Errors of a server or its transport, translated to ours, with a hint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT
from pydantic import ValidationError

from hermes.core.errors import HermesError, ToolError
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
