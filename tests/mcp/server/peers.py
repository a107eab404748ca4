"""The other end: clients of the real SDK, in both eras, and the server as it is started for them."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import psutil
from mcp.shared.message import SessionMessage
from mcp_types import ElicitResult, jsonrpc_message_adapter

from hermes.core import ToolRegistry
from hermes.mcp.server import stdio_server
from hermes.mcp.server.handlers import AppServer
from hermes.runtime.app import App
from mcp import Client

ERAS = {"legacy": "2025-11-25", "auto": "2026-07-28"}

# `hermes mcp serve`, in the interpreter of the tests.
SERVE = [sys.executable, "-m", "hermes", "mcp", "serve"]


def run(work: Callable[[], Awaitable[Any]]) -> Any:
    """Carry out a test that awaits, and never for ever."""

    async def limited() -> Any:
        with anyio.fail_after(120):
            return await work()

    return anyio.run(limited)


@asynccontextmanager
async def client(app: App, mode: str = "auto", **options: Any) -> AsyncIterator[Client]:
    """A client of our server in this process, at the other end of two pipes."""
    kept = {
        name: options.pop(name) for name in ("toolsets", "defer", "services") if name in options
    }
    door = AppServer(app, **kept)
    async with Client(_pipes(door), mode=mode, **options) as made:
        yield made


@asynccontextmanager
async def _pipes(door: AppServer) -> AsyncIterator[tuple[Any, Any]]:
    """The server behind two pipes, as a transport for a client."""
    for_server, to_server = os.pipe()
    from_server, for_client = os.pipe()
    put, read = anyio.create_memory_object_stream[Any](0)
    write, sent = anyio.create_memory_object_stream[SessionMessage](0)

    async def hear() -> None:
        # The client may have gone before the last word was said.
        with os.fdopen(from_server, "rb") as lines, suppress(anyio.BrokenResourceError):
            async with put:
                async for line in anyio.wrap_file(lines):
                    await put.send(SessionMessage(jsonrpc_message_adapter.validate_json(line)))

    async def tell() -> None:
        async with sent:
            async for message in sent:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                os.write(to_server, f"{text}\n".encode())

    async def serve() -> None:
        try:
            await stdio_server.run(door, for_server, for_client)
        finally:
            os.close(for_client)

    async with anyio.create_task_group() as group:
        for each in (hear, tell, serve):
            group.start_soon(each)
        try:
            yield read, write
        finally:
            os.close(to_server)


def app_with(*tools: Callable[[ToolRegistry], object]) -> App:
    """An App that has the usual tools, and some more."""
    registry = ToolRegistry()
    app = App(registry)
    for add in tools:
        add(registry)
    return app


class Person:
    """Whoever sits at the client: answers forms, and remembers what was asked."""

    def __init__(self, *answers: ElicitResult | dict[str, Any]) -> None:
        self._answers = list(answers)
        self.asked: list[Any] = []

    async def __call__(self, context: Any, params: Any) -> ElicitResult:
        """The next answer; no when there are no more."""
        self.asked.append(params)
        if not self._answers:
            return ElicitResult(action="decline")
        answer = self._answers.pop(0)
        return answer if isinstance(answer, ElicitResult) else accept(**answer)


def accept(**content: Any) -> ElicitResult:
    """A form that was filled in and sent off."""
    return ElicitResult(action="accept", content=content)


def environment(home: Path, **changes: str) -> dict[str, str]:
    """What a server is started with."""
    kept = {name: value for name, value in os.environ.items() if name != "HERMES_MCP_TOKEN"}
    return {**kept, "HERMES_HOME": str(home), "PYTHONWARNINGS": "error", **changes}


def processes(mark: str) -> list[psutil.Process]:
    """What runs with that word in its command line."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        words = process.info["cmdline"] or []
        if any(mark in word for word in words) and process.pid != os.getpid():
            found.append(process)
    return found


def until(condition: Callable[[], object], what: str, seconds: float = 45.0) -> None:
    """Wait for something that is bound to happen."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.02)


async def soon(condition: Callable[[], object], what: str, seconds: float = 45.0) -> None:
    """The same for a test that awaits."""
    await anyio.to_thread.run_sync(until, condition, what, seconds)
