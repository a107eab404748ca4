"""Messages on their way between a server and the SDK."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.shared.message import SessionMessage

from hermes.mcp.client import sdk_compat as wires
from hermes.mcp.client.sdk_compat import Wire, Writing


def _asked(ident: int) -> types.JSONRPCRequest:
    return types.JSONRPCRequest(jsonrpc="2.0", id=ident, method="tools/list")


def _page(ident: int, *names: str) -> types.JSONRPCResponse:
    tools: list[dict[str, Any]] = [{"name": name} for name in names]
    return types.JSONRPCResponse(jsonrpc="2.0", id=ident, result={"tools": tools})


def test_a_page_that_was_given_up_is_no_part_of_the_next_list() -> None:
    wire = Wire()
    wire.going(_asked(1))
    wire.take_tools()
    wire.going(_asked(2))

    wire.came(_page(1, "gone"))
    wire.came(_page(2, "here"))

    assert wire.take_tools() == [{"name": "here"}]


def test_all_pages_of_a_list_are_kept() -> None:
    wire = Wire()
    for ident in (1, 2):
        wire.going(_asked(ident))
        wire.came(_page(ident, f"tool {ident}"))

    assert wire.take_tools() == [{"name": "tool 1"}, {"name": "tool 2"}]


def test_a_stream_that_stands_still_is_as_good_as_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wires, "_SEND_SECONDS", 0.01)

    async def work() -> None:
        # Nobody reads at the other end.
        send, receive = anyio.create_memory_object_stream[SessionMessage](0)
        async with send, receive:
            with pytest.raises(anyio.BrokenResourceError):
                await Writing(send, Wire()).send(SessionMessage(_asked(1)))

    asyncio.run(asyncio.wait_for(work(), 60))
