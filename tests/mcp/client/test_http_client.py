"""What a server on the network may send at once."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from tests.mcp.client.conftest import Desk

from hermes.mcp.client import http_client

TOOL = {
    "name": "echo",
    "inputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": True},
}


class Peer(BaseHTTPRequestHandler):
    """Answers a call in the way that the test has set."""

    protocol_version = "HTTP/1.1"
    way = "plain"

    def log_message(self, *_: Any) -> None:
        return

    def _send(self, body: bytes, kind: str = "application/json", **headers: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def _status(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self._status(405)

    def do_DELETE(self) -> None:
        self._status(200)

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method = message["method"]
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message.get("id")}
        if method == "initialize":
            about = {"name": "peer", "version": "1"}
            answer["result"] = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": about,
            }
        elif method == "tools/list":
            answer["result"] = {"tools": [TOOL]}
        elif method == "tools/call":
            answer["result"] = {"content": [{"type": "text", "text": "x" * 3_000_000}]}
            self._call(json.dumps(answer).encode())
            return
        else:
            self._status(202 if message.get("id") is None else 404)
            return
        self._send(json.dumps(answer).encode())

    def _call(self, body: bytes) -> None:
        if Peer.way == "compressed":
            self._send(gzip.compress(body), Content_Encoding="gzip")
        elif Peer.way == "events":
            self._send(b"data: " + body + b"\n\n", "text/event-stream")
        else:
            self._send(body)


@pytest.fixture
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Peer)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/mcp"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("way", ["plain", "events"])
def test_a_large_answer_arrives_whole(
    desk: Desk, url: str, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(Peer, "way", way)
    desk.open(box={"url": url})

    outcome = desk.outcome("mcp-box:echo")

    assert outcome.value["total_chars"] == 3_000_000
    desk.close()


def test_what_is_compressed_is_not_unpacked(
    desk: Desk, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Peer, "way", "compressed")
    desk.open(box={"url": url})

    outcome = desk.outcome("mcp-box:echo")

    assert outcome.status == "error"
    assert "compressed" in str(outcome.error)
    desk.close()


@pytest.mark.parametrize("way", ["plain", "events"])
def test_what_never_ends_is_broken_off(
    desk: Desk, url: str, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(Peer, "way", way)
    monkeypatch.setattr(http_client, "MAX_BYTES", 1 << 20)
    desk.open(box={"url": url})

    outcome = desk.outcome("mcp-box:echo")

    assert outcome.status == "error"
    assert "limit" in str(outcome.error) or "grew past 1 MiB" in str(outcome.error)
    desk.close()
