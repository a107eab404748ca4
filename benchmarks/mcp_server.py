"""What it costs to be called over MCP: our server beside the SDK's own, the same small tool."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Any

import psutil

from benchmarks.measure import Row, usual_environment

if TYPE_CHECKING:
    from collections.abc import Iterator

_CALLS = 300
_ROUNDS = 5

OURS = """
from hermes.core import ToolRegistry, tool
from hermes.mcp.server.stdio_server import serve_stdio
from hermes.runtime.app import App

registry = ToolRegistry()

@tool(registry=registry, toolset="bench", effect="read")
def echo(text: str) -> str:
    '''Say it back.'''
    return text

serve_stdio(App(registry), toolsets=["bench"])
"""

THEIRS = """
from mcp.server.mcpserver import MCPServer

server = MCPServer("bench")

@server.tool()
def echo(text: str) -> str:
    '''Say it back.'''
    return text

server.run("stdio")
"""

_MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class _Peer:
    """A server in a process, and a client that costs it nothing."""

    def __init__(self, code: str, home: str, *, modern: bool) -> None:
        self._modern = modern
        self._process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=usual_environment({"HERMES_HOME": home}),
            cwd=home,
        )
        self._clock = psutil.Process(self._process.pid)
        self._number = 0
        if not modern:
            who = {"name": "bench", "version": "1"}
            first = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": who}
            self._ask("initialize", first)
            self._say({"jsonrpc": "2.0", "method": "notifications/initialized"})
        for _ in range(50):
            self.call()

    def call(self) -> None:
        """Call the tool once."""
        result = self._ask("tools/call", {"name": "echo", "arguments": {"text": "hello"}})
        assert result["content"][0]["text"] == "hello", result

    def round_us(self) -> float:
        """Microseconds of CPU that one call takes the server."""
        before = self._clock.cpu_times()
        for _ in range(_CALLS):
            self.call()
        after = self._clock.cpu_times()
        return (after.user + after.system - before.user - before.system) / _CALLS * 1e6

    def close(self) -> None:
        """End the server."""
        self._process.communicate(timeout=30)

    def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        meta = {"_meta": _MODERN} if self._modern else {}
        self._say(
            {"jsonrpc": "2.0", "id": self._number, "method": method, "params": {**params, **meta}}
        )
        assert self._process.stdout is not None
        while (answer := json.loads(self._process.stdout.readline())).get("id") != self._number:
            pass
        result: dict[str, Any] = answer["result"]
        return result

    def _say(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()


def rows() -> Iterator[Row]:
    """CPU of one call for the server, and how ours compares."""
    for era, modern in (("2025-11-25", False), ("2026-07-28", True)):
        with tempfile.TemporaryDirectory() as home:
            ours = _Peer(OURS, os.path.realpath(home), modern=modern)
            theirs = _Peer(THEIRS, os.path.realpath(home), modern=modern)
            best = {ours: float("inf"), theirs: float("inf")}
            for _ in range(_ROUNDS):
                for peer in best:
                    best[peer] = min(best[peer], peer.round_us())
            ours.close()
            theirs.close()
        yield Row(f"MCP call served, {era}", best[ours], "µs")
        yield Row(f"… beside the SDK's own server, {era}", best[ours] / best[theirs], "x", 1.15)
