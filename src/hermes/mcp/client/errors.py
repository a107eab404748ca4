"""Errors of a server or its transport, translated to ours, with a hint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT
from pydantic import ValidationError

from hermes.core.errors import HermesError, ToolError
from hermes.runtime.workers import StoppedLateError
from mcp import MCPError

if TYPE_CHECKING:
    from hermes.mcp.client.connection import Link
    from hermes.mcp.client.settings import Server


# How the SDK says that a connection ended. Servers use its number for errors of every kind.
_CLOSED = ("Connection closed", "SSE stream ")
# What servers on the network say that were started anew, and do not know us.
_UNKNOWN = ("session", "server not initialized")


class NeedsLoginError(HermesError):
    """A server wants a person to log in, and nobody is here who could."""

    def __init__(self, server: str, why: str) -> None:
        super().__init__(
            f"{server} needs somebody to log in: {why} (hermes mcp login {server})",
            hint=f"hermes mcp login {server}",
        )


def is_lost(error: BaseException, server: Server) -> bool:
    """Whether a connection is of no more use after an error."""
    first = innermost(error)
    if isinstance(first, MCPError):
        said = first.error.message
        if first.error.code == CONNECTION_CLOSED and said.startswith(_CLOSED):
            return True
        return server.remote and any(words in said.lower() for words in _UNKNOWN)
    return not isinstance(first, (ValidationError, HermesError))


def call_trouble(error: BaseException, link: Link, what: str, seconds: float) -> Exception:
    """What a failed call comes to: server, tool, seconds, and the server's last words."""
    server = link.server.name
    first = innermost(error)
    if isinstance(first, HermesError):
        return ToolError(str(first), hint=first.hint)
    last = link.journal.last()
    words = f"; its last words: {' | '.join(last)}" if last else ""
    # Servers use the same number for something else.
    late = seconds >= 0.9 * link.server.call_seconds
    if isinstance(first, MCPError) and first.error.code == REQUEST_TIMEOUT and late:
        return StoppedLateError(
            f"gave no answer within {link.server.call_seconds:g} s: the server {server} was told "
            f"to stop {what}, and can be used on{words}",
            stuck=False,
        )
    if is_lost(error, link.server):
        how = link.lost or connect_trouble(error)
        if link.state == "needs_reauth":
            return ToolError(how, hint=f"hermes mcp login {server}")
        return ToolError(
            f"the server {server} was lost during {what}, after {seconds:.1f} s: {how}{words}",
            hint="It is being started again. Check what was done before you repeat the call.",
        )
    if isinstance(first, ValidationError):
        faults = first.error_count()
        return ToolError(f"{server} answered {what} with what is no answer ({faults} faults)")
    said = first.error.message[:1000] if isinstance(first, MCPError) else str(first)
    return ToolError(f"{server} refused {what}: {said}")


def connect_trouble(error: BaseException) -> str:
    """Why a connection could not be made or kept, in a line."""
    first = innermost(error)
    if isinstance(first, MCPError):
        return first.error.message[:500] or f"error {first.error.code}"
    if isinstance(first, ValidationError):
        return f"it answered with what is no answer ({first.error_count()} faults)"
    said = " ".join(str(first).split())[:500]
    if isinstance(first, HermesError):
        return said
    return f"{type(first).__name__}: {said}" if said else type(first).__name__


def innermost(error: BaseException) -> BaseException:
    """What a group of errors is about: the login that is needed, or else the first of them."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        login = [one for one in error.exceptions if isinstance(one, NeedsLoginError)]
        error = login[0] if login else error.exceptions[0]
    return error
