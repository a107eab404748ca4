"""The reference servers that other people wrote, as they come from their registries."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.mcp.client.conftest import Desk

NPM = ("@modelcontextprotocol/server-everything", "@modelcontextprotocol/server-filesystem")
PYPI = ("mcp-server-time", "mcp-server-git")
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hermes-tests" / "mcp"


def missing(why: str) -> None:
    """A counterpart that can't be had is a reason to skip on a laptop, and to fail in CI."""
    if os.environ.get("CI") == "true":
        pytest.fail(why)
    pytest.skip(why)


def fetched(name: str, *commands: list[str]) -> Path:
    """A folder of the cache, filled once by these commands; each test process waits its turn."""
    CACHE.mkdir(parents=True, exist_ok=True)
    folder = CACHE / name
    with (CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "whole").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            for command in commands:
                done = subprocess.run(
                    command, cwd=folder, capture_output=True, text=True, check=False
                )
                if done.returncode:
                    missing(f"{' '.join(command)[:80]}: {done.stderr[-300:]}")
            (folder / "whole").touch()
    return folder


def node(program: str, *args: str) -> dict[str, Any]:
    """A server from npm."""
    if not shutil.which("npm") or not shutil.which("node"):
        missing("there is no Node here")
    folder = fetched("npm", ["npm", "init", "-y"], ["npm", "install", "--no-audit", *NPM])
    return {"command": "node", "args": [str(folder / "node_modules" / ".bin" / program), *args]}


def python(program: str, *args: str) -> dict[str, Any]:
    """A server from PyPI, in an environment of its own."""
    folder = fetched(
        "pypi", [sys.executable, "-m", "venv", "venv"], ["venv/bin/pip", "install", "-q", *PYPI]
    )
    return {"command": str(folder / "venv" / "bin" / program), "args": list(args)}


def test_everything(desk: Desk) -> None:
    definition = node("mcp-server-everything", "stdio")
    desk.open(all=definition)
    assert desk.app is not None
    seen: list[Any] = []
    desk.app.runtime.events.subscribe(lambda e: seen.append(e) if e.kind == "progress" else None)

    echo = desk.call("mcp-all:echo", message="hi")
    image = desk.call("mcp-all:get-tiny-image")
    structured = desk.call("mcp-all:get-structured-content", location="New York")
    long = desk.call("mcp-all:trigger-long-running-operation", duration=0.3, steps=3)
    roots = desk.call("mcp-all:get-roots-list")
    resources = desk.call("mcp-all:read_resource")
    first = desk.call("mcp-all:read_resource", uri=resources["resources"][0]["uri"])
    prompts = desk.call("mcp-all:get_prompt")
    prompt = desk.call("mcp-all:get_prompt", name="args-prompt", arguments={"city": "Ulm"})

    assert echo == "Echo: hi"
    assert Path(image["content"][0]["path"]).read_bytes().startswith(b"\x89PNG")
    assert {"temperature", "conditions"} <= structured.keys()
    assert long.startswith("Long running operation completed")
    assert len(seen) == 3
    assert str(desk.project) in roots
    assert first["text"]
    assert "args-prompt" in json.dumps(prompts)
    assert "Ulm" in json.dumps(prompt)


def test_the_file_server_reads_what_the_gate_lets_it(desk: Desk) -> None:
    (desk.project / "note.txt").write_text("noted")
    desk.open(files=node("mcp-server-filesystem", str(desk.project)))

    read = desk.call("mcp-files:read_text_file", path=str(desk.project / "note.txt"))
    desk.answer = "no"
    write = desk.outcome("mcp-files:write_file", path=str(desk.project / "x"), content="y")
    secret = desk.outcome("mcp-files:read_text_file", path=os.path.expanduser("~/.ssh/id_rsa"))

    assert read["content"] == "noted"
    assert write.status == secret.status == "refused"
    assert not (desk.project / "x").exists()


def test_servers_of_the_newer_protocol(desk: Desk) -> None:
    subprocess.run(["git", "init", "-q", "."], cwd=desk.project, check=True)
    servers = desk.open(
        time=python("mcp-server-time", "--local-timezone", "UTC"),
        git=python("mcp-server-git", "--repository", str(desk.project)),
    )

    now = desk.call("mcp-time:get_current_time", timezone="Asia/Tokyo")
    wrong = desk.call("mcp-time:get_current_time", timezone="Nowhere")
    status = desk.call("mcp-git:git_status", repo_path=str(desk.project))

    assert now["datetime"].endswith("+09:00")
    assert "Nowhere" in wrong["error"]
    assert "On branch" in json.dumps(status)
    assert [servers.states[name].listing.legacy for name in ("time", "git")] == [False, False]  # type: ignore[union-attr]


def test_everything_over_http(desk: Desk) -> None:
    import socket
    import urllib.error
    import urllib.request

    from tests.mcp.client.conftest import eventually

    definition = node("mcp-server-everything", "streamableHttp")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [definition["command"], *definition["args"]],
        env={**os.environ, "PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def up() -> bool:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/mcp", timeout=1).close()
        except urllib.error.HTTPError as error:
            error.close()
            return True
        except OSError:
            return False
        return True

    try:
        eventually(up, 20)
        desk.open(all={"url": f"http://127.0.0.1:{port}/mcp"})

        assert desk.call("mcp-all:echo", message="hi") == "Echo: hi"
        assert desk.call("mcp-all:get-sum", a=2, b=3) == "The sum of 2 and 3 is 5."
        desk.close()
    finally:
        server.kill()
        server.wait()
