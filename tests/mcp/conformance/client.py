"""What the conformance suite runs as our client: `client.py URL`.

It is Hermes as it is: servers from settings, tools through the pipeline. Where a person would log
in with a browser, the addresses are visited here, as the suite wants it.

    client.py URL             one scenario, named by the environment, as the suite has it
    client.py --serve SOCKET  the same for whoever knocks there with `knock.py`, each in a child of
                              its own: what takes long to import is imported once
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import socket
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
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    if "client-credentials" in scenario:
        auth["flow"] = "client_credentials"
    if "private_key_pem" in context:
        auth["private_key"] = context["private_key_pem"]
        auth["algorithm"] = context["signing_algorithm"]
    if "valid_jwt" in context:
        auth |= {"flow": "jwt_bearer", "assertion": context["valid_jwt"]}
    if "idp_id_token" in context:
        auth["flow"] = "identity_assertion"
        auth["id_token"] = context["idp_id_token"]
        auth |= {name: context[name] for name in ("idp_client_id", "idp_token_endpoint")}
    if scenario == "auth/basic-cimd":
        auth["client_metadata_url"] = "https://conformance-test.local/client-metadata.json"
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
    known = servers.states["peer"]

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


def serve(path: str) -> None:
    """Run a scenario for each that knocks, side by side, until stdin ends."""
    import hermes.mcp.client.auth.headless_login
    import hermes.mcp.client.auth.login
    import hermes.mcp.client.connection  # noqa: F401

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(64)
        while listener in select.select([listener, sys.stdin], [], [])[0]:
            knock, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                _answer(knock)
            knock.close()
    # Whoever is left has nobody to answer to.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.killpg(0, signal.SIGTERM)


def _answer(knock: socket.socket) -> None:
    """In a child of its own: a scenario, with its words and its end told to who knocked."""
    # Twice, so that nobody has to wait for it.
    if os.fork():
        os._exit(0)
    said = json.loads(knock.makefile("r").readline())
    os.environ.update(said["environment"])
    sys.argv = ["client.py", said["url"]]
    os.dup2(knock.fileno(), 1)
    os.dup2(knock.fileno(), 2)
    code = 1
    try:
        code = main()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        knock.sendall(f"\nended {code}\n".encode())
        os._exit(code)


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve(sys.argv[2])
    else:
        sys.exit(main())
