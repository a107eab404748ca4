"""The conformance suite of the protocol, where it is installed: nothing fails but what is known to.

`MCP_CONFORMANCE` names the suite's `index.js`; `MCP_NODE` a Node of 22 or newer, if that is not
the usual one.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.mcp.server.peers import environment, until

HERE = Path(__file__).parent
SUITE = os.environ.get("MCP_CONFORMANCE", "")

pytestmark = pytest.mark.skipif(not SUITE, reason="MCP_CONFORMANCE names no suite")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the server listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, str(HERE / "server.py"), str(port)],
        env=environment(tmp_path_factory.mktemp("suite") / "home"),
        cwd=tmp_path_factory.mktemp("work"),
    )
    until(lambda: _listens(port), "the server never listened", 30)
    yield f"http://127.0.0.1:{port}/mcp"
    process.terminate()
    process.wait(20)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
def test_nothing_fails_that_is_not_explained(url: str, version: str) -> None:
    node = os.environ.get("MCP_NODE", "node")
    known = ["--expected-failures", str(HERE / "expected.yaml")]
    done = subprocess.run(
        [node, SUITE, "server", "--url", url, "--suite", "all", "--spec-version", version, *known],
        capture_output=True,
        text=True,
        timeout=300,
    )

    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
