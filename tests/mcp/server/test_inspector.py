"""The inspector's command-line mode: a client that somebody else wrote, in another language."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.mcp.server.peers import SERVE, environment

VERSION = "0.15.0"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hermes-tests" / "mcp"


def _missing(why: str) -> None:
    """A counterpart that can't be had is a reason to skip on a laptop, and to fail in CI."""
    if os.environ.get("CI") == "true":
        pytest.fail(why)
    pytest.skip(why)


@pytest.fixture(scope="session")
def inspector() -> Path:
    """The program, fetched once into a folder of the cache."""
    if not shutil.which("npm") or not shutil.which("node"):
        _missing("there is no Node here")
    folder = CACHE / f"inspector-{VERSION}"
    program = folder / "node_modules" / ".bin" / "mcp-inspector"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "inspector.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "whole").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            package = f"@modelcontextprotocol/inspector@{VERSION}"
            done = subprocess.run(
                ["npm", "install", "--no-audit", "--no-fund", "--prefix", ".", package],
                cwd=folder,
                capture_output=True,
                text=True,
            )
            if done.returncode:
                _missing(f"{package}: {done.stderr[-300:]}")
            (folder / "whole").touch()
    return program


def _asked(inspector: Path, home: Path, work: Path, method: str, *words: str) -> Any:
    # The environment of the server is passed on by name: the inspector starts it with a bare one.
    done = subprocess.run(
        [inspector, "--cli", "-e", f"HERMES_HOME={home}", *SERVE, "--method", method, *words],
        env=environment(home),
        cwd=work,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_it_lists_our_tools_and_calls_one(inspector: Path, home: Path, tmp_path: Path) -> None:
    listed = _asked(inspector, home, tmp_path, "tools/list")
    command = ("--tool-name", "terminal", "--tool-arg", "command=echo hello")
    called = _asked(inspector, home, tmp_path, "tools/call", *command)

    terminal = next(tool for tool in listed["tools"] if tool["name"] == "terminal")
    assert terminal["annotations"]["destructiveHint"] is True
    assert called["structuredContent"]["stdout"] == "hello\n"
    assert called["isError"] is False


def test_what_would_have_to_be_asked_is_refused(
    inspector: Path, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "build").mkdir()
    command = ("--tool-name", "terminal", "--tool-arg", "command=rm -rf build")

    refused = _asked(inspector, home, tmp_path, "tools/call", *command)

    assert refused["isError"] is True
    assert "nobody can be asked here" in refused["content"][0]["text"]
    assert (tmp_path / "build").is_dir()
