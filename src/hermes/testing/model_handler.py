"""The HTTP side of a scripted model."""

from __future__ import annotations

import contextlib
import json
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from hermes.testing.model_wires import NAME, WIRES, error_body

if TYPE_CHECKING:
    from typing import Any

    from hermes.testing.model_server import ScriptedModel
    from hermes.testing.model_turns import Turn


def serve(model: ScriptedModel, port: int) -> ThreadingHTTPServer:
    """A server that answers with a model's script; the caller runs it."""

    class Bound(_Handler):
        pass

    Bound.model = model
    server = _Server(("127.0.0.1", port), Bound)
    server.daemon_threads = True
    return server


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that went away, which tests do on purpose."""
        import sys

        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    model: ScriptedModel
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def setup(self) -> None:
        super().setup()
        self.model.connected(self.connection)

    def finish(self) -> None:
        self.model.disconnected(self.connection)
        with contextlib.suppress(OSError):
            super().finish()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Keep quiet."""

    def do_GET(self) -> None:
        if self.path.endswith("/models"):
            self._json(200, {"object": "list", "data": [{"id": NAME, "object": "model"}]})
        else:
            self._json(404, {"error": {"message": f"nothing is at {self.path}"}})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.partition("?")[0]
        wire = next((end for end in WIRES if path.endswith(end)), None)
        try:
            request = json.loads(body)
        except ValueError:
            request = None
        if wire is None or not isinstance(request, dict):
            self._json(404 if wire is None else 400, {"error": {"message": f"what is {path}?"}})
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        number, turn = self.model.take(path, headers, body, request)
        if turn.stall_after == 0:
            self._stall()
        elif turn.break_after == 0:
            self.close_connection = True
        elif turn.status != 200:
            self._json(turn.status, error_body(path, turn), turn.headers)
        elif request.get("stream"):
            self._stream(turn, number, wire)
        else:
            time.sleep(turn.delay)
            whole = WIRES[wire][1](turn, self.model.usage(turn, number), number)
            self._json(200, _parsed_inputs(whole), turn.headers)

    def _stream(self, turn: Turn, number: int, wire: str) -> None:
        events: list[Any] = list(turn.raw or ())
        if turn.raw is None:
            events = list(WIRES[wire][0](turn, self.model.usage(turn, number), number))
        cut = turn.stall_after if turn.stall_after is not None else turn.break_after
        if turn.error_after is not None:
            events = [*events[: turn.error_after], error_body(wire, turn)]
        elif cut is not None:
            events = events[:cut]
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        for name, value in turn.headers.items():
            self.send_header(name, value)
        self.end_headers()
        for event in events:
            if turn.delay:
                self.wfile.flush()
                if self.model.closing.wait(turn.delay):
                    break
            self._chunk(_spelled(event))
        if turn.stall_after is not None:
            self._stall()
        elif turn.break_after is not None:
            # Without the last chunk the client can tell that something is missing.
            self.close_connection = True
        else:
            self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _stall(self) -> None:
        """Say nothing until the client goes or the test ends."""
        self.close_connection = True
        self.wfile.flush()
        self.connection.settimeout(0.05)
        while not self.model.closing.is_set():
            try:
                if not self.connection.recv(1):
                    return
            except TimeoutError:
                continue
            except OSError:
                return

    def _json(self, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(data)


def _spelled(event: Any) -> bytes:
    """An event as a server sends it; a text with line ends of its own goes out as it is."""
    if isinstance(event, str):
        return event.encode() if "\n" in event else f"data: {event}\n\n".encode()
    kind = f"event: {event['type']}\n" if "type" in event else ""
    return f"{kind}data: {json.dumps(event)}\n\n".encode()


def _parsed_inputs(whole: dict[str, Any]) -> dict[str, Any]:
    """Anthropic sends the input of a call as an object where it is one."""
    for block in whole.get("content", ()):
        if block.get("type") == "tool_use":
            with contextlib.suppress(ValueError):
                block["input"] = json.loads(block["input"])
    return whole
