"""What the conformance suite runs as our client: `conformance_client.py URL`.

It is Hermes as it is: servers from settings, tools through the pipeline. Where a person would log
in with a browser, the addresses are visited here, as the suite wants it.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx2
import yaml


async def visit(address: str) -> str:
    """Go to a login page, which sends us back at once; the address that it sends us to."""
    async with httpx2.AsyncClient() as client:
        answer = await client.get(address)
    return str(answer.headers["location"])


def definition(url: str, context: dict[str, Any]) -> dict[str, Any]:
    """How the server is configured: with who we are to it, where the suite says so."""
    auth: dict[str, str] = {"type": "oauth"}
    for name in ("client_id", "client_secret"):
        if isinstance(context.get(name), str):
            auth[name] = context[name]
    if "client-credentials" in os.environ.get("MCP_CONFORMANCE_SCENARIO", ""):
        auth["flow"] = "client_credentials"
    return {"url": url, "auth": auth, "timeout": 20}


def main() -> int:
    """Connect, log in where asked to, list the tools, call each."""
    url = sys.argv[-1]
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    home = Path(tempfile.mkdtemp(prefix="hermes-conformance-"))
    os.environ["HERMES_HOME"] = str(home)
    said = {"mcp_servers": {"peer": definition(url, context)}, "mcp": {"osv": "off"}}
    (home / "config.yaml").write_text(yaml.safe_dump(said))

    from hermes.core import ToolCall
    from hermes.core.errors import HermesError
    from hermes.core.registry import ToolRegistry
    from hermes.mcp.client import attach
    from hermes.mcp.client.auth.login import login
    from hermes.runtime.app import App

    app = App(ToolRegistry(), project=str(home))
    app.approver = lambda _: "once"
    servers = attach(app)
    assert servers is not None
    known = servers.known["peer"]

    def logged_in() -> None:
        try:
            asyncio.run(login(known.server, lambda _: None, visit=visit, seconds=20))
        except HermesError as error:
            print("login:", error, file=sys.stderr)
            return
        servers.reconnect("peer")
        until = time.monotonic() + 15
        while known.state != "connected" and time.monotonic() < until:
            time.sleep(0.05)

    missing = servers.wait(25)
    for _ in range(3):
        if known.state == "needs_reauth":
            logged_in()
            missing = servers.wait(20)
    print(scenario, known.state, known.reason, missing, file=sys.stderr)
    failed = known.state != "connected"
    # A null that a schema does not allow is refused before it is sent: it is left out instead.
    given = {
        f"mcp-peer:{call['name']}": {k: v for k, v in call["arguments"].items() if v is not None}
        for call in context.get("toolCalls") or ()
    }
    # What a server wrote is kept as it wrote it, whatever a model is shown.
    listed = known.listing.tools if known.listing is not None else []
    for entry in servers.entries("peer"):
        arguments = given.get(entry.name) or example(entry.parameters)
        if scenario.startswith("json-schema") and "schema" in arguments:
            arguments = {"schema": listed[0]["inputSchema"]}
        for _ in range(3):
            outcome = app.runtime.call_sync(ToolCall(entry.name, dict(arguments)))
            print(entry.name, outcome.status, outcome.content[:300], file=sys.stderr)
            if known.state != "needs_reauth":
                break
            logged_in()
    time.sleep(0.2)
    servers.close()
    return int(failed)


def example(schema: dict[str, Any]) -> dict[str, Any]:
    """Arguments that a schema allows."""
    kinds: dict[str, Any] = {"number": 2, "integer": 2, "string": "x", "boolean": True, "array": []}
    return {
        name: inner.get("default", (inner.get("enum") or [kinds.get(inner.get("type", ""), {})])[0])
        for name, inner in schema["properties"].items()
        if isinstance(inner, dict)
    }


if __name__ == "__main__":
    sys.exit(main())
