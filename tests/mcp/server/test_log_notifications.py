"""What clients are told of a call while it runs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.mcp.server.peers import app_with, client, run

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")
def test_a_secret_that_comes_in_two_pieces_is_masked_in_the_log() -> None:
    heard: list[str] = []

    ended = asyncio.Event()

    async def note(params: Any) -> None:
        heard.append(str(params.data))
        if "the end" in heard[-1]:
            ended.set()

    async def work() -> None:
        app = app_with()
        async with client(app, "legacy", toolsets=["terminal"], logging_callback=note) as peer:
            await peer.session.set_logging_level("debug")
            halves = f"printf %s {SECRET[:15]}; sleep 0.5; echo {SECRET[15:]}; echo the end"
            await peer.call_tool("terminal", {"command": halves})
            await ended.wait()
        app.close()

    run(work)
    assert SECRET[15:] not in "".join(heard)
