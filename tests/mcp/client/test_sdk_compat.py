"""The SDK's dispatcher with repaired results."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.shared.message import SessionMessage

from hermes.mcp.client import sdk_compat
from hermes.mcp.client.sdk_compat import CompatDispatcher


def _page(*names: str) -> dict[str, Any]:
    return {"tools": [{"name": name} for name in names]}


def test_all_pages_of_a_list_are_kept() -> None:
    dispatcher = CompatDispatcher(None, None)
    for number in (1, 2):
        dispatcher.repair("tools/list", _page(f"tool {number}"))

    assert dispatcher.take_tools() == [{"name": "tool 1"}, {"name": "tool 2"}]
    assert dispatcher.take_tools() == []


def test_the_sdk_is_given_valid_tools_only_and_the_rest_is_kept() -> None:
    dispatcher = CompatDispatcher(None, None)
    page: dict[str, Any] = {"tools": [{"name": "ok"}, {"name": 7}, "no tool"], "nextCursor": 3}

    dispatcher.repair("tools/list", page)

    assert page == {"tools": [{"name": "ok", "inputSchema": {"type": "object"}}]}
    assert dispatcher.take_tools() == [{"name": "ok"}, {"name": 7}, "no tool"]


def test_a_stream_that_stands_still_is_as_good_as_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sdk_compat, "_SEND_SECONDS", 0.01)
    request = types.JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/list")

    async def work() -> None:
        # Nobody reads at the other end.
        send, receive = anyio.create_memory_object_stream[SessionMessage](0)
        async with send, receive:
            with pytest.raises(anyio.BrokenResourceError):
                await CompatDispatcher(receive, send)._write(request)

    asyncio.run(asyncio.wait_for(work(), 60))
