"""Which errors mean that a connection is of no more use."""

from __future__ import annotations

import pytest
from mcp_types import CONNECTION_CLOSED

from hermes.mcp.client.results import is_connection_lost
from hermes.mcp.client.settings import Server
from mcp import MCPError

HERE = Server("box", {"command": "x"}, "test")
AWAY = Server("web", {"url": "https://example.com/mcp"}, "test")


@pytest.mark.parametrize(
    ("server", "message", "lost"),
    [
        (HERE, "Connection closed", True),
        (AWAY, "SSE stream ended without a response", True),
        (AWAY, "SSE stream failed: too large", True),
        (HERE, "no such record", False),
        (AWAY, "no such record", False),
        (HERE, "", False),
        # Said by servers that were started anew.
        (AWAY, "Bad Request: No valid session ID provided", True),
        (AWAY, "Bad Request: Server not initialized", True),
        (HERE, "no session of that name", False),
    ],
)
def test_only_what_is_said_of_the_connection_ends_it(
    server: Server, message: str, lost: bool
) -> None:
    assert is_connection_lost(MCPError(CONNECTION_CLOSED, message), server) is lost
