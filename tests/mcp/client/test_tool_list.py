"""Hearing of changes at a server, for as long as it is connected."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from mcp.client.subscriptions import SubscriptionLost
from mcp_types import INTERNAL_ERROR, METHOD_NOT_FOUND

from hermes.mcp.client import tool_list
from hermes.mcp.client.sdk_compat import CompatDispatcher
from hermes.mcp.client.server_log import ServerLog
from hermes.mcp.client.settings import Server
from hermes.mcp.client.tool_list import ChangeWatch
from mcp import MCPError


class Peer(ServerLog):
    """A server that tells of changes on streams, which end as they are told; and its log."""

    def __init__(self, *ends: Exception | None) -> None:
        super().__init__("box")
        self.server_capabilities = SimpleNamespace(tools=SimpleNamespace(list_changed=True))
        self.ends = list(ends)
        self.streams = 0
        self.news: asyncio.Queue[int] = asyncio.Queue()
        self.listed: asyncio.Queue[Any] = asyncio.Queue()
        self.noted: asyncio.Queue[str] = asyncio.Queue()
        self.steady = asyncio.Event()

    def note(self, text: str) -> None:
        self.noted.put_nowait(text)

    @asynccontextmanager
    async def listen(self, **_: Any) -> AsyncIterator[AsyncIterator[int]]:
        self.streams += 1
        yield self._changes()

    async def _changes(self) -> AsyncIterator[int]:
        if self.ends:
            end = self.ends.pop(0)
            if end is not None:
                raise end
            return
        self.steady.set()
        while True:
            yield await self.news.get()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    async def listing(*_: Any) -> str:
        return "what it has"

    monkeypatch.setattr(tool_list, "fetch_listing", listing)
    monkeypatch.setattr(tool_list, "LISTEN_SECONDS", 0.01)


def stayed_with(peer: Peer, work: Callable[[], Awaitable[None]]) -> None:
    """Stay with a server while something is done."""

    async def both() -> None:
        client: Any = peer
        stays = ChangeWatch(Server("box", {"command": "x"}, "test"), peer)
        staying_ = asyncio.ensure_future(
            stays.run(client, CompatDispatcher(None, None), peer.listed.put_nowait, listen=True)
        )
        await work()
        stays.end()
        await staying_

    asyncio.run(asyncio.wait_for(both(), 60))


def test_a_stream_that_ends_is_asked_for_again_and_what_was_missed_with_it() -> None:
    peer = Peer(None, SubscriptionLost("cut"), MCPError(INTERNAL_ERROR, "too many"))

    async def work() -> None:
        # Something may have changed while nobody listened.
        assert await peer.listed.get() == "what it has"
        await peer.steady.wait()
        while not peer.listed.empty():
            peer.listed.get_nowait()
        peer.news.put_nowait(1)
        await peer.listed.get()

    stayed_with(peer, work)
    assert peer.streams == 4
    assert "the stream ended" in peer.noted.get_nowait()
    assert "cut" in peer.noted.get_nowait()


def test_a_server_that_has_no_such_stream_is_asked_once() -> None:
    peer = Peer(MCPError(METHOD_NOT_FOUND, "no"))

    async def work() -> None:
        assert await peer.noted.get() == "no notice of changes: no"

    stayed_with(peer, work)
    assert peer.streams == 1
