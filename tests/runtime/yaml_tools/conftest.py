"""A home folder, a real HTTP server on the loopback, and a runtime whose policy says yes."""

from __future__ import annotations

import json
import textwrap
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

import hermes.tools  # noqa: F401 - it gives calls what starts programs
from hermes.core.entry import ToolCall, ToolOutcome
from hermes.core.registry import ToolRegistry
from hermes.runtime.pipeline import Runtime
from hermes.runtime.yaml_tools.store import YamlTools
from hermes.safety.policy import Policy, Ruling

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


_ALLOWED = Ruling("allow")


class Allowing(Policy):
    """A policy that lets everything pass."""

    def judge(self, *_: Any) -> Ruling:
        return _ALLOWED


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Bench:
    """Registered files, a registry and a runtime over one temporary home."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = str(folder / "home")
        self.registry = ToolRegistry()
        self.clock = Clock()
        self.told: list[str] = []
        self.tools = self.another()
        self.runtime = Runtime(self.registry, policy=Allowing())
        self.runtime.task("main").workspace = str(folder)

    def another(self, registry: ToolRegistry | None = None) -> YamlTools:
        """A second store over the same home, as another process would have it."""
        return YamlTools(
            self.registry if registry is None else registry,
            home=self.home,
            clock=self.clock,
            on_change=self.told.append,
        )

    def write(self, text: str, name: str = "tools.yaml") -> str:
        path = self.folder / name
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return str(path)

    def register(self, text: str, name: str = "tools.yaml") -> str:
        path = self.write(text, name)
        self.tools.register(path)
        return path

    def refresh(self) -> bool:
        self.clock.now += 1
        return self.tools.refresh()

    def call(self, tool: str, **arguments: Any) -> ToolOutcome:
        return self.runtime.call_sync(ToolCall(tool, arguments))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HERMES_HOME", str(folder))
    (folder / "config.yaml").write_text("network: {allow_private: true}\n")
    return folder


@pytest.fixture
def bench(tmp_path: Path, home: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    bench.runtime.close()


class Server(ThreadingHTTPServer):
    """Answers by path and remembers what it was asked."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen: list[dict[str, Any]] = []
        # Path -> status, headers, body.
        self.answers: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def answer(self, path: str, body: Any, status: int = 200, **headers: str) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.answers[path] = (status, {k.replace("_", "-"): v for k, v in headers.items()}, data)


class Handler(BaseHTTPRequestHandler):
    """Answers what was arranged, or else with what it was asked."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        asked = {
            "method": self.command,
            "path": self.path,
            "headers": {name.lower(): value for name, value in self.headers.items()},
            "body": body.decode(),
        }
        self.server.seen.append(asked)
        status, headers, data = self.server.answers.get(
            self.path.partition("?")[0],
            (200, {"Content-Type": "application/json"}, json.dumps(asked).encode()),
        )
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = _serve  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Keep quiet."""


def _running() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    yield from _running()


@pytest.fixture
def other_server() -> Iterator[Server]:
    yield from _running()
