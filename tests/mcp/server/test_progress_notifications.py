"""What a call reports is told, all of it, wherever the call is when its request ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from mcp_types import LOG_LEVEL_META_KEY
from tests.mcp.server.peers import ERAS, Person, app_with, client, run, soon

from hermes.core import ToolContext, ToolRegistry, tool
from hermes.mcp.server.notifications import Logs, Progress
from hermes.runtime.app import App


class Slow:
    """A client that takes what it is told only when it is let; as a request and as its session."""

    protocol_version = ERAS["legacy"]
    request_id = 1

    def __init__(self) -> None:
        self.session = self
        self.begun = asyncio.Event()
        self.reads = asyncio.Event()
        self.heard: list[str] = []

    async def report_progress(self, progress: float, total: float | None, message: str) -> None:
        await self._hear(message)

    async def send_notification(self, notification: Any, **_: Any) -> None:
        await self._hear(notification.params.data)

    async def _hear(self, message: str) -> None:
        self.begun.set()
        await self.reads.wait()
        self.heard.append(message)


def _progress(app: App, peer: Any) -> Progress:
    return Progress(app.runtime.events, "one", peer)


def _logs(app: App, peer: Any) -> Logs:
    return Logs(app.runtime, "one", peer, "info")


@pytest.mark.parametrize("made", [_progress, _logs])
def test_what_is_on_its_way_when_a_call_ends_arrives_once_and_in_order(
    made: Callable[[App, Any], Progress | Logs],
) -> None:
    app = app_with()

    async def work() -> list[str]:
        peer = Slow()
        telling = made(app, peer)
        app.runtime.events.emit("progress", "one", message="first", fraction=0.5)
        await peer.begun.wait()
        app.runtime.events.emit("progress", "one", message="last", fraction=1.0)
        closing = asyncio.ensure_future(telling.close())
        for _ in range(20):
            await asyncio.sleep(0)
        peer.reads.set()
        await closing
        app.runtime.events.emit("progress", "one", message="too late", fraction=1.0)
        await asyncio.sleep(0)
        return peer.heard

    assert run(work) == ["first", "last"]
    app.close()


@pytest.mark.parametrize("steps", range(5))
def test_nobody_is_left_to_tell_when_the_last_word_comes_with_the_end(steps: int) -> None:
    app = app_with()

    async def work() -> bool:
        peer: Any = Slow()
        peer.reads.set()
        telling = Progress(app.runtime.events, "one", peer)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        telling._note("last", 1.0)
        for _ in range(steps):
            await asyncio.sleep(0)
        telling._telling.cancel()
        for _ in range(20):
            await asyncio.sleep(0)
        return telling._telling.cancelled()

    assert run(work)
    app.close()


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")
def test_what_is_said_before_a_question_is_heard_before_it(mode: str) -> None:
    order: list[str] = []

    def asks(registry: ToolRegistry) -> None:
        @tool(registry=registry, toolset="trial", effect="read")
        def wonder(ctx: ToolContext) -> str:
            """Report, ask, report."""
            ctx.progress("before", fraction=0.5)
            ctx.service("ask_person")("which?", [])
            ctx.progress("after", fraction=1.0)
            return "known"

    class Listener(Person):
        async def __call__(self, context: Any, params: Any) -> Any:
            order.append("asked")
            return await super().__call__(context, params)

    async def told(progress: float, total: float | None, message: str | None) -> None:
        order.append(f"progress {message}")

    async def logged(params: Any) -> None:
        order.append(f"log {params.data}")

    async def work() -> None:
        app = app_with(asks)
        person = Listener({"answer": "this"})
        options: dict[str, Any] = {"elicitation_callback": person, "logging_callback": logged}
        async with client(app, mode, toolsets=["trial"], **options) as peer:
            meta = {LOG_LEVEL_META_KEY: "info"}
            if mode == "legacy":
                await peer.session.set_logging_level("info")
            await peer.call_tool("wonder", {}, progress_callback=told, meta=meta)
            await soon(lambda: len(order) == 5, f"heard {order}")
        app.close()

    run(work)
    assert set(order[:2]) == {"progress before", "log before"}
    assert order[2] == "asked"
    assert set(order[3:]) == {"progress after", "log after"}
