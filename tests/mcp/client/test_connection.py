"""A connection that is to be ended makes no other."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hermes.mcp.client import connection as links
from hermes.mcp.client.connection import Connection
from hermes.mcp.client.server_log import ServerLog
from hermes.mcp.client.settings import Server, Settings


class Lost(Connection):
    """Loses each connection as soon as it is made."""

    async def _connect_once(self) -> tuple[str, str]:
        self.connects += 1
        return "lost", ""


@pytest.mark.parametrize("steps", range(5))
@pytest.mark.parametrize("cancelled", [True, False])
def test_nothing_is_started_once_it_was_stopped(
    steps: int, cancelled: bool, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "PAUSE_SECONDS", 1_000.0)

    async def work() -> tuple[int, int]:
        paused = asyncio.Event()
        link = Lost(
            Server("box", {"command": "x"}, "test"),
            ServerLog("box"),
            project=".",
            settings=Settings({}),
            legacy=False,
            on_state=lambda link: paused.set() if link.state == "waiting" else None,
            on_listing=lambda *_: None,
        )
        running = asyncio.ensure_future(link.run())
        link.want()
        await paused.wait()
        # A call comes while it pauses, and the program ends in the same moment.
        link.want()
        for _ in range(steps):
            await asyncio.sleep(0)
        before = link.connects
        link.stop()
        if cancelled:
            running.cancel()
        else:
            link.want()
        await asyncio.wait((running,))
        return before, link.connects

    before, after = asyncio.run(asyncio.wait_for(work(), 60))
    assert after == before
