"""Real servers of several kinds, and the tools of Hermes called through the whole pipeline."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from hermes.core import ToolCall
from hermes.core.entry import ToolOutcome
from hermes.core.registry import ToolRegistry
from hermes.mcp.client.servers import Servers
from hermes.runtime.app import App

PEER = Path(__file__).parent.parent / "servers" / "peer.py"
ANYTHING = {"type": "object", "properties": {}, "additionalProperties": True}


def tool(name: str, *, reads: bool = True, **fields: Any) -> dict[str, Any]:
    """The definition of a tool; one that only reads is not asked about."""
    return {
        "name": name,
        "description": f"Does {name}.",
        "inputSchema": ANYTHING,
        **({"annotations": {"readOnlyHint": True}} if reads else {}),
        **fields,
    }


class Desk:
    """An app with servers of its own; all of it is ended with the test."""

    def __init__(self, home: Path, project: Path) -> None:
        self.home = home
        self.project = project
        self.app: App | None = None
        self.servers: Servers | None = None
        self.asked: list[Any] = []
        self.answer: Any = "once"
        self.made: list[Servers] = []

    def peer(self, *tools: dict[str, Any], **script: Any) -> dict[str, Any]:
        """The definition of a server that does as told."""
        args = [str(PEER), json.dumps({"tools": list(tools), **script})]
        return {"command": sys.executable, "args": args}

    def configure(self, **servers: Any) -> None:
        """Write the settings."""
        self.home.mkdir(parents=True, exist_ok=True)
        said = {"mcp_servers": servers, "mcp": {"osv": "off"}}
        (self.home / "config.yaml").write_text(yaml.safe_dump(said))

    def open(self, *, wait: bool = True, connect: bool = True, **servers: Any) -> Servers:
        """A fresh app over servers, connected."""
        if servers:
            self.configure(**servers)
        self.app = App(ToolRegistry(), project=str(self.project))
        self.app.approver = self._approve
        from hermes.mcp.client import attach

        self.servers = attach(self.app, connect=connect)
        assert self.servers is not None
        self.made.append(self.servers)
        if wait:
            self.servers.wait(20)
        return self.servers

    def _approve(self, request: Any) -> Any:
        self.asked.append(request)
        return self.answer

    def outcome(self, name: str, /, **arguments: Any) -> ToolOutcome:
        """How one call ended."""
        assert self.app is not None
        context = self.app.runtime.context()
        context.task.workspace = str(self.project)
        return self.app.runtime.call_sync(ToolCall(name, arguments), context)

    def call(self, name: str, /, **arguments: Any) -> Any:
        """The answer of one call."""
        return self.outcome(name, **arguments).value

    def close(self) -> None:
        """End everything."""
        for servers in self.made:
            servers.close()
        if self.app is not None and "runtime" in vars(self.app):
            self.app.runtime.close()


@pytest.fixture
def desk(home: Path, tmp_path: Path) -> Iterator[Desk]:
    """Servers for this test alone."""
    made = Desk(home, tmp_path)
    yield made
    made.close()
    assert not marked_processes(os.getpid())


def marked_processes(owner: int) -> list[psutil.Process]:
    """The processes that servers of one Hermes run as."""
    found = []
    for process in psutil.process_iter():
        try:
            mark = process.environ().get("HERMES_COMMAND", "")
        except psutil.Error:
            continue
        if mark.startswith("mcp-") and mark.split("/")[-1].startswith(f"{owner}-"):
            found.append(process)
    return found


def eventually(holds: Callable[[], Any], seconds: float = 10.0) -> Any:
    """What `holds` gives as soon as it gives something; fails when it never does."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if found := holds():
            return found
        time.sleep(0.02)
    raise AssertionError("it did not come to be so")
